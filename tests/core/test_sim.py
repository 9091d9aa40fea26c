"""The simulated models: they go on from where the episode is, and use only what crossed."""

from __future__ import annotations

import re
from statistics import fmean
from typing import Any

import pytest

from ec2_env.actions import Finish, InvokeCloud, ToolCall, parse_action
from ec2_env.cloud.audit import Audit
from ec2_env.cloud.gateway import CloudSettings
from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.models.draws import normal, uniform
from ec2_env.models.loading import load_model
from ec2_env.models.profile import load_profile, make_profile, profile_names
from ec2_env.models.sim import SimulatedModel
from ec2_env.rollout import EpisodeKey, play
from ec2_env.session import Session
from ec2_env.strategy import Decision, View, load_strategy
from ec2_env.task import build_episode, task_domains, tasks
from ec2_env.trace import CloudCall, ToolRan

NAMED = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|[a-z]+-\d{4,5}", re.ASCII)
NAMES = task_domains()["email"]


def model(ability: float, **settings: Any) -> SimulatedModel:
    """Returns a simulated model with one ability and no whims."""
    quiet = {"curiosity": 0.0, "repair": 0.0, "task_sd": 0.0, "instance_sd": 0.0, "style_penalty": 0.0}
    own = {"ability": ability, "family": "o200k", "price": "gpt-5.4", "parameters": 9e9, **quiet, **settings}
    return SimulatedModel(make_profile(f"test-{ability}", own))


PERFECT, HOPELESS = model(40.0), model(-40.0)


def keys(count: int, split: str = "train") -> list[EpisodeKey]:
    """Returns `count` episodes for every task, in its languages by turns."""
    return [
        EpisodeKey(
            task=name, language=tasks.get(name).languages[seed % len(tasks.get(name).languages)], split=split, seed=seed, trial=0
        )
        for name in NAMES
        for seed in range(count)
    ]


class Switch:
    """Takes one decision for some steps and another one afterwards."""

    uses_edge = True

    def __init__(self, first: Decision, then: Decision, after: int) -> None:
        self.name, self.first, self.then, self.after = "switch", first, then, after

    def decide(self, view: View) -> Decision:
        return self.first if view.step < self.after else self.then


# -- ability


def test_a_perfect_model_does_everything_and_a_hopeless_one_almost_nothing() -> None:
    for side in ("edge_only", "cloud_only"):
        strategy = load_strategy(side)
        scores = {}
        for name, worker in (("perfect", PERFECT), ("hopeless", HOPELESS)):
            env = DecisionEnv(edge=worker, cloud=worker)
            scores[name] = fmean(play(env, strategy, key).result["completion"] for key in keys(1))
        assert scores["perfect"] == 1.0
        assert scores["hopeless"] < 0.2


def test_abler_models_complete_more() -> None:
    strategy = load_strategy("edge_only")
    scores = [
        fmean(play(DecisionEnv(edge=model(a)), strategy, key).result["completion"] for key in keys(2)) for a in (0.0, 2.0, 4.0)
    ]
    assert scores[0] < scores[1] < scores[2]


def test_shipped_models_rank_as_their_sizes() -> None:
    strategy = load_strategy("edge_only")
    small, large = (
        fmean(play(DecisionEnv(edge=f"sim:{name}"), strategy, key).result["completion"] for key in keys(3))
        for name in ("qwen3.5-9b", "qwen3.5-27b")
    )
    assert small < large


# -- where the episode is


@pytest.mark.parametrize("after", [2, 5])
def test_a_cloud_takes_over_from_wherever_the_edge_has_come(after: int) -> None:
    env = DecisionEnv(edge=PERFECT, cloud=PERFECT)
    done = [play(env, Switch(Decision.EDGE, Decision.ACT, after), key).result for key in keys(1)]
    assert [result["completion"] for result in done] == [1.0] * len(done)


@pytest.mark.parametrize("after", [2, 5])
def test_an_edge_takes_over_from_wherever_the_cloud_has_come(after: int) -> None:
    env = DecisionEnv(edge=PERFECT, cloud=PERFECT)
    done = [play(env, Switch(Decision.ACT, Decision.EDGE, after), key).result for key in keys(1)]
    assert [result["completion"] for result in done] == [1.0] * len(done)


def test_a_cloud_finishes_what_an_edge_that_only_fumbled_has_left() -> None:
    rescued = fmean(
        play(DecisionEnv(edge=HOPELESS, cloud=PERFECT), Switch(Decision.EDGE, Decision.ACT, 3), k).result["completion"]
        for k in keys(2)
    )
    alone = fmean(
        play(DecisionEnv(edge=HOPELESS, cloud=PERFECT), load_strategy("edge_only"), k).result["completion"] for k in keys(2)
    )
    assert rescued > alone + 0.3


