"""GRPO on single decisions: TRL's trainer, with decisions drawn from six tokens and rewards from copies of the env."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ec2_env.envs import DecisionEnv
from ec2_env.models.choice import DecisionModel
from ec2_env.strategy import Decision, Strategy
from ec2_env.training.states import State, go_to
from ec2_env.training.teacher import BASES, likely_lucks, play_on


class Sizes(Protocol):
    """What of a plan matters here, see `ec2_env.training.quick.Plan`."""

    @property
    def settings(self) -> Mapping[str, Any]: ...
    @property
    def steps(self) -> int: ...
    @property
    def prompts(self) -> int: ...
    @property
    def generations(self) -> int: ...
    @property
    def reward_draws(self) -> int: ...
    @property
    def rate(self) -> float: ...
    @property
    def entropy(self) -> float: ...


QUIET: dict[str, Any] = {
    "use_cpu": True,
    "bf16": False,
    "gradient_checkpointing": False,
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
    "dataloader_pin_memory": False,
}
"""Settings of TRL's trainers here: on CPU, in float32, without saving and without reports."""


class Returns:
    """Rewards decisions with what the env pays for them: the decision, then a base policy to the end, on copies of the state.

    Args:
        settings: Arguments of `DecisionEnv`.
        states: Where the decisions are taken.
        draws: Rollouts behind each reward. All decisions in a state are tried under the same luck.
        base: Goes on after the decision.
    """

    def __init__(self, settings: Mapping[str, Any], states: Sequence[State], draws: int, base: Strategy) -> None:
        self.env = DecisionEnv(**settings)
        self.states, self.draws, self.base = states, draws, base
        self._known: dict[tuple[int, int], float] = {}

    def of(self, number: int, decision: int) -> float:
        """Returns the mean return of a decision in the state with this number."""
        if (number, decision) not in self._known:
            go_to(self.env, self.states[number])
            lucks = likely_lucks(self.env, self.draws, 8 * self.draws)
            played = [play_on(self.env, Decision(decision), self.base, luck) for luck in lucks]
            self._known[number, decision] = sum(played) / len(played)
        return self._known[number, decision]


def improve(policy: DecisionModel, states: Sequence[State], plan: Sizes, seed: int, say: Callable[[str], None]) -> None:
    """Trains the policy's adapter by group-relative policy optimization.

    Args:
        policy: Its model is trained in place.
        states: One prompt each; `plan.prompts` of them make a step.
        plan: How much of everything.
        seed: Fixes the order of states and the decisions drawn.
        say: Is told the mean reward every few steps.
    """
    import datasets
    import torch
    import transformers
    import trl

    returns = Returns(plan.settings, states, plan.reward_draws, BASES[0])
    draw = torch.Generator().manual_seed(seed)
    means: list[float] = []

    def roll_out(prompts: list[str], trainer: Any) -> dict[str, Any]:
        """Draws a decision for each prompt; the repeated prompts of a group share one forward pass."""
        unique = list(dict.fromkeys(prompts))
        scores = dict(zip(unique, policy.scores(unique), strict=True))
        logp = torch.tensor([scores[prompt] for prompt in prompts])
        chosen = torch.multinomial(logp.exp(), 1, generator=draw)[:, 0].tolist()
        policy.model.train()
        return {
            "prompt_ids": [policy.tokens(prompt) for prompt in prompts],
            "completion_ids": [[policy.digits[decision]] for decision in chosen],
            "logprobs": [[float(row[decision])] for row, decision in zip(logp, chosen, strict=True)],
        }

    def reward(completion_ids: list[list[int]], state: list[int], **_: Any) -> list[float]:
        found = [returns.of(number, policy.digits.index(ids[0])) for number, ids in zip(state, completion_ids, strict=True)]
        means.append(sum(found) / len(found))
        if len(means) % 5 == 0:
            say(f"  step {len(means)}: mean reward of the last five {sum(means[-5:]) / 5:.3f}")
        return found

    class DecidingTrainer(trl.GRPOTrainer):  # type: ignore[misc]  # TRL is not typed
        """Scores a group's one-token completions from one forward pass over its prompt, among the six digits only."""

        def _get_per_token_logps_and_entropies(
            self, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int, *_: Any, **__: Any
        ) -> tuple[Any, Any, None]:
            both = torch.stack([input_ids[:, :-1], attention_mask[:, :-1]])
            unique, index = torch.unique(both, dim=1, return_inverse=True)
            positions = (unique[1].cumsum(-1) - 1).clamp(min=0)
            output = model(input_ids=unique[0], attention_mask=unique[1], position_ids=positions, logits_to_keep=1)
            logp = output.logits[:, -1, policy.digits].float().log_softmax(-1)[index]
            chosen = torch.tensor([policy.digits.index(int(token)) for token in input_ids[:, -1]])
            return logp.gather(1, chosen[:, None]), -(logp.exp() * logp).sum(-1, keepdim=True), None

    with tempfile.TemporaryDirectory() as scratch:
        trainer = DecidingTrainer(
            model=policy.model,
            reward_funcs=[reward],
            rollout_func=roll_out,
            args=trl.GRPOConfig(
                output_dir=scratch,
                seed=seed,
                max_steps=plan.steps,
                per_device_train_batch_size=plan.prompts * plan.generations,
                num_generations=plan.generations,
                max_completion_length=1,
                learning_rate=plan.rate,
                lr_scheduler_type="linear",
                beta=0.0,
                entropy_coef=plan.entropy,
                scale_rewards="batch",
                loss_type="dr_grpo",
                logging_steps=10**6,
                **QUIET,
            ),
            train_dataset=datasets.Dataset.from_list([{"prompt": s.prompt, "state": n} for n, s in enumerate(states)]),
            processing_class=policy.tokenizer,
        )
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
