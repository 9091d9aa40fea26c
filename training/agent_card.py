"""How a trained agent did, as a table, and the cards that go with its adapter."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import ec2_env
from ec2_env.bench.suites import Suite, suite_digest
from ec2_env.models.hf import LocalModel
from ec2_env.strategy import Decision
from ec2_env.training.agent_play import Played
from ec2_env.training.evaluation import Score, difference

HEAD = (
    "| policy | right next calls, train / test | episodes | valid calls | completion | passed | return, mean ± 95% CI | cost "
    "| exposure | cloud calls |\n|---|---|---|---|---|---|---|---|---|---|"
)


Clouded = Literal["alone", "with the cloud"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How a model did.

    Attributes:
        name: Of the policy.
        right_train: For each step of solutions of the train split that it had not seen, whether it would have written its call.
        right_test: The same on the test split.
        played: Its episodes of the test split, by whether it had a cloud.
    """

    name: str
    right_train: dict[str, list[bool]]
    right_test: dict[str, list[bool]]
    played: dict[Clouded, Played]

    @property
    def score(self) -> Score:
        """How it did in the end: with a cloud, if it was measured with one."""
        return list(self.played.values())[-1].score


def table(measures: Sequence[Measured]) -> str:
    """Returns the results as Markdown."""
    return "\n".join([HEAD, *(row(one, word, played) for one in measures for word, played in one.played.items())])


def row(one: Measured, word: Clouded, played: Played) -> str:
    """Returns one row of the table."""
    score, episodes = played.score, len(played.score.returns)
    used = sum(count for decision, count in score.decisions.items() if decision != Decision.EDGE) / episodes
    completion, cost, exposure = (fmean(getattr(part, name) for part in score.parts) for name in ("task", "cost", "exposure"))
    return (
        f"| {one.name} | {share(one.right_train)} / {share(one.right_test)} | {word} | {played.calls / played.replies:.0%} "
        f"| {completion:.3f} | {played.passed} of {episodes} | {score.mean:.3f} ± {half_width(score):.3f} | {cost:.3f} "
        f"| {exposure:.3f} | {used:.1f} |"
    )


def share(right: Mapping[str, Sequence[bool]]) -> str:
    """Returns the share of right calls as text."""
    calls = [one for found in right.values() for one in found]
    return f"{fmean(calls):.0%} of {len(calls)}" if calls else "-"


def half_width(score: Score) -> float:
    """Returns half the width of the 95% interval of the mean return."""
    return difference(score, Score(name="", returns=(0.0,) * len(score.returns), parts=score.parts, decisions={}))[1]


def lines(measures: Sequence[Measured]) -> list[str]:
    """Says in words how the last policy stands to the others, on the same episodes."""
    return [compared(measures[-1].score, one.score) for one in measures[:-1]]


def compared(mine: Score, other: Score) -> str:
    """Says how one policy stands to another."""
    gap, width = difference(mine, other)
    word = "better than" if gap > width else "worse than" if gap < -width else "not distinguishable from"
    return f"{mine.name} is {word} {other.name}: {gap:+.3f} ± {width:.3f}"


def save_adapter(chat: LocalModel, folder: Path, trained_on: str) -> None:
    """Writes the adapter in PEFT's form; no path of this machine remains in it, unless `trained_on` is one."""
    folder.mkdir(parents=True, exist_ok=True)
    chat.model.save_pretrained(folder, selected_adapters=["default"])
    (folder / "README.md").unlink(missing_ok=True)  # PEFT's form, which holds a path of this machine
    config = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    config["base_model_name_or_path"] = trained_on
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def load_adapter(chat: LocalModel, folder: Path) -> None:
    """Sets the model's adapter to one that was saved from a model of the same shape."""
    import peft
    from safetensors.torch import load_file

    peft.set_peft_model_state_dict(chat.model, load_file(folder / "adapter_model.safetensors"))


def write_cards(
    folder: Path,
    trained_on: str,
    seed: int,
    tasks: Sequence[str],
    plan: Mapping[str, Any],
    right: Mapping[str, float],
    measures: Sequence[Measured],
) -> None:
    """Writes `card.json` and `README.md`.

    Args:
        folder: Of the adapter.
        trained_on: Name of the base model.
        seed: Of the training.
        tasks: What was learned.
        plan: How much of everything.
        right: Share of right calls at each step after the first part; what was hard of it is in the plan.
        measures: What was measured; the last one is the adapter.
    """
    import peft
    import torch
    import transformers
    import trl

    suite = Suite(about="test", tasks=tuple(tasks), languages=(plan["settings"]["language"],), seeds=plan["test_seeds"], trials=1)
    card = {
        "base_model": trained_on,
        "seed": seed,
        "plan": plan,
        "versions": {module.__name__: module.__version__ for module in (ec2_env, peft, torch, transformers, trl)},
        "test_suite_sha256": suite_digest(suite),
        "right_calls_after_first_part": dict(sorted(right.items())),
        "results": {
            f"{one.name}, {word}": {
                "mean_return": played.score.mean,
                "completion": fmean(part.task for part in played.score.parts),
                "episodes": len(played.score.returns),
                "valid_calls": played.calls / played.replies,
            }
            for one in measures
            for word, played in one.played.items()
        },
    }
    (folder / "card.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(
        f"---\nbase_model: {trained_on}\nlibrary_name: peft\nlicense: apache-2.0\n---\n"
        "# An agent that works through tools and may call a cloud\n\n"
        f"LoRA adapter for {trained_on}, trained on the train split of {', '.join(tasks)}\n"
        f"by `ec2-env train --method agent` with seed {seed} (ec2-env {ec2_env.__version__}). Its cloud is simulated.\n\n"
        f"It works as the edge model `{spec(trained_on)}`. On the test split:\n\n{table(measures)}\n\n"
        + "\n".join(f"- {line}" for line in lines(measures))
        + "\n\n`card.json` holds plan, seed, versions, the digest of the test episodes and results.\n",
        encoding="utf-8",
    )


def spec(trained_on: str) -> str:
    """Returns how the adapter is named as an edge model."""
    name = trained_on if trained_on == "smollm2" else f"hf:{trained_on}"
    return f"{name}@adapter=FOLDER"