def test_a_cloud_does_not_repeat_what_an_agent_outside_has_done() -> None:
    episode = build_episode("forward_invoice", 0, "en")
    session = Session(episode, cloud=PERFECT, settings=CloudSettings())
    session.call(ToolCall("list_files", {}), "agent")
    for _ in range(30):
        answer = session.invoke(InvokeCloud(mode="act", share="transcript"))
        assert answer is not None and answer.call is not None
        action = (
            Finish(**answer.call["arguments"])
            if answer.call["name"] == "finish"
            else ToolCall(answer.call["name"], answer.call["arguments"])
        )
        session.call(action, "cloud")
        if session.finish is not None:
            break
    session.end()
    assert session.result is not None
    assert session.result["completion"] == 1.0


def test_slips_really_change_the_workspace() -> None:
    strays = forbidden = wrong = 0
    for key in keys(4):
        result = play(DecisionEnv(edge=model(0.0)), load_strategy("edge_only"), key).result
        strays += result["strays"]
        forbidden += bool(result["forbidden"])
        wrong += 0 < result["completion"] < 1
    assert strays > 0
    assert wrong > 0


# -- only what crossed


@pytest.mark.parametrize("redactor", ["rules", "oracle"])
@pytest.mark.parametrize("strategy", ["cloud_only", "cloud_only:redacted", "random", "adaptive_assistance:redacted"])
def test_a_cloud_utters_no_value_id_or_address_that_it_was_not_sent(strategy: str, redactor: str) -> None:
    env = DecisionEnv(cloud_settings={"redactor": redactor})
    for key in keys(1, "test"):
        done = play(env, load_strategy(strategy), key)
        assert env.session is not None
        audit, sent = Audit(env.session.episode.units), ""
        for event in done.events:
            if isinstance(event, CloudCall):
                sent += "\n".join(["", *(text for _, text in event.sent)])
                assert [name for name in NAMED.findall(event.reply) if name not in sent] == [], event.reply
                known = audit.find(sent)
                told = {unit: level for unit, level in audit.find(event.reply).items() if level > known.get(unit, 0.0)}
                assert told == {}, (key, event.reply)


@pytest.mark.parametrize("share", ["request", "instruction"])
@pytest.mark.parametrize("mode", ["advise", "act", "plan"])
def test_without_the_transcript_a_cloud_says_only_what_it_was_sent(share: Any, mode: Any) -> None:
    for name in NAMES:
        session = Session(build_episode(name, 5), cloud=PERFECT, settings=CloudSettings())
        answer = session.invoke(InvokeCloud(request="What should I do?", mode=mode, share=share))
        assert answer is not None
        sent = "\n".join(text for _, text in answer.event.sent)
        assert [found for found in NAMED.findall(answer.event.reply) if found not in sent] == []
        assert Audit(session.episode.units).find(answer.event.reply).keys() <= Audit(session.episode.units).find(sent).keys()


class Sharing:
    """Lets the cloud act at every step, and share as told."""

    def __init__(self, share: Any, redact: bool = False) -> None:
        self.share, self.redact = share, redact

    def completion(self, key: EpisodeKey) -> float:
        episode = build_episode(key.task, key.seed, key.language, key.split)  # type: ignore[arg-type]  # valid by construction
        session = Session(episode, cloud=PERFECT, settings=CloudSettings(redactor="oracle"))
        from ec2_env.actions import parse_action

        while not session.ended:
            answer = session.invoke(InvokeCloud(request="Take the next step.", mode="act", share=self.share, redact=self.redact))
            assert answer is not None
            session.call(parse_action(answer.call), "cloud")
            session.next_step()
        assert session.result is not None
        return float(session.result["completion"])


def test_before_anything_was_done_the_instruction_is_all_that_a_cloud_has_to_know() -> None:
    running = Session(build_episode("release_branch", 0), cloud=PERFECT, settings=CloudSettings())
    answer = running.invoke(InvokeCloud(request="", mode="act", share="transcript"))
    assert answer is not None
    assert running.call(parse_action(answer.call), "cloud").ok
    blind = Session(build_episode("release_branch", 0), cloud=PERFECT, settings=CloudSettings())
    answer = blind.invoke(InvokeCloud(request="What next?", mode="act", share="request"))
    assert answer is not None and "not shown" in str(answer.call)


def test_more_context_completes_more() -> None:
    chosen = keys(1)
    nothing = fmean(Sharing("request").completion(key) for key in chosen)
    instruction = fmean(Sharing("instruction").completion(key) for key in chosen)
    redacted = fmean(Sharing("transcript", redact=True).completion(key) for key in chosen)
    everything = fmean(Sharing("transcript").completion(key) for key in chosen)
    assert nothing <= instruction < redacted < everything
    assert everything > 0.95


