"""GRPO and RLOO on single decisions: TRL's trainers, with rewards that are known for all six decisions of a state.

With six decisions there is no need to draw: a group is every decision once, and its completions count as draws from the uniform
distribution. The importance ratio of TRL's loss is then six times the policy's chance, so that the loss, unclipped, is the exact
expected advantage under the policy, and its gradient has no noise but that of the rewards. With `drawn`, decisions are drawn from
the policy instead, as usual.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from ec2_env.models.choice import DecisionModel
from ec2_env.strategy import Decision
from ec2_env.training.deciding import QUIET, Figure, deciding
from ec2_env.training.states import State

UNCLIPPED = 1e6
"""How far an importance ratio may go from 1."""


class Sizes(Protocol):
    """What of a plan matters here, see `ec2_env.training.quick.Plan`."""

    @property
    def prompts(self) -> int: ...
    @property
    def generations(self) -> int: ...
    @property
    def passes(self) -> int: ...
    @property
    def rate(self) -> float: ...
    @property
    def penalty(self) -> float: ...
    @property
    def drawn(self) -> bool: ...


def improve(
    policy: DecisionModel,
    states: Sequence[State],
    plan: Sizes,
    seed: int,
    figure: Figure,
    learner: str = "grpo",
) -> None:
    """Trains the policy's adapter by policy gradients.

    Args:
        policy: Its model is trained in place.
        states: With the values of their decisions. `plan.prompts` of them make a step.
        plan: How much of everything.
        seed: Fixes the order of states, and the decisions if they are drawn.
        figure: Takes down the policy's expected advantage over the mean of the six decisions, now and then.
        learner: "grpo", or "rloo": baselines that leave one out, and the penalty in the reward.
    """
    import datasets
    import transformers

    rows = [{"prompt": state.prompt, "state": number} for number, state in enumerate(states)]
    generations = plan.generations if plan.drawn else len(Decision)
    steps = max(1, plan.passes * len(rows) // plan.prompts)
    expected = Expected(policy, states, partial(figure, learner), max(1, steps // 10))
    options: dict[str, Any] = {
        "seed": seed,
        "max_steps": steps,
        "per_device_train_batch_size": plan.prompts * generations,
        "num_generations": generations,
        "max_completion_length": 1,
        "learning_rate": plan.rate,
        "lr_scheduler_type": "linear",
        "warmup_steps": 0.1,
        "beta": plan.penalty,
        "logging_steps": 10**6,
        **QUIET,
    }
    if not plan.drawn:
        options |= {"epsilon": UNCLIPPED, "epsilon_high": UNCLIPPED}

    def reward(completion_ids: list[list[int]], state: list[int], **_: Any) -> list[float]:
        return [states[number].values[policy.digits.index(ids[0])] for number, ids in zip(state, completion_ids, strict=True)]

    with tempfile.TemporaryDirectory() as scratch:
        make = _grpo if learner == "grpo" else _rloo
        trainer = make(
            policy,
            Decisions(policy, seed, plan.drawn),
            reward,
            options | {"output_dir": scratch},
            datasets.Dataset.from_list(rows),
        )
        trainer.remove_callback(transformers.PrinterCallback)
        with deciding(trainer, policy, expected):
            trainer.train()


class Decisions:
    """The completions of a batch: every decision once for each state, or decisions drawn from the policy."""

    def __init__(self, policy: DecisionModel, seed: int, drawn: bool) -> None:
        import torch

        self.policy, self.drawn = policy, drawn
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, prompts: Sequence[str]) -> list[list[int]]:
        """Returns one digit for each prompt. Prompts come repeated, those of a state one after another; each is read once."""
        import torch

        if not self.drawn:
            return [[self.policy.digits[place % len(Decision)]] for place in range(len(prompts))]
        unique = list(dict.fromkeys(prompts))
        scores = dict(zip(unique, self.policy.scores(unique), strict=True))
        self.policy.model.train()
        chances = torch.tensor([scores[prompt] for prompt in prompts]).exp()
        return [[self.policy.digits[place]] for place in torch.multinomial(chances, 1, generator=self.generator)[:, 0].tolist()]


class Expected:
    """Takes down how much better than the mean of the six decisions the policy decides, as a running mean."""

    def __init__(
        self, policy: DecisionModel, states: Sequence[State], figure: Callable[[int, str, float], None], every: int
    ) -> None:
        self.advantages = {
            tuple(policy.tokens(state.prompt)): [value - sum(state.values) / len(Decision) for value in state.values]
            for state in states
        }
        self.figure, self.every, self.found = figure, every, list[float]()

    def __call__(self, prompts: Sequence[tuple[int, ...]], chances: Any) -> None:
        advantages = chances.new_tensor([self.advantages[prompt] for prompt in prompts])
        self.found.append(float((chances.exp() * advantages).sum(-1).mean()))
        if len(self.found) % self.every == 0:
            mean = sum(self.found[-self.every :]) / self.every
            self.figure(len(self.found), "expected advantage", mean)


def _grpo(policy: DecisionModel, decisions: Decisions, reward: Any, options: Mapping[str, Any], rows: Any) -> Any:
    import torch
    import trl

    def roll_out(prompts: list[str], trainer: Any) -> dict[str, Any]:
        return {
            "prompt_ids": [policy.tokens(prompt) for prompt in prompts],
            "completion_ids": decisions(prompts),
            "logprobs": [[0.0] for _ in prompts],
        }

    class EveryDecision(trl.GRPOTrainer):  # type: ignore[misc]  # TRL is not typed
        """Takes completions as draws from the uniform distribution over the six decisions."""

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            output = super()._generate_and_score_completions(inputs)
            shape = output["completion_ids"].shape
            return output | {
                "old_per_token_logps": torch.full(shape, -math.log(len(Decision)), device=output["advantages"].device)
            }

    return (trl.GRPOTrainer if decisions.drawn else EveryDecision)(
        model=policy.model,
        reward_funcs=[reward],
        rollout_func=roll_out,
        args=trl.GRPOConfig(scale_rewards="none", loss_type="dr_grpo", use_bias_correction_kl=True, **options),
        train_dataset=rows,
        processing_class=policy.tokenizer,
    )


def _rloo(policy: DecisionModel, decisions: Decisions, reward: Any, options: Mapping[str, Any], rows: Any) -> Any:
    import torch
    import trl

    class Deciding(trl.RLOOTrainer):  # type: ignore[misc]  # TRL is not typed
        """Asks for decisions where RLOOTrainer, which has no `rollout_func`, would generate."""

        def _generate(self, prompts: list[str]) -> Any:
            chosen = decisions(prompts)
            return [policy.tokens(prompt) for prompt in prompts], chosen, self.processing_class.batch_decode(chosen)

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            output = super()._generate_and_score_completions(inputs)
            if not decisions.drawn:
                output["old_logps"] = torch.full_like(output["old_logps"], -math.log(len(Decision)))
            return output

    return Deciding(
        model=policy.model,
        reward_funcs=[reward],
        args=trl.RLOOConfig(**options),
        train_dataset=rows,
        processing_class=policy.tokenizer,
    )
