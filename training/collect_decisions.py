"""States of `DecisionEnv` and what the teacher thinks of the six decisions there, as rows of datasets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from ec2_env.envs import DecisionEnv
from ec2_env.models.choice import PROMPT_END
from ec2_env.models.draws import uniform
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import Decision, Strategy, decision_of
from ec2_env.training.states import LABELLED, State, advance, labels_of_episode, observed
from ec2_env.training.teacher import Teacher, best

TEACHER = "teacher"
"""Name under which rows stand that no strategy decided."""


def judged_states(
    env: DecisionEnv, settings: Mapping[str, Any], teacher: Teacher, strategy: Strategy | None, key: EpisodeKey
) -> Iterator[tuple[State, Decision]]:
    """Yields half of the states of an episode with the teacher's values, and what was decided there.

    Args:
        env: Where to play.
        settings: Arguments that give the same env again.
        teacher: Values the decisions.
        strategy: Plays and decides. If None, episodes are played as `ec2_env.training.states` does, mostly well and sometimes at
            random, and the teacher decides.
        key: Which episode.
    """
    if strategy is None:
        for one in labels_of_episode(settings, teacher, key):
            yield one, best(one.values)
        return
    env.begin(key.task, key.language, key.split, key.seed, key.trial)
    while env.session is not None and not env.session.ended:
        step = env.session.step
        labelled = uniform("collect", key.task, key.language, key.seed, key.trial, step) < LABELLED
        state = observed(env, key, teacher.values(env)) if labelled else None
        choice = strategy.decide(env.view())
        if state is not None:
            yield state, decision_of(choice)
        advance(env, choice)


def decision_rows(state: State, decision: Decision, strategy: str, chat: bool) -> Iterator[dict[str, Any]]:
    """Yields the row for supervised training: the prompt and the decision taken."""
    yield _row(state, strategy, prompt=asked(state.prompt, chat), completion=answered(decision, chat), decision=int(decision))


def preference_rows(state: State, strategy: str, chat: bool, margin: float) -> Iterator[dict[str, Any]]:
    """Yields the pair of the best decision and one drawn from those that are worse by at least `margin`; nothing if none is."""
    better = best(state.values)
    gaps = [state.values[better] - value for value in state.values]
    worse = [decision for decision in Decision if decision is not better and gaps[decision] >= margin]
    if not worse:
        return
    key = state.key
    draw = uniform("rejected", key.task, key.language, key.seed, key.trial, len(state.choices), state.prompt)
    rejected = worse[int(draw * len(worse))]
    yield _row(
        state,
        strategy,
        prompt=asked(state.prompt, chat),
        chosen=answered(better, chat),
        rejected=answered(rejected, chat),
        chosen_decision=int(better),
        rejected_decision=int(rejected),
        margin=gaps[rejected],
    )


def kto_rows(state: State, strategy: str, chat: bool, margin: float) -> Iterator[dict[str, Any]]:
    """Yields a row for each decision whose value is above or below the mean of the six by at least `margin`."""
    middle = fmean(state.values)
    for decision in Decision:
        advantage = state.values[decision] - middle
        if abs(advantage) >= margin and advantage:
            yield _row(
                state,
                strategy,
                prompt=asked(state.prompt, chat),
                completion=answered(decision, chat),
                label=advantage > 0,
                decision=int(decision),
                advantage=advantage,
            )


def asked(prompt: str, chat: bool) -> Any:
    """Returns the prompt, as a text or as a chat."""
    return [{"role": "user", "content": prompt}] if chat else prompt


def answered(decision: Decision, chat: bool) -> Any:
    """Returns the answer: the digit, in a text after a space, as `ec2_env.models.choice` asks for it."""
    return [{"role": "assistant", "content": str(int(decision))}] if chat else f"{PROMPT_END}{int(decision)}"


def _row(state: State, strategy: str, **columns: Any) -> dict[str, Any]:
    values: Sequence[float] = state.values
    return {
        **columns,
        "values": list(values),
        "features": list(state.features),
        **asdict(state.key),
        "step": len(state.choices),
        "strategy": strategy,
    }
