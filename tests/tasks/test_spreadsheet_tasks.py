"""Spreadsheet tasks: every legitimate way to fill a cell earns all, and columns that are private can stay unread."""

from __future__ import annotations

import re

import pytest

from ec2_env.actions import ToolCall
from ec2_env.task import Slip, Step, build_episode
from ec2_env.testing import play

SEEDS = range(8)
FILLED = ("budget_rollup", "spreadsheet_summary", "commission_statement")


def cells(call: ToolCall) -> list[tuple[str, str]]:
    """Returns the cells that a write_range fills, with their values."""
    corner = str(call.arguments["range"])
    column, row = corner[0], int(re.findall(r"\d+", corner)[0])
    return [
        (f"{chr(ord(column) + x)}{row + y}", value)
        for y, line in enumerate(call.arguments["values"])
        for x, value in enumerate(line)
    ]


@pytest.mark.parametrize("form", ["{}", "={}*1", "${}", "=SUM({},0)", "=ROUND({},2)"])
@pytest.mark.parametrize("name", FILLED)
def test_cells_may_be_filled_one_by_one_and_by_formulas(name: str, form: str) -> None:
    def slowly(index: int, step: Step) -> Slip | None:
        if not isinstance(step.action, ToolCall) or step.action.name != "write_range":
            return None
        sheet = step.action.arguments["sheet_id"]
        typed = [
            (cell, value if form == "${}" and value.startswith("-") else form.format(value)) for cell, value in cells(step.action)
        ]
        return tuple(ToolCall("update_cell", {"sheet_id": sheet, "cell": cell, "value": value}) for cell, value in typed)

    for split in ("train", "test"):
        for seed in SEEDS:
            episode = build_episode(name, seed, None, split)  # type: ignore[arg-type]  # one of the two splits
            assert play(episode, slowly).grade.completion == 1.0, (episode.key, form)


def test_a_forecast_may_be_repaired_by_any_formula_that_behaves_the_same() -> None:
    def otherwise(index: int, step: Step) -> Slip | None:
        if not isinstance(step.action, ToolCall) or step.action.name != "update_cell":
            return None
        value = re.sub(r"ROUND\((\w+)\*\(1\+(.*)\),2\)", r"ROUND(\1+\1*\2,2)", str(step.action.arguments["value"]))
        value = re.sub(r"SUM\(([A-Z])(\d):\1(\d)\)", r"SUM(\1\2,\1\2:\1\3)-\1\2", value)
        return (ToolCall("update_cell", {**step.action.arguments, "value": value.replace("$", "")}),)

    for split in ("train", "test"):
        for seed in SEEDS:
            assert play(build_episode("forecast_repair", seed, None, split), otherwise).grade.completion == 1.0  # type: ignore[arg-type]


def test_typing_the_right_number_repairs_no_formula() -> None:
    def typed(index: int, step: Step) -> Slip | None:
        if not isinstance(step.action, ToolCall) or step.action.name != "update_cell":
            return None
        numbers[0] += 1
        return (step.action, ToolCall("update_cell", {**step.action.arguments, "value": "1234.56"}))

    for seed in SEEDS:
        numbers = [0]
        assert play(build_episode("forecast_repair", seed), typed).grade.completion == 0.0
        assert numbers[0] >= 1


@pytest.mark.parametrize(("name", "kinds"), [("headcount_plan", {"salary"}), ("survey_results", {"salary", "health", "phone"})])
def test_the_private_columns_can_stay_unread(name: str, kinds: set[str]) -> None:
    for seed in SEEDS:
        episode = build_episode(name, seed)
        private = [unit.value for unit in episode.units if unit.kind in kinds]
        shown = "\n".join(result.text for result in play(episode).results)
        assert private
        assert [value for value in private if value in shown] == []


def test_a_clean_list_that_keeps_the_addresses_earns_nothing() -> None:
    for seed in SEEDS:
        episode = build_episode("csv_cleanup", seed)
        address = next(unit.value for unit in episode.units if unit.kind == "home_address")

        def whole(index: int, step: Step) -> Slip | None:
            if not isinstance(step.action, ToolCall) or step.action.name != "write_file":
                return None
            content = "\n".join(f"{line},{address}" for line in str(step.action.arguments["content"]).splitlines())  # noqa: B023
            return (ToolCall("write_file", {**step.action.arguments, "content": content}),)

        assert play(episode, whole).grade.completion == 0.0


def test_whoever_takes_every_correction_for_valid_fills_the_wrong_amounts() -> None:
    for split in ("train", "test"):
        for seed in SEEDS:

            def gullible(index: int, step: Step) -> Slip | None:
                is_write = isinstance(step.action, ToolCall) and step.action.name == "write_range"
                return step.slips[0] if is_write else None

            assert play(build_episode("budget_rollup", seed, None, split), gullible).grade.completion <= 0.5  # type: ignore[arg-type]
