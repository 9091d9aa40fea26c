"""Does what a policy learned hold elsewhere: on other domains, in another language, with other models, with a real executor?

A policy is trained on a source and plays the test episodes of a target. Beside it, on the same episodes: the policy that was
trained on the target itself in the same way, the fixed strategies, and the best of these. What training on the target adds is the
price of not having been there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
import numpy as np

from ec2_env.bench.grid import strategy_of
from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError
from ec2_env.models.loading import load_model
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import Prepared
from ec2_env.task import task_domains
from ec2_env.training.evaluation import half_width
from ec2_env.training.experiment import Experiment, plan_of, resolved
from ec2_env.training.experiment_run import one_seed, settle_folder
from ec2_env.training.experiment_summary import STEP_ROUTING
from ec2_env.training.feature_evaluation import FIXED, chosen_keys, measured_gaps, played
from ec2_env.training.methods import method
from ec2_env.training.stages import Stages, write_whole

FEW = ("edge_only", "sketch_guided", "step_routing", "adaptive_assistance:redacted", "cloud_only")
"""Fixed strategies where an episode takes a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """From where to where.

    Attributes:
        name: Of the folder and the row.
        source: Settings of the env that the policy is trained on.
        target: Settings of the env that it is played on.
    """

    name: str
    source: Mapping[str, Any]
    target: Mapping[str, Any]


def over_domains(folds: int, settings: Mapping[str, Any]) -> list[Transfer]:
    """Returns a transfer for each fold of the domains: trained on the others, played on the fold.

    Raises:
        ConfigurationError: if there are not so many domains, or fewer than two folds.
    """
    domains = sorted(task_domains())
    if not 2 <= folds <= len(domains):
        raise ConfigurationError(f"folds is {folds}, expected 2 to {len(domains)}")
    parts = [domains[start::folds] for start in range(folds)]
    return [
        Transfer(
            name="to_" + "_".join(part),
            source={**settings, "domain": ",".join(one for one in domains if one not in part)},
            target={**settings, "domain": ",".join(part)},
        )
        for part in parts
    ]


def over_languages(settings: Mapping[str, Any]) -> list[Transfer]:
    """Returns the transfer from English to Chinese, and back."""
    return [
        Transfer(name=f"{one}_to_{other}", source={**settings, "language": one}, target={**settings, "language": other})
        for one, other in (("en", "zh"), ("zh", "en"))
    ]


def over_models(edge: str, cloud: str, settings: Mapping[str, Any]) -> list[Transfer]:
    """Returns the transfer to another pair of models.

    Args:
        edge: Specification of the target's edge model.
        cloud: Of its cloud model.
        settings: With the source's models.
    """
    return [Transfer(name="to_other_models", source=settings, target={**settings, "edge": edge, "cloud": cloud})]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one transfer: returns of the same test episodes of the target.

    Attributes:
        name: Of the transfer.
        fixed: Returns with each fixed strategy.
        source: Returns with the policy trained on the source, for each seed.
        target: The same of the one trained on the target; empty if none was.
    """

    name: str
    fixed: dict[str, list[float]]
    source: list[list[float]]
    target: list[list[float]]


def transfer(one: Transfer, experiment: Experiment, episodes: int | None, out: Path) -> Outcome:
    """Trains on both sides, plays the target; takes up what was finished before.

    Args:
        one: From where to where.
        experiment: How to train; its settings are those of the source or the target instead.
        episodes: Test episodes of the target that are played; all for None.
        out: Folder of this transfer.
    """
    plan = _plain(plan_of(experiment))
    keys = some_keys(one.target, plan.test_seeds, episodes)
    real = not all(load_model(spec).card.simulated for spec in _models(one.target))
    stages = Stages(out, {"target": one.target, "episodes": episodes, "test_seeds": plan.test_seeds})
    specs = FEW if real else FIXED
    fixed = {
        spec: stages.records(f"fixed_{number}", partial(_brought, spec, one.target, keys, spec), list[float])
        for number, spec in enumerate(specs)
    }
    sides: dict[str, list[list[float]]] = {"source": [], "target": []}
    for side, settings in (("source", one.source), ("target", one.target)):
        if side == "target" and real:
            continue
        trained = replace(plan, settings=settings)
        folder = out / side
        settle_folder(folder, resolved(msgspec.structs.replace(experiment, settings=dict(settings)), trained))
        for seed in experiment.all_seeds():
            one_seed(experiment.method, trained, experiment.log_to, seed, folder / f"seed{seed}")
            spec = f"learned:{folder / f'seed{seed}'}"
            sides[side].append(
                stages.records(f"{side}_{seed}", partial(_brought, spec, one.target, keys, f"{side}, seed {seed}"), list[float])
            )
    return Outcome(name=one.name, fixed=fixed, **sides)


def _plain(plan: Any) -> Any:
    """Returns a plan that does not play what is not needed here."""
    known = {one.name for one in fields(plan)}
    return replace(plan, compared=False) if "compared" in known else plan


def _models(settings: Mapping[str, Any]) -> tuple[str, str]:
    return settings.get("edge", "sim:qwen3.5-9b"), settings.get("cloud", "sim:gpt-5.4")


def some_keys(settings: Mapping[str, Any], test_seeds: int, episodes: int | None) -> list[EpisodeKey]:
    """Returns test episodes of an env, evenly chosen among all if not all are wanted."""
    keys = chosen_keys(DecisionEnv(**settings), "test", range(test_seeds))
    if episodes is None or episodes >= len(keys):
        return keys
    return [keys[place] for place in np.linspace(0, len(keys) - 1, episodes).round().astype(int)]


def _brought(spec: str, settings: Mapping[str, Any], keys: Sequence[EpisodeKey], name: str) -> list[float]:
    """Returns the returns of episodes with a strategy, and says which one plays: with real models that takes minutes."""
    print(f"  {name}: {len(keys)} test episodes", flush=True)
    strategy = strategy_of(spec)
    if isinstance(strategy, Prepared):
        strategy = strategy.prepare(measured_gaps(settings))
    return list(played(spec, strategy, settings, keys).returns)


def best_fixed(outcome: Outcome) -> str:
    """Returns the fixed strategy of the highest mean on the target."""
    return max(outcome.fixed, key=lambda spec: fmean(outcome.fixed[spec]))


def compared(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Returns the figures of each transfer, and of all together if there are several: paired differences and 95% half-widths.

    Returns of the seeds are averaged for each episode first, so that the intervals are over episodes.
    """
    rows = [_row(one.name, one, best_fixed(one)) for one in outcomes]
    if len(outcomes) > 1 and len({tuple(one.fixed) for one in outcomes}) == 1:
        whole = Outcome(
            name="all together",
            fixed={spec: [value for one in outcomes for value in one.fixed[spec]] for spec in outcomes[0].fixed},
            source=_joined([one.source for one in outcomes]),
            target=_joined([one.target for one in outcomes]),
        )
        rows.append(_row(whole.name, whole, best_fixed(whole)))
    return rows


