"""The trained router: it learns from runs, carries over to tasks it has not seen, and never sees the test split."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ec2_env import cli
from ec2_env import task as task_module
from ec2_env.errors import ConfigurationError, EC2Error, UnknownName
from ec2_env.task import task_domains, tasks
from ec2_env.training import task_features
from ec2_env.training.estimators import ESTIMATORS, EstimatorName, fit_irt, fit_mf
from ec2_env.training.router import Router, cross_estimates, fit_router, folds, load_router
from ec2_env.training.router_evaluation import auc, evaluate, spearman, table
from ec2_env.training.scored_runs import Run, Scores
from ec2_env.training.task_features import SIZE, Pair, features

CLOUD, EDGES = "big", ("small", "middle")
NAMES: tuple[EstimatorName, ...] = tuple(ESTIMATORS)


def email() -> list[Pair]:
    return [(name, "en") for name in task_domains()["email"] if "en" in tasks.get(name).languages]


def made_up_runs(pairs: Sequence[Pair], seeds: range = range(3), noise: float = 0.1) -> list[Run]:
    """Returns runs in which the cloud adds much in every third task and little in the others."""
    rng = np.random.default_rng(seeds.start)
    level = {CLOUD: (0.9, 0.8), "middle": (0.4, 0.75), "small": (0.1, 0.6)}
    return [
        Run(name, language, model, seed, float(np.clip(level[model][number % 3 > 0] + rng.normal(0, noise), 0, 1)))
        for number, (name, language) in enumerate(pairs)
        for model in level
        for seed in seeds
    ]


@pytest.fixture(scope="module")
def scores() -> Scores:
    return Scores.of(made_up_runs(email()))


@pytest.fixture(scope="module")
def router(scores: Scores) -> Router:
    return fit_router(scores, CLOUD)


@pytest.mark.parametrize("name", ["irt", "mf"])
def test_estimates_of_tasks_that_were_run_follow_their_runs(scores: Scores, name: EstimatorName) -> None:
    found = fit_router(scores, CLOUD, name)
    for edge in EDGES:
        gaps = found.gaps(edge, scores.pairs)
        large, small = gaps[::3], [gap for number, gap in enumerate(gaps) if number % 3]
        assert min(large) > max(small), edge


@pytest.mark.parametrize("name", NAMES)
def test_estimates_are_shares_and_every_model_has_its_level(scores: Scores, name: EstimatorName) -> None:
    found = fit_router(scores, CLOUD, name).estimates(scores.pairs)
    assert found.shape == scores.mean.shape and ((found >= 0) & (found <= 1)).all()
    assert np.abs(found.mean(axis=0) - scores.mean.mean(axis=0)).max() < 0.08


@pytest.mark.parametrize("name", NAMES)
def test_unseen_tasks_are_told_apart_where_features_tell(name: EstimatorName) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(0, 1, (200, 4)) / 2
    share = 1 / (1 + np.exp(-(2 * x[:, :1] + np.array([[0.0, 1.0]]))))
    fitted = ESTIMATORS[name](x[:150], share[:150], np.full((150, 2), 3.0))
    assert spearman(fitted.estimate(x[150:])[:, 0], share[150:, 0]) > 0.9


def test_pooled_runs_of_other_models_fill_what_a_model_lacks() -> None:
    hard = np.linspace(-2, 2, 40)
    share = 1 / (1 + np.exp(np.array([[-0.5, 0.5, 1.5]]) * -1 + hard[:, None]))
    runs = np.full(share.shape, 4.0)
    runs[::2, 0] = 0
    x = np.zeros((40, 1))
    for fit in (fit_irt, fit_mf):
        fitted = fit(x, np.where(runs > 0, share, 0.0), runs)
        guess = fitted.estimate(x, np.array(fitted.own))[::2, 0]
        assert spearman(guess, share[::2, 0]) > 0.9, fit.__name__


@pytest.mark.parametrize("name", NAMES)
def test_same_runs_in_any_order_give_the_same_file(tmp_path: Path, name: EstimatorName) -> None:
    runs = made_up_runs(email())
    for file, given in (("one", runs), ("two", runs[::-1])):
        fit_router(Scores.of(sorted(given) if file == "one" else given), CLOUD, name).save(tmp_path / file)
    one, two = (json.loads((tmp_path / file).read_text(encoding="utf-8")) for file in ("one", "two"))
    assert one.keys() == two.keys()
    for key in ("weights", "own", "loadings"):
        np.testing.assert_allclose(one["factors"][key], two["factors"][key], atol=1e-8)
    fit_router(Scores.of(runs), CLOUD, name).save(tmp_path / "three")
    fit_router(Scores.of(runs), CLOUD, name).save(tmp_path / "four")
    assert (tmp_path / "three").read_bytes() == (tmp_path / "four").read_bytes()


def test_router_in_a_file_decides_as_before(router: Router, tmp_path: Path) -> None:
    router.save(tmp_path / "folder" / "router.json")
    again = load_router(str(tmp_path / "folder" / "router.json"))
    pairs = [*email(), ("meeting_prep", "zh")]
    assert again.gaps("small", pairs) == router.gaps("small", pairs)


def test_ratio_is_kept_among_tasks_that_were_run(router: Router) -> None:
    for ratio in (0.0, 0.25, 0.5, 1.0):
        routed = [router.routes("small", pair, ratio) for pair in router.pairs]
        assert sum(routed) == round(ratio * len(router.pairs))


def test_a_task_that_was_never_run_is_ranked_among_cross_validated_estimates(router: Router) -> None:
    other = ("meeting_prep", "zh")
    assert other not in router.pairs
    assert router.routes("small", other, 1.0) == (router.gaps("small", [other])[0] >= min(_unseen_gaps(router)))
    assert not router.routes("small", other, 0.0)


def _unseen_gaps(router: Router) -> list[float]:
    unseen = np.array(router.unseen)
    found: list[float] = (unseen[:, router.models.index(CLOUD)] - unseen[:, router.models.index("small")]).round(6).tolist()
    return found


def test_runs_of_a_fold_have_no_effect_on_its_estimates(scores: Scores) -> None:
    fold = folds(scores.pairs)[0]
    changed = scores.mean.copy()
    changed[fold] = 0.5
    other = Scores(scores.pairs, scores.models, changed, scores.runs)
    before, after = cross_estimates(scores, "irt"), cross_estimates(other, "irt")
    assert np.array_equal(before[fold], after[fold])
    rest = [n for n in range(len(scores.pairs)) if n not in fold]
    assert not np.array_equal(before[rest], after[rest])


def test_folds_hold_every_pair_once_and_keep_languages_together() -> None:
    pairs = [(name, language) for name in tasks.names()[:40] for language in tasks.get(name).languages]
    dealt = folds(pairs)
    assert sorted(n for fold in dealt for n in fold) == list(range(len(pairs)))
    fold_of = {n: number for number, fold in enumerate(dealt) for n in fold}
    assert all(fold_of[a] == fold_of[b] for a in fold_of for b in fold_of if pairs[a][0] == pairs[b][0])


def test_features_are_read_from_the_train_split_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def build(*key: Any) -> Any:
        asked.append(key)
        return task_module.build_episode(*key)

    monkeypatch.setattr(task_features, "build_episode", build)
    task_features._features.cache_clear()
    assert features([("forward_invoice", "en")]).shape == (1, SIZE)
    assert asked and all(key[-1] == "train" for key in asked)


def test_features_are_finite_and_parts_have_unit_length() -> None:
    found = features([*email()[:5], ("vendor_compare", tasks.get("vendor_compare").languages[0])])
    assert np.isfinite(found).all()
    names = found[:, len(task_features.NUMBERS) : len(task_features.NUMBERS) + task_features.KINDS]
    np.testing.assert_allclose(np.linalg.norm(names, axis=1), 1.0)
    assert len({tuple(row) for row in found.tolist()}) == len(found)


def test_hash_of_a_word_is_the_same_everywhere() -> None:
    assert [task_features._place(word)[0] % 256 for word in ("invoice", "发票")] == [27, 36]


def test_unknown_names_are_refused_with_a_hint(router: Router, scores: Scores) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'small'"):
        router.routes("smal", router.pairs[0], 0.25)
    with pytest.raises(UnknownName, match="model with runs"):
        fit_router(scores, "huge")
    with pytest.raises(ConfigurationError, match="there is none"):
        Scores.of([])


@pytest.mark.parametrize("text", ["", "{}", "[1]", "\x00", '{"estimator": "irt"}'])
def test_file_that_is_no_router_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.json").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match="is not a router"):
        load_router(str(tmp_path / "bad.json"))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("format", 2),
        ("cloud", "none"),
        ("center", [0.0]),
        ("unseen", []),
        ("models", ["big"]),
        ("pairs", [["forward_invoice", "en"]]),
    ],
)
def test_router_whose_parts_do_not_fit_is_refused(router: Router, tmp_path: Path, part: str, value: Any) -> None:
    router.save(tmp_path / "router.json")
    held = json.loads((tmp_path / "router.json").read_text(encoding="utf-8"))
    (tmp_path / f"{part}.json").write_text(json.dumps({**held, part: value}), encoding="utf-8")
    with pytest.raises(ConfigurationError, match="is not a router of this version"):
        load_router(str(tmp_path / f"{part}.json"))


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_router(str(tmp_path / "none.json"))


def test_area_under_the_curve_counts_pairs() -> None:
    told, passed = np.array([0.1, 0.4, 0.4, 0.9]), np.array([0.0, 0.0, 1.0, 1.0])
    assert auc(told, passed) == pytest.approx((1 + 0.5 + 1 + 1) / 4)
    assert auc(told, np.ones(4)) == 0.5


def test_rank_correlation_shares_ranks_among_ties() -> None:
    assert spearman(np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 90.0])) == pytest.approx(1)
    assert spearman(np.array([1.0, 1.0, 2.0]), np.array([3.0, 1.0, 2.0])) == pytest.approx(0.0)
    assert spearman(np.ones(3), np.arange(3.0)) == 0.0


def test_evaluation_ranks_the_truth_first_and_random_between() -> None:
    rows = evaluate(made_up_runs(email()), made_up_runs(email(), range(5, 9)), CLOUD)
    named = {(row.name, row.seen): row for row in rows}
    best, chance = named["the true gap", True].routed["small"], named["random", False].routed["small"]
    for (name, seen), row in named.items():
        if row.routed and name != "random":
            found = row.routed["small"]
            assert found.completion <= best.completion + 1e-9, name
            if seen:
                assert found.completion - found.gain == pytest.approx(chance.completion), name
    irt = named["irt", True]
    assert irt.auc is not None and irt.auc > 0.8 and irt.routed["small"].correlation > 0.5
    assert table(rows).count("\n") == len(rows) + 1


def test_evaluation_refuses_runs_of_other_tasks() -> None:
    runs = made_up_runs(email())
    with pytest.raises(ConfigurationError, match="not of the same tasks"):
        evaluate(runs, made_up_runs(email()[1:]), CLOUD)
    with pytest.raises(ConfigurationError, match="not of the same tasks"):
        evaluate(runs, [run for run in runs if (run.task, run.model) != (email()[0][0], "small")], CLOUD)


SUITE = """
[tiny]
about = "for tests"
tasks = ["forward_invoice", "meeting_request", "meeting_prep", "largest_text"]
primary = true
seeds = 1
trials = 1
calibration_seeds = 1
edges = ["sim:qwen3.5-9b"]
strategies = ["task_routing"]
"""


def test_command_fits_on_a_suite_and_on_a_run_and_bench_follows_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(SUITE, encoding="utf-8")
    quiet = ["--quiet", "--workers", "1"]
    assert cli.main(["route", "--fit", "s.toml:tiny", "--out", "a.json", *quiet]) == 0
    assert "8 train runs of 4 tasks" in capsys.readouterr().out
    assert cli.main(["bench", "--suite", "s.toml:tiny", "--out", "run", *quiet]) == 0
    assert cli.main(["route", "--fit", "run", "--out", "b.json", *quiet]) == 0
    assert Path("a.json").read_bytes() == Path("b.json").read_bytes()
    spec = "task_routing:router=b.json,ratio=0.5"
    assert cli.main(["bench", "--suite", "s.toml:tiny", "--strategy", spec, "--out", "routed", *quiet]) == 0
    records = [json.loads(line) for line in Path("routed/results.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sum(record["result"]["cloud_calls"] > 0 for record in records) == 2
    assert not Path("routed/calibration.jsonl").exists()
    assert cli.main(["route", "--fit", "run", "--evaluate", "--seeds", "1", *quiet]) == 0
    assert "| unseen | irt |" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--out", "r.json", "--seeds", "0"],
        ["--evaluate", "--ratio", "1"],
        ["--fit", ".", "--out", "r.json"],
        ["--fit", "no", "--evaluate"],
    ],
)
def test_command_refuses_what_it_cannot_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["route", *words]) != 0
    assert capsys.readouterr().err.startswith("ec2-env: error:")
    assert not list(tmp_path.iterdir())


def test_run_folder_without_train_runs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(SUITE, encoding="utf-8")
    words = ["--suite", "s.toml:tiny", "--strategy", "edge_only", "--out", "run", "--quiet", "--workers", "1"]
    assert cli.main(["bench", *words]) == 0
    from ec2_env.training.router_runs import read_runs

    with pytest.raises(EC2Error, match="no runs of edge_only and cloud_only on the train split"):
        read_runs(Path("run"), "train")
