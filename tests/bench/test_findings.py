"""The findings: a rule that can say no, statistics of made-up means, and one small run of everything."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ec2_env.bench import findings, findings_abilities, findings_balance, findings_plan, findings_sweep, findings_table
from ec2_env.bench.findings_plan import COLLABORATIONS, CONTROLLED, EXTERNAL, FindingsPlan, Played, abilities, configs
from ec2_env.bench.findings_rules import (
    COMPLETION,
    COST,
    PRIVACY,
    Array,
    Finding,
    Hypothesis,
    Key,
    change,
    decided,
    means,
    returns,
    spread,
    sweep,
)
from ec2_env.bench.grid import Cell
from ec2_env.bench.progress import Quiet
from ec2_env.bench.records import EpisodeRecord
from ec2_env.cli import main
from ec2_env.errors import ConfigurationError
from ec2_env.models.profile import load_profile
from ec2_env.reward import RewardWeights
from ec2_env.rollout import EpisodeKey

DRAWS = 40
TINY = FindingsPlan(tasks=4, trials=1, oracle_tasks=2, oracle_draws=1, draws=DRAWS)
CLAIM = Hypothesis(name="0.1", text="it is more", statistic="something", above=0.1)


def figures(completion: float, cost: float = 0.0, privacy: float = 1.0, exposure: float = 0.0, noise: float = 0.0) -> Array:
    """Returns means that do not differ between draws, but for a little noise in completion."""
    found = np.tile(np.array([completion, cost, privacy, exposure, 0.0]), (1 + DRAWS, 1))
    found[1:, COMPLETION] += noise * np.linspace(-1, 1, DRAWS)
    return found


def around(value: float, half: float) -> Array:
    return np.concatenate([[value], np.linspace(value - half, value + half, DRAWS)])


# -- the rule


@pytest.mark.parametrize(
    ("value", "half", "verdict"),
    [(0.3, 0.1, "reproduced"), (0.3, 0.3, "not reproduced"), (0.0, 0.3, "not reproduced"), (-0.1, 0.1, "contradicted")],
)
def test_interval_decides_a_hypothesis_and_its_estimate_alone_does_not(value: float, half: float, verdict: str) -> None:
    assert decided(CLAIM, around(value, half)).verdict == verdict


def test_bias_of_a_best_of_several_is_taken_off_once_from_the_estimate_and_twice_from_the_draws() -> None:
    values = np.concatenate([[0.5], np.linspace(0.5, 0.7, DRAWS)])
    peaked = Hypothesis(name="0.2", text="", statistic="", peaked=True)
    plain, corrected = decided(CLAIM, values), decided(peaked, values)
    assert (plain.estimate, corrected.estimate) == (0.5, pytest.approx(0.4))
    assert corrected.low == pytest.approx(plain.low - 0.2)
    assert (corrected.low + corrected.high) / 2 == pytest.approx(corrected.estimate)


@pytest.mark.parametrize(
    ("estimates", "words"),
    [
        ([0.9, 0.9], "reproduced (2 of 2 hypotheses)"),
        ([0.9, 0.1], "reproduced in part (1 of 2 hypotheses)"),
        ([0.9, -0.9], "reproduced in part (1 of 2 hypotheses; 1 contradicted)"),
        ([0.1, 0.1], "not reproduced (0 of 2 hypotheses)"),
        ([0.1, -0.9], "not reproduced (0 of 2 hypotheses; 1 contradicted)"),
        ([-0.9, -0.9], "contradicted (0 of 2 hypotheses; 2 contradicted)"),
    ],
)
def test_finding_is_what_its_hypotheses_come_to_and_checks_do_not_count(estimates: list[float], words: str) -> None:
    check = Hypothesis(name="0.9", text="", statistic="", counts=False)
    parts = [*(decided(CLAIM, around(value, 0.05)) for value in estimates), decided(check, around(5, 0.1))]
    assert Finding(number=1, claim="", setup="", tested=parts, exhibits=[]).verdict == words


# -- means and statistics


def test_means_are_over_tasks_with_privacy_over_episodes_that_have_something_to_keep(
    plain_record: Callable[..., EpisodeRecord],
) -> None:
    records = [
        plain_record(
            Cell("edge_only", "e", "c"), EpisodeKey(task=task, language="en", split="test", seed=0, trial=trial), done, **more
        )
        for task, trial, done, more in (
            ("one", 0, 1.0, {"privacy": 0.5}),
            ("one", 1, 0.0, {"privacy": 0.5}),
            ("two", 0, 0.8, {"units": 0, "privacy": 1.0}),
            ("two", 1, 0.6, {"status": "error"}),
            ("left out", 0, 0.0, {}),
        )
    ]
    found = means(records, ("one", "two"), draws=200)["edge_only", "e"]
    assert found.shape == (201, 5)
    assert found[0, COMPLETION] == pytest.approx((1.0 + 0.0 + 0.8) / 3)
    assert found[0, PRIVACY] == 0.5
    only_one, only_two = found[:, COMPLETION] == 0.5, found[:, COMPLETION] == 0.8
    assert only_one.any() and only_two.any()
    assert set(found[only_two, PRIVACY]) == {1.0}


def test_two_calls_draw_the_same_tasks(plain_record: Callable[..., EpisodeRecord]) -> None:
    def one(strategy: str) -> Array:
        keys = [EpisodeKey(task=task, language="en", split="test", seed=0, trial=0) for task in "abc"]
        records = [plain_record(Cell(strategy, None, "c"), key, number / 3) for number, key in enumerate(keys)]
        return means(records, tuple("abc"), draws=20)[strategy, None]

    assert np.array_equal(one("left"), one("right"))


def test_sweep_holds_the_return_at_all_weights() -> None:
    mean = figures(0.6, cost=0.5, exposure=0.4)
    found = sweep(mean)
    assert found.shape == (1 + DRAWS, 11, 11)
    assert found[0, 2, 7] == pytest.approx(returns(mean, RewardWeights(cost=0.2, privacy=0.7))[0])
    assert found[0, 0, 0] == pytest.approx(0.6)


def test_change_is_that_of_the_line_through_all_places() -> None:
    values = [figures(value)[:, COMPLETION] for value in (0.1, 0.4, 0.3, 0.6)]
    slope = np.polyfit([0.0, 1.0, 2.0, 3.0], [0.1, 0.4, 0.3, 0.6], 1)[0]
    assert change([0.0, 1.0, 2.0, 3.0], values) == pytest.approx(np.full(1 + DRAWS, 3 * slope))
    assert spread(values) == pytest.approx(np.full(1 + DRAWS, 0.5))


# -- findings on made-up means


def balanced(**collaborations: Array) -> Played:
    """Returns two extremes and, for both edge models, the named strategies; others do as the edge alone."""
    found: dict[Key, Array] = {("cloud_only", None): figures(0.7, cost=1.0, privacy=0.0, exposure=1.0)}
    for edge in (f"sim:{findings_plan.WEAK}", f"sim:{findings_plan.STRONG}"):
        found["edge_only", edge] = figures(0.4)
        found |= {(name, edge): collaborations.get(name, figures(0.4)) for name in COLLABORATIONS}
    return Played(plan=FindingsPlan(draws=DRAWS), parts={"balance": found}, few={})


def verdicts(finding: Finding) -> dict[str, str]:
    return {one.hypothesis.name: one.verdict for one in finding.tested}


def test_balance_is_found_where_a_collaboration_does_as_the_cloud_for_a_tenth() -> None:
    found = findings_balance.balance(balanced(step_routing=figures(0.7, cost=0.1, privacy=0.9, exposure=0.1)))
    assert found.verdict == "reproduced (10 of 10 hypotheses)"
    step = next(row for row in found.exhibits[0].rows if row[0] == "step_routing")
    assert step[6] == "yes" and step[7].startswith("+0.270")


def test_mixture_of_the_extremes_in_disguise_is_no_better_balance() -> None:
    half = figures(0.55, cost=0.5, privacy=0.5, exposure=0.5)
    found = findings_balance.balance(balanced(step_routing=half))
    results = dict(zip([one.hypothesis.name for one in found.tested], found.tested, strict=True))
    assert results["1.2"].verdict == "contradicted"
    assert results["1.3"].estimate == pytest.approx(0.0)
    assert (verdicts(found)["1.3"], verdicts(found)["1.4"]) == ("not reproduced", "contradicted")
    assert results["1.5"].estimate == 0.0 and results["1.5"].verdict == "contradicted"


def test_loss_beyond_the_cloud_raises_the_bar() -> None:
    alone, cloud = figures(0.4), figures(0.7, cost=1.0, privacy=0.0)
    assert findings_balance.over_mixture(figures(0.8, cost=2.0), alone, cloud, [COST])[0] == pytest.approx(-0.2)
    assert findings_balance.over_mixture(figures(0.5), alone, alone)[0] == pytest.approx(0.1)


def swept(figure: Callable[[str, int], Array]) -> Played:
    """Returns made-up means of the sweep, by strategy and number of the ability, the same at all readinesses to ask."""
    found: dict[Key, Array] = {}
    for number, ability in enumerate(abilities()):
        for name in ("edge_only", *COLLABORATIONS, "cloud_only", *CONTROLLED):
            for named in (findings_plan.edge_at, findings_plan.asking_edge_at):
                found[findings_sweep.key_at(name, ability, named)] = figure(name, number)
    return Played(plan=FindingsPlan(draws=DRAWS), parts={"sweep": found, "help": found}, few={})


def converging(name: str, number: int) -> Array:
    place = COLLABORATIONS.index(name) if name in COLLABORATIONS else 0
    if name == "cloud_only":
        return figures(0.75, cost=1.0, privacy=0.1, exposure=0.9)
    return figures(0.2 + 0.12 * number + 0.03 * place * (1 - number / 4), privacy=1 - place / 5)


def test_strategies_that_meet_at_the_cloud_converge_and_those_that_stay_apart_do_not() -> None:
    assert findings_sweep.convergence(swept(converging)).verdict == "reproduced (6 of 6 hypotheses)"
    apart = findings_sweep.convergence(swept(lambda name, number: converging(name, 0)))
    assert set(verdicts(apart).values()) == {"not reproduced", "contradicted", "reproduced"}
    assert verdicts(apart)["2.1"] == "not reproduced" and verdicts(apart)["2.2"] == "contradicted"


def test_preference_shifts_only_if_edge_controlled_strategies_gain_on_the_others() -> None:
    def shifting(name: str, number: int) -> Array:
        return figures(0.3 + 0.1 * number if name in CONTROLLED else 0.5)

    found = findings_sweep.preference(swept(shifting))
    assert found.verdict == "reproduced (3 of 3 hypotheses)"
    assert found.exhibits[0].rows[0][8] in EXTERNAL and found.exhibits[0].rows[-1][8] in CONTROLLED
    back = findings_sweep.preference(swept(lambda name, number: shifting(name, 4 - number)))
    assert back.verdict == "contradicted (0 of 3 hypotheses; 3 contradicted)"


def raised_by(gains: dict[str, float], oracle: float) -> Played:
    """Returns made-up means in which raising a thing adds to completion."""
    found: dict[Key, Array] = {}
    for what, edge in findings_plan.raised().items():
        for name in ("edge_only", *findings_abilities.STRATEGIES):
            found[name, edge] = figures(
                0.4 + (0 if name == "edge_only" else gains.get(what, 0.01 * (what != "nothing"))), noise=1e-4
            )
    for edge in findings_plan.readier_edges():
        for name in ("adaptive_assistance", *(f"step_routing:threshold={one:g}" for one in findings_plan.THRESHOLDS)):
            found[name, edge] = figures(0.4)
    few = {**found, ("oracle_decision:draws=2", f"sim:{findings_plan.WEAK}"): figures(0.4 + oracle)}
    return Played(plan=FindingsPlan(draws=DRAWS), parts={"abilities": found}, few=few)


def test_abilities_matter_most_only_if_no_other_skill_brings_more() -> None:
    both = {"invocation decisions": 0.2, "instruction following": 0.1}
    assert findings_abilities.marginal(raised_by(both, 0.3)).verdict == "reproduced (7 of 7 hypotheses)"
    beaten = verdicts(findings_abilities.marginal(raised_by({**both, "planning": 0.25}, 0.2)))
    assert (beaten["4.2"], beaten["4.5"], beaten["4.6"], beaten["4.7"]) == (
        "reproduced",
        "contradicted",
        "reproduced",
        "contradicted",
    )


def test_calling_as_often_is_held_against_the_setting_that_does() -> None:
    played = raised_by({"invocation decisions": 0.1}, 0.0)
    found, edges, readier = dict(played.parts["abilities"]), findings_plan.raised(), findings_plan.readier_edges()

    def called(key: Key, calls: float, completion: float) -> None:
        found[key] = figures(completion)
        found[key][:, findings_abilities.CALLS] = calls

    for name, more, less in (
        ("step_routing", ("step_routing:threshold=1.3", readier[0]), ("step_routing:threshold=2.1", readier[0])),
        ("adaptive_assistance", ("adaptive_assistance", readier[0]), ("adaptive_assistance", readier[1])),
    ):
        called(less, 2, 0.3)
        called((name, edges["nothing"]), 4, 0.4)
        called(more, 6, 0.6)
        called((name, edges["invocation decisions"]), 5, 0.55)
    assert findings_abilities.at_equal_calls(found) == pytest.approx(np.full(1 + DRAWS, 0.05))


# -- what is played


def test_sweep_goes_through_the_fitted_abilities_and_a_step_beyond_each() -> None:
    at = abilities()
    weak, strong = load_profile(findings_plan.WEAK), load_profile(findings_plan.STRONG)
    assert at[1] == pytest.approx(weak.ability, abs=1e-3) and at[3] == pytest.approx(strong.ability, abs=1e-3)
    assert np.ptp(np.diff(at)) < 3e-3 and at[0] < weak.ability < strong.ability < at[-1]
    for ability, profile in ((at[1], weak), (at[3], strong)):
        rate = float(findings_plan.asking_edge_at(ability).rpartition("=")[2])
        assert rate == pytest.approx(profile.help_rate, rel=0.01)


def test_everything_is_raised_by_as_much_and_one_at_a_time() -> None:
    own = load_profile(findings_plan.WEAK)
    for name, spec in findings_plan.raised().items():
        profile = load_profile(spec.removeprefix("sim:"))
        raised = [skill for skill, value in own.skills.items() if profile.skills[skill] != value]
        assert len(raised) == (name in own.skills or name == "instruction following")
        assert all(profile.skills[skill] == pytest.approx(own.skills[skill] + 0.5) for skill in raised)
        assert (profile.follow > own.follow) == (name in ("following advice", "instruction following"))
        assert (profile.entropy_doubt > own.entropy_doubt) == (name == "invocation decisions")
        assert profile.draws == own.draws
    odds = [chance / (1 - chance) for chance in (0.8, findings_plan.raised_chance(0.8, own))]
    assert np.log(odds[1] / odds[0]) == pytest.approx(own.discrimination * 0.5)


def test_only_what_the_asked_findings_need_is_played() -> None:
    assert list(configs(FindingsPlan(findings=(2,)))) == ["sweep"]
    assert list(configs(FindingsPlan(findings=(3, 4)))) == ["sweep", "help", "abilities", "calling", "oracle"]
    small = configs(TINY)
    assert {len(config.suite.tasks) for name, config in small.items() if name != "oracle"} == {4}
    assert set(small["oracle"].suite.tasks) <= set(small["abilities"].suite.tasks)


@pytest.mark.parametrize("wrong", [{"tasks": 1}, {"tasks": 200}, {"oracle_tasks": 1}, {"trials": 0}, {"findings": (5,)}])
def test_plans_that_cannot_be_played_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError, match="expected"):
        FindingsPlan(**wrong)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Played]:
    """Returns a run of everything on four tasks."""
    path = tmp_path_factory.mktemp("findings")
    findings.play(TINY, path, workers=1, watch=Quiet(silent=True))
    return path, findings.read(TINY, path)


def test_four_findings_come_of_a_small_run_in_all_formats(small: tuple[Path, Played]) -> None:
    found = findings.judge(small[1])
    assert [finding.number for finding in found] == [1, 2, 3, 4]
    for shown in (findings_table.as_terminal(found, TINY), findings_table.as_markdown(found, TINY)):
        assert all(finding.verdict in shown and finding.claim.split()[0] in shown for finding in found)
        assert "Simulated models, on 4 of the 128 tasks" in shown and "not reproduced (interval includes" in shown
    data = json.loads(findings_table.as_json(found, TINY))
    assert [len(finding["hypotheses"]) for finding in data["findings"]] == [10, 7, 7, 11]
    assert all(one["low"] <= one["high"] for finding in data["findings"] for one in finding["hypotheses"])


def test_a_second_call_plays_nothing_and_finds_the_same(small: tuple[Path, Played]) -> None:
    path, before = small
    sizes = {file: file.stat().st_size for file in path.glob("*/results.jsonl")}
    findings.play(TINY, path, workers=1, watch=Quiet(silent=True))
    assert {file: file.stat().st_size for file in path.glob("*/results.jsonl")} == sizes
    again = findings.read(TINY, path)
    assert all(np.array_equal(again.few[key], before.few[key]) for key in before.few)


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="needs the extra plots")
def test_plots_are_drawn_alike_each_time(small: tuple[Path, Played], tmp_path: Path) -> None:
    from ec2_env.bench.findings_plots import draw

    files = draw(small[1], tmp_path)
    assert sorted(file.name for file in files) == [f"finding-{n}.{kind}" for n in (1, 2, 3, 4) for kind in ("png", "svg")]
    first = (tmp_path / "finding-2.svg").read_bytes()
    draw(replace(small[1], plan=replace(TINY, findings=(2,))), tmp_path)
    assert (tmp_path / "finding-2.svg").read_bytes() == first


def test_command_prints_verdicts_and_says_which_extra_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    words = ["findings", "--finding", "2", "--tasks", "2", "--trials", "1", "--workers", "1", "--out", str(tmp_path)]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert "Finding 2." in out and "Finding 3." not in out
    assert "pip install 'ec2-env[plots]'" in err
    assert json.loads((tmp_path / "findings.json").read_text())["findings"][0]["number"] == 2
    assert not list(tmp_path.glob("*.png"))