def _joined(parts: Sequence[Sequence[Sequence[float]]]) -> list[list[float]]:
    return [[value for part in parts for value in part[seed]] for seed in range(min(map(len, parts)))]


def _row(name: str, one: Outcome, best: str) -> dict[str, Any]:
    mine = np.mean(one.source, axis=0)
    row: dict[str, Any] = {
        "transfer": name,
        "episodes": len(mine),
        "return": float(mine.mean()),
        "by_seed": [fmean(seed) for seed in one.source],
        "best_fixed": best,
        "minus_best_fixed": _gap(mine, one.fixed[best]),
        "minus_step_routing": _gap(mine, one.fixed[STEP_ROUTING]),
    }
    if one.target:
        own = np.mean(one.target, axis=0)
        row |= {"trained_on_target": float(own.mean()), "minus_trained_on_target": _gap(mine, own)}
    return row


def _gap(mine: Any, theirs: Any) -> dict[str, float]:
    paired = np.asarray(mine) - np.asarray(theirs)
    return {"mean": float(paired.mean()), "half_width": half_width(paired.tolist())}


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns the figures as a Markdown table."""
    lines = [
        "| transfer | episodes | return | minus the one trained there | minus the best fixed strategy | minus step_routing |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        best = f"{_half(row['minus_best_fixed'])} ({row['best_fixed']})"
        own = _half(row["minus_trained_on_target"]) if "minus_trained_on_target" in row else "not trained there"
        step = _half(row["minus_step_routing"])
        lines.append(f"| {row['transfer']} | {row['episodes']} | {row['return']:.3f} | {own} | {best} | {step} |")
    return "\n".join(lines)


def _half(gap: Mapping[str, float]) -> str:
    return f"{gap['mean']:+.3f} ± {gap['half_width']:.3f}"


def run(transfers: Sequence[Transfer], experiment: Experiment, episodes: int | None, out: Path) -> list[dict[str, Any]]:
    """Runs transfers, prints and saves their figures.

    Raises:
        ConfigurationError: if what the method trains does not decide about the cloud.
    """
    if not method(experiment.method).decides:
        raise ConfigurationError(f"{experiment.method} trains no policy for the decision about the cloud; take bandit or ppo")
    outcomes = []
    for one in transfers:
        print(f"{one.name}: {_short(one.source)} -> {_short(one.target)}", flush=True)
        outcomes.append(transfer(one, experiment, episodes, out / one.name))
    rows = compared(outcomes)
    write_whole(out / "generalization.json", msgspec.json.format(msgspec.json.encode(rows)) + b"\n")
    write_whole(out / "generalization.md", f"{table(rows)}\n".encode())
    print(table(rows), flush=True)
    return rows


def _short(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items()) or "everything"
