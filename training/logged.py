"""DPO and KTO from logged decisions: states with the values of their decisions, as `ec2-env collect` writes them.

Nothing is tried during training: what is good or bad is read off the values. Both trainers are TRL's, with their own losses; the
reference is the policy as it is when training begins.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from ec2_env.errors import ConfigurationError
from ec2_env.models.choice import DecisionModel
from ec2_env.registry import require
from ec2_env.rollout import EpisodeKey
from ec2_env.training.collect_decisions import TEACHER, kto_rows, preference_rows
from ec2_env.training.deciding import QUIET, Figure, deciding, telling
from ec2_env.training.states import State

KINDS = ("decisions", "preference", "kto")
"""What `ec2-env collect` writes that holds states with the values of their decisions."""


class Sizes(Protocol):
    """What of a plan matters here, see `ec2_env.training.quick.Plan`."""

    @property
    def prompts(self) -> int: ...
    @property
    def passes(self) -> int: ...
    @property
    def rate(self) -> float: ...
    @property
    def margin(self) -> float: ...
    @property
    def pull(self) -> float: ...


def read_states(folder: Path) -> list[State]:
    """Returns the states of a dataset that `ec2-env collect` wrote, each once.

    Raises:
        ConfigurationError: if it holds none.
        MissingExtra: if pyarrow is not installed.
    """
    parquet = require("pyarrow.parquet", extra="parquet")
    files = sorted((folder / "data").glob("*.parquet"))
    if not files:
        raise ConfigurationError(f"{folder} holds no dataset; write one with: ec2-env collect --kind preference --out {folder}")
    found: dict[tuple[EpisodeKey, int], State] = {}
    for row in (row for file in files for row in parquet.read_table(file).to_pylist()):
        if "values" not in row or not isinstance(row["prompt"], str):
            raise ConfigurationError(
                f"{folder} holds no values of decisions after texts; collect one of the kinds {', '.join(KINDS)}, without --chat"
            )
        if row["split"] == "test":
            raise ConfigurationError(f"{folder} holds test episodes, which the policy is judged on; collect the train split")
        key = EpisodeKey(**{name: row[name] for name in ("task", "language", "split", "seed", "trial")})
        state = State(key=key, choices=(), prompt=row["prompt"], features=tuple(row["features"]), values=tuple(row["values"]))
        found.setdefault((key, row["step"]), state)
    return list(found.values())


def prefer(policy: DecisionModel, states: Sequence[State], plan: Sizes, seed: int, figure: Figure, learner: str = "dpo") -> None:
    """Trains the policy's adapter on which decisions were good and which bad.

    Args:
        policy: Its model is trained in place.
        states: With the values of their decisions. `plan.prompts` of them make a step.
        plan: How much of everything.
        seed: Fixes the order of pairs.
        figure: Takes down the loss, now and then.
        learner: "dpo" for pairs of the best decision and a worse one, or "kto" for each decision above or below the mean.

    Raises:
        ConfigurationError: if in no state a decision is better than another by the margin.
    """
    import datasets
    import transformers
    import trl

    if learner == "dpo":
        rows = [row for state in states for row in preference_rows(state, TEACHER, False, plan.margin)]
        columns, size, trainer_class = ("prompt", "chosen", "rejected"), plan.prompts, trl.DPOTrainer
    else:
        rows = list(by_steps(states, plan))
        columns, size, trainer_class = ("prompt", "completion", "label"), KTO_ROWS * plan.prompts, trl.KTOTrainer
    if not rows:
        raise ConfigurationError(f"in none of {len(states)} states is a decision better by {plan.margin:g}; lower the margin")
    steps = max(1, plan.passes * len(rows) // size)
    config = trl.DPOConfig if learner == "dpo" else trl.KTOConfig
    with tempfile.TemporaryDirectory() as scratch:
        trainer = trainer_class(
            model=policy.model,
            args=config(
                output_dir=scratch,
                seed=seed,
                max_steps=steps,
                per_device_train_batch_size=size,
                learning_rate=plan.rate,
                lr_scheduler_type="linear",
                warmup_steps=0.1,
                beta=plan.pull,
                max_length=None,
                logging_steps=max(1, steps // 10),
                train_sampling_strategy="random" if learner == "dpo" else "sequential",
                **QUIET,
            ),
            train_dataset=datasets.Dataset.from_list([{name: row[name] for name in columns} for row in rows]),
            processing_class=policy.tokenizer,
        )
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.add_callback(telling(figure, learner))
        with deciding(trainer, policy):
            trainer.train()


KTO_ROWS = 4
"""Decisions in a step of KTO for each of `Plan.prompts`: about as many as a state has that are good or bad."""


def by_steps(states: Sequence[State], plan: Sizes) -> Iterator[dict[str, Any]]:
    """Yields rows for KTO so that a step holds decisions of few states, each of which is read once.

    Of a few states come the best decisions first, then all second ones: KTO estimates how far the policy has moved from answers
    that belong to the row before, which are then those of another state.
    """
    for start in range(0, len(states), plan.prompts):
        ranked = [
            (rank, row)
            for state in states[start : start + plan.prompts]
            for rank, row in enumerate(
                sorted(kto_rows(state, TEACHER, False, plan.margin), key=lambda row: -float(row["advantage"]))
            )
        ]
        yield from (row for _, row in sorted(ranked, key=lambda pair: pair[0]))
