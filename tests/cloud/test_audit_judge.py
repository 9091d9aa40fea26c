"""The comparison of the audit with a language model as judge."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ec2_env.cloud import cases
from ec2_env.cloud.cases.judge import judged, level_of, question
from ec2_env.errors import EndpointError
from ec2_env.models.base import Message, Reply
from ec2_env.models.scripted import ScriptedModel

CASES = list(cases.leaks(3, worlds=1))[:400] + list(cases.near_misses(3, worlds=1))[:100]


class Down(ScriptedModel):
    """An endpoint that never answers."""

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        raise EndpointError("nobody there")


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "audit.py"
    spec = importlib.util.spec_from_file_location("audit_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("answer", "level"), [('{"level": 1}', 1.0), (' {"level": 0.7}\n', 0.7), ('{"level": 0.0}', 0.0)])
def test_an_answer_in_the_form_asked_for_is_read(answer: str, level: float) -> None:
    assert level_of(answer) == level


@pytest.mark.parametrize(
    "answer",
    ["", "1", "level: 1", '{"level": 0.5}', '{"level": true}', '{"level": "1"}', '{"level": 1, "why": "x"}', '{"level": NaN}',
     "[1]", '```json\n{"level": 1}\n```', "[" * 100_000, '{"level": [1]}', "1" * 5_000],
)  # fmt: skip
def test_any_other_answer_is_a_failure_and_no_level(answer: str) -> None:
    assert level_of(answer) is None


def test_the_judge_gets_the_value_and_all_that_was_sent() -> None:
    case = next(case for case in CASES if len(case.calls) > 1)
    asked = json.loads(question(case.unit, case.calls))
    assert asked["value"] == case.unit.value
    assert asked["sent"] == [list(texts) for texts in case.calls]


def test_an_endpoint_that_is_down_gives_no_level() -> None:
    assert judged(Down(["never said"]), CASES[0].unit, CASES[0].calls) is None


def test_failures_are_counted_apart_from_levels(benchmark: ModuleType) -> None:
    chosen = benchmark.sample(CASES, 40)
    rows = {row.split(" | ")[0]: row for row in benchmark.compared(chosen, ScriptedModel(['{"level": 1}']))}
    assert " | 0.0 | 100.0 | 1.00 | " in rows["| 1.0"]
    assert " | 0.0 | 0.0 | 1.00 | " in rows["| 0.0"]
    silent = list(benchmark.compared(chosen, ScriptedModel(["I cannot say."])))
    assert all(" | 100.0 | - | - | " in row for row in silent[2:])


def test_the_sample_has_every_level_and_no_more_than_asked_for(benchmark: ModuleType) -> None:
    chosen = benchmark.sample(CASES, 22)
    assert len(chosen) <= 22
    assert {case.level for case in chosen} == {case.level for case in CASES}
    assert benchmark.sample(CASES, 22) == chosen
