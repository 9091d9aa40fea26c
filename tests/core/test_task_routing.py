"""Task-routing as a strategy: its options, what it fixes before the work, and what it then does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import Estimating, Measured, Prepared, Strategy, load_strategy
from ec2_env.task import task_domains, tasks
from ec2_env.training.router import fit_router
from ec2_env.training.scored_runs import Scores

SOURCES = ("irt", "mf", "logistic", "measured")


def measured() -> dict[str, dict[tuple[str, str], Measured]]:
    """Returns completions in which the cloud adds most to the first two mail tasks."""
    pairs = [(name, tasks.get(name).languages[0]) for name in task_domains()["email"]]
    edge = {pair: Measured(0.1 if number < 2 else 0.7, 5) for number, pair in enumerate(pairs)}
    return {"qwen3.5-9b": edge, "gpt-5.4": dict.fromkeys(pairs, Measured(0.9, 5))}


def prepared(spec: str) -> Any:
    strategy = load_strategy(spec)
    assert isinstance(strategy, Estimating)
    return strategy.prepare(strategy.estimate(*measured().values()))


def calls(strategy: Strategy, task: str) -> int:
    done = play(
        DecisionEnv(), strategy, EpisodeKey(task=task, language=tasks.get(task).languages[0], split="test", seed=0, trial=0)
    )
    number: int = done.result["cloud_calls"]
    return number


@pytest.mark.parametrize("source", ["irt", "mf", "measured"])
def test_tasks_to_which_the_cloud_adds_most_are_routed(source: str) -> None:
    pairs = list(measured()["gpt-5.4"])
    strategy = prepared(f"task_routing:scores={source},ratio={2 / len(pairs)}")
    assert strategy.routed == set(pairs[:2])


@pytest.mark.parametrize("source", SOURCES)
def test_share_of_routed_tasks_is_the_ratio(source: str) -> None:
    pairs = measured()["gpt-5.4"]
    for ratio in (0, 0.25, 1):
        assert len(prepared(f"task_routing:scores={source},ratio={ratio}").routed) == round(ratio * len(pairs))


def test_routed_task_is_done_by_the_cloud_alone_and_any_other_by_the_edge_alone() -> None:
    names = task_domains()["email"]
    strategy = prepared(f"task_routing:ratio={2 / len(names)}")
    assert calls(strategy, names[0]) > 1
    assert calls(strategy, names[2]) == 0


def test_gaps_can_be_handed_over_as_they_are() -> None:
    strategy = load_strategy("task_routing:ratio=0.5")
    assert isinstance(strategy, Prepared)
    ready: Any = strategy.prepare({("forward_invoice", "en"): 0.1, ("inbox_rules", "zh"): 0.2})
    assert ready.routed == {("inbox_rules", "zh")}


def test_router_from_a_file_needs_no_runs_and_knows_its_edge_models(tmp_path: Path) -> None:
    file = tmp_path / "router.json"
    fit_router(Scores.measured(measured()), "gpt-5.4").save(file)
    names = task_domains()["email"]
    strategy = load_strategy(f"task_routing:router={file},ratio={2 / len(names)}")
    assert not isinstance(strategy, Prepared)
    assert strategy.name == f"task_routing:router=router.json,ratio={2 / len(names):g}"
    assert calls(strategy, names[0]) > 1
    assert calls(strategy, names[2]) == 0
    with pytest.raises(UnknownName, match=r"qwen3\.5-27b"):
        play(
            DecisionEnv(edge="sim:qwen3.5-27b"), strategy, EpisodeKey(task=names[0], language="en", split="test", seed=0, trial=0)
        )


def test_names_say_what_differs_from_the_default() -> None:
    assert load_strategy("task_routing").name == "task_routing"
    assert load_strategy("task_routing:scores=irt,ratio=0.25").name == "task_routing"
    assert load_strategy("task_routing:ratio=0.5").name == "task_routing:ratio=0.5"
    assert load_strategy("task_routing:ratio=0.5,scores=measured").name == "task_routing:scores=measured,ratio=0.5"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ratio=2", "between 0 and 1"),
        ("ratio=nan", "between 0 and 1"),
        ("ratio=some", "expected a number"),
        ("scores=best", "expected one of irt"),
        ("threshold=1", "is no option"),
        ("ratio=0.1,ratio=0.2", "each once"),
        ("router=none.json", "cannot be read"),
        ("router=none.json,scores=mf", "not both"),
    ],
)
def test_wrong_options_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_strategy(f"task_routing:{text}")


def test_unprepared_router_says_what_it_needs() -> None:
    with pytest.raises(ConfigurationError, match="router=FILE"):
        calls(load_strategy("task_routing"), "forward_invoice")
