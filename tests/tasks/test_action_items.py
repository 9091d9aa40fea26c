"""The list is compared row by row, in any order, and padding it costs."""

from __future__ import annotations

from collections.abc import Callable

from ec2_env.actions import ToolCall
from ec2_env.task import Slip, Step, build_episode
from ec2_env.testing import play


def listing(edit: Callable[[list[str]], list[str]]) -> float:
    def change(index: int, step: Step) -> Slip | None:
        if not isinstance(step.action, ToolCall) or step.action.name != "write_file":
            return None
        lines = edit(str(step.action.arguments["content"]).splitlines())
        return (ToolCall("write_file", {**step.action.arguments, "content": "\n".join(lines)}),)

    return play(build_episode("action_items", 0), change).grade.checks["open_items_listed"]


def test_rows_count_in_any_order_and_with_any_spacing() -> None:
    assert listing(lambda lines: [line.replace(" | ", "|") for line in reversed(lines)]) == 1.0


def test_each_extra_or_repeated_row_costs() -> None:
    assert listing(lambda lines: [*lines, lines[0]]) < 1.0
    assert listing(lambda lines: [*lines, *(f"{line}9" for line in lines)]) == 0.0


def test_a_heading_is_not_a_row() -> None:
    assert listing(lambda lines: ["CODE | OWNER | DATE", *lines]) < 1.0