def test_redaction_costs_completion_where_values_must_be_reasoned_about() -> None:
    lost = {}
    for name in NAMES:
        needs = any(unit.necessity == "reason" for unit in build_episode(name, 0).units)
        key = EpisodeKey(task=name, language=tasks.get(name).languages[0], split="train", seed=0, trial=0)
        lost.setdefault(needs, []).append(
            Sharing("transcript").completion(key) - Sharing("transcript", redact=True).completion(key)
        )
    assert fmean(lost[True]) > 0


# -- help


def test_advice_and_plans_help_a_weak_edge() -> None:
    edge, chosen = model(0.5, follow=0.9), keys(3)

    def mean(strategy: Any) -> float:
        return fmean(play(DecisionEnv(edge=edge, cloud=PERFECT), strategy, key).result["completion"] for key in chosen)

    alone, advised = mean(load_strategy("edge_only")), mean(Switch(Decision.ADVISE, Decision.ADVISE, 99))
    assert advised > alone + 0.1
    assert mean(load_strategy("sketch_guided")) >= alone - 0.02


def test_a_model_that_notices_a_mistake_may_do_better_the_second_time() -> None:
    def mean(repair: float) -> float:
        edge = model(1.2, repair=repair, curiosity=0.0)
        done = [play(DecisionEnv(edge=edge), load_strategy("edge_only"), key).result["completion"] for key in keys(6)]
        return sum(done) / len(done)

    assert mean(0.9) > mean(0.0) + 0.05


def test_entropy_tells_something_but_not_everything() -> None:
    right: list[float] = []
    wrong: list[float] = []
    for key in keys(3):
        env = DecisionEnv(edge="sim:qwen3.5-9b")
        env.begin(key.task, key.language, key.split, key.seed)
        session = env.session
        assert session is not None
        while not session.ended:
            entropy = session.signals().entropy
            assert entropy is not None and entropy >= 0
            env.take(0)
            ran = session.records[-1]
            (right if ran.ok else wrong).append(entropy)
    assert fmean(wrong) > fmean(right)
    assert min(wrong) < max(right)


# -- draws and profiles


def test_an_edge_does_the_same_whether_it_is_probed_or_not() -> None:
    env = DecisionEnv(domain="email")

    def calls(key: EpisodeKey, probed: bool) -> list[tuple[str, Any]]:
        env.begin(key.task, key.language, key.split, key.seed, key.trial)
        assert env.session is not None
        while not env.session.ended:
            if probed:
                env.view().signals()
            env.take(int(uniform("decision", key.task, key.seed, env.session.step) * len(Decision)))
        return [(event.by, event.name, event.arguments) for event in env.session.events if isinstance(event, ToolRan)]

    for key in keys(8):
        assert calls(key, True) == calls(key, False), key


def test_draws_depend_only_on_their_purpose() -> None:
    assert uniform("a", 1) == uniform("a", 1) != uniform("a", 2)
    values = [uniform("spread", i) for i in range(2_000)]
    assert 0 < min(values) < 0.01 and 0.99 < max(values) < 1
    assert abs(fmean(values) - 0.5) < 0.02
    normals = [normal("spread", i) for i in range(2_000)]
    assert abs(fmean(normals)) < 0.06
    assert abs(fmean(x * x for x in normals) - 1) < 0.1


def test_every_shipped_profile_loads() -> None:
    for name in profile_names():
        card = load_model(f"sim:{name}").card
        assert card.simulated
        assert load_profile(name).parameters is None or load_profile(name).parameters > 1e9  # type: ignore[operator]  # not None here


def test_profiles_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(UnknownName):
        load_profile("qwen3.5-9")
    with pytest.raises(ConfigurationError, match="abilty"):
        make_profile("x", {"abilty": 1.0})
    with pytest.raises(ConfigurationError, match="ability"):
        make_profile("x", {"family": "o200k"})


def test_a_simulated_model_answers_only_inside_an_episode() -> None:
    with pytest.raises(ConfigurationError, match="inside an episode"):
        load_model("sim:gpt-5.4").complete([{"role": "user", "content": "hello"}])


def test_what_an_edge_does_it_does_again_in_another_trial_differently() -> None:
    key = keys(1)[0]
    runs = []
    for trial in (0, 0, 1, 2, 3):
        done = play(
            DecisionEnv(edge=model(1.0)),
            load_strategy("edge_only"),
            EpisodeKey(task=key.task, language="en", split="train", seed=1, trial=trial),
        )
        runs.append([(event.name, str(event.arguments)) for event in done.events if isinstance(event, ToolRan)])
    assert runs[0] == runs[1]
    assert len({str(run) for run in runs}) > 1
