"""What simulated models draw: luck that lasts over runs, entropy that falls over turns, a wish for help that has its moments."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean, pstdev

import pytest

from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.models.asking import WISH
from ec2_env.models.chances import luck
from ec2_env.models.draws import normal, percentile
from ec2_env.models.loading import load_model
from ec2_env.models.mind import Mind
from ec2_env.models.profile import load_profile
from ec2_env.models.sim import SimulatedModel
from ec2_env.rollout import EpisodeKey, play
from ec2_env.session import CloudSettings, Session
from ec2_env.strategy import load_strategy
from ec2_env.task import build_episode
from ec2_env.trace import CloudCall, EdgeTurn
from ec2_env.training.teacher import likely_lucks


def session(seed: int, trial: int = 0, **settings: float) -> Session:
    """Returns a running episode with a simulated edge."""
    profile = replace(load_profile("qwen3.5-9b"), **settings)
    edge = SimulatedModel(profile)
    return Session(build_episode("forward_invoice", seed, "en"), cloud=None, settings=CloudSettings(), edge=edge, trial=trial)


@pytest.mark.parametrize(("steadiness", "low", "high"), [(0.0, -0.1, 0.1), (0.5, 0.4, 0.6), (1.0, 0.999, 1.0)])
def test_luck_is_shared_between_runs_as_far_as_the_steadiness_says(steadiness: float, low: float, high: float) -> None:
    profile = replace(load_profile("qwen3.5-9b"), steadiness=steadiness)
    first, second = session(0, 0), session(0, 1)
    pairs = [tuple(_score(luck(profile, run, step, 0, 0)) for run in (first, second)) for step in range(1_500)]
    xs, ys = [a for a, _ in pairs], [b for _, b in pairs]
    covariance = fmean(x * y for x, y in pairs) - fmean(xs) * fmean(ys)
    assert low <= covariance / (pstdev(xs) * pstdev(ys)) <= high


def _score(uniform: float) -> float:
    """Returns the standard normal number that a uniform one came from, by bisection."""
    low, high = -9.0, 9.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if percentile(middle) < uniform else (low, middle)
    return low


@pytest.mark.parametrize("steadiness", [0.0, 0.3, 0.9, 1.0])
def test_luck_is_uniform_whatever_the_steadiness(steadiness: float) -> None:
    profile, run = replace(load_profile("qwen3.5-9b"), steadiness=steadiness), session(0)
    values = sorted(luck(profile, run, step, 0, 0) for step in range(1_000))
    assert max(abs(value - (rank + 0.5) / 1_000) for rank, value in enumerate(values)) < 0.06


def test_a_copy_with_other_luck_shares_nothing_with_what_will_happen() -> None:
    """Else a teacher that looks ahead on copies would know the part that all runs of an episode have in common."""
    env = DecisionEnv(task="forward_invoice", edge="sim:qwen3.5-9b@steadiness=1")
    env.begin("forward_invoice", "en", "train", 0, 0)
    assert env.session is not None
    own = luck(load_profile("qwen3.5-9b@steadiness=1"), env.session, 0, 0, 0)
    seen = set()
    for noise in likely_lucks(env, 3, 6):
        fork = env.session.fork()
        fork.noise = noise
        seen.add(luck(load_profile("qwen3.5-9b@steadiness=1"), fork, 0, 0, 0))
    assert own not in seen and len(seen) == 3
    assert env.session.fate == env.session.episode.key


def test_entropy_falls_over_the_first_turns() -> None:
    first, later = [], []
    for seed in range(12):
        run = session(seed, entropy_sd=0.0, entropy_task_sd=0.0, entropy_doubt=0.0, entropy_fail=0.0)
        first.append(run.signals().entropy or 0.0)
        for _ in range(4):
            run.edge_turn()
        later.append(run.signals().entropy or 0.0)
    assert min(first) > max(later)


def test_help_is_wished_for_before_the_first_change_and_the_end_and_after_a_failed_call() -> None:
    certain = {"help_rate": 2.5, "help_spread": 0.0, "ability": 40.0, "curiosity": 0.0}
    run = session(3, **certain)
    wishes, names = [], []
    while run.finish is None and run.step < run.max_steps:
        wishes.append(bool(run.signals().wants_help))
        run.edge_turn()
        names.append((run.records[-1].name, run.records[-1].wrote))
        run.next_step()
    first_write = next(number for number, (_, wrote) in enumerate(names) if wrote)
    assert wishes[first_write] and wishes[-1]
    assert sum(wishes) == 2


def test_the_readiness_to_ask_differs_between_episodes_but_not_in_the_mean() -> None:
    spread, values = 1.0, []
    for seed in range(400):
        run = session(seed % 20, seed // 20, help_spread=spread)
        assert isinstance(run.edge, Mind)
        values.append(run.edge._disposition())
    assert 0.7 < fmean(values) < 1.4
    assert min(values) < 0.3 and max(values) > 3


# -- profiles by specification


def test_a_specification_changes_settings_and_keeps_the_draws() -> None:
    plain, changed = load_profile("qwen3.5-9b"), load_profile("qwen3.5-9b@ability=1.5,skills.planning=0.4")
    assert (changed.ability, changed.skills["planning"], changed.draws) == (1.5, 0.4, plain.draws)
    assert changed.name == "qwen3.5-9b@ability=1.5,skills.planning=0.4" == load_model(f"sim:{changed.name}").card.name
    assert plain.skills["planning"] == 0.0


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("qwen3.5-9b@abilty=1", UnknownName, "abilty"),
        ("qwen3.5-9b@ability=high", ConfigurationError, "expected a number"),
        ("qwen3.5-9b@ability=nan", ConfigurationError, "finite"),
        ("qwen3.5-9b@skills.typing=1", UnknownName, "typing"),
        ("qwen3.5-9b@family=1", UnknownName, "family"),
        ("nothing.toml", ConfigurationError, "cannot be read"),
    ],
)
def test_a_specification_that_makes_no_sense_is_refused(spec: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        load_profile(spec)


def test_the_edge_family_scales_with_its_ability() -> None:
    weak, strong = load_model("sim:edge@ability=-3").card, load_model("sim:edge@ability=3,parameters=27e9").card
    assert (weak.parameters, strong.parameters) == (9e9, 27e9)


def test_percentile_is_the_inverse_of_normal() -> None:
    assert 0.4 < fmean(percentile(normal("percentile", number)) for number in range(300)) < 0.6


def test_calling_for_advice_is_a_turn_of_the_edge_and_no_probe() -> None:
    strategy = load_strategy("adaptive_assistance")
    for seed in range(6):
        key = EpisodeKey(task="forward_invoice", language="en", split="test", seed=seed, trial=0)
        done = play(DecisionEnv(task="forward_invoice"), strategy, key)
        turns = [event for event in done.events if isinstance(event, EdgeTurn)]
        calls = sum(isinstance(event, CloudCall) for event in done.events)
        assert not any(turn.probe for turn in turns)
        assert sum(turn.text == WISH for turn in turns) == calls
        assert done.result["edge_flops"] == done.result["edge_flops_without_probes"] > 0
