"""The suite `ec2-128` has the study's size and shape."""

from __future__ import annotations

from collections import Counter
from statistics import median

import pytest

from ec2_env.bench.suites import load_suite
from ec2_env.task import Task, build_episode, tasks
from ec2_env.testing import play

SUITE = load_suite("ec2-128")
CATEGORIES = {"office": 36, "search": 34, "safety": 21, "data": 14, "operations": 13, "automation": 10}
PATTERNS = (
    "ask before acting",
    "join under different keys",
    "rules stored as data",
    "causal chain",
    "superseded sources",
    "near miss at a limit",
    "distractors",
    "reactive people",
    "send, draft, ask or nothing",
    "data minimization",
    "optimum ratio",
    "recovery after a failure",
)
"""What is worth keeping of the study's tasks: each in at least five of ours."""


@pytest.fixture(scope="module")
def suite() -> dict[str, Task]:
    return {name: tasks.get(name) for name in SUITE.tasks}


def test_it_holds_every_task_once_in_its_primary_language(suite: dict[str, Task]) -> None:
    assert sorted(SUITE.tasks) == sorted(tasks.modules)
    assert SUITE.pairs() == tuple((name, suite[name].languages[0]) for name in sorted(suite))


def test_categories_and_languages_are_in_the_proportions_of_the_study(suite: dict[str, Task]) -> None:
    assert Counter(task.category for task in suite.values()) == CATEGORIES
    assert Counter(task.languages[0] for task in suite.values()) == {"en": 79, "zh": 49}
    assert sum(len(task.languages) == 2 for task in suite.values()) == 22
    assert sum(task.annotated for task in suite.values()) == 100


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_is_in_five_tasks(pattern: str, suite: dict[str, Task]) -> None:
    assert sum(pattern in task.patterns for task in suite.values()) >= 5


def test_solutions_are_as_long_as_work_is(suite: dict[str, Task]) -> None:
    lengths = [len(play(build_episode(name, 0)).actions) for name in suite]
    assert min(lengths) >= 4
    assert max(lengths) <= 30
    assert median(lengths) >= 9


def test_tasks_use_one_to_six_apps(suite: dict[str, Task]) -> None:
    counts = Counter(len(task.apps) for task in suite.values())
    assert set(counts) == {1, 2, 3, 4, 5, 6}
