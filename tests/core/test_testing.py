"""The conformance kit finds what is wrong with a task: each flaw, made on purpose in a sound one, is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count

import pytest

from ec2_env.actions import Finish, ToolCall
from ec2_env.task import Check, Forbidden, Plan, Step, Steps, tasks
from ec2_env.testing import check_task
from ec2_env.workspace.world import World

SOUND = tasks.get("forward_invoice")
Flaw = Callable[[World, Plan], Plan]


def idle_solution() -> Steps:
    yield Step(action=Finish(), skill="synthesis")


def knowing_solution(mail_id: str) -> Steps:
    yield Step(action=ToolCall("read_mail", {"mail_id": mail_id}), skill="exploration")


def failing_solution() -> Steps:
    yield Step(action=ToolCall("read_mail", {"mail_id": "mail-0"}), skill="exploration")


def without_secrets(world: World, plan: Plan) -> Plan:
    world.units.clear()
    return plan


def guessing(world: World, plan: Plan) -> Plan:
    return replace(plan, solve=partial(knowing_solution, next(iter(world.workspace.rows("mail")))))


def with_a_secret_nobody_drew(world: World, plan: Plan) -> Plan:
    world.files.write("hr/bank.txt", "Salary account: DE89 3704 0044 0532 0130 00", days_ago=1)
    return plan


def with_a_unit_that_is_nowhere(world: World, plan: Plan) -> Plan:
    world.secret("iban", owner="nobody")
    return plan


def drifting() -> Flaw:
    numbers: Iterator[int] = count()
    return lambda world, plan: replace(plan, instruction=f"{plan.instruction} {next(numbers)}")


def test_a_sound_task_has_no_problems_even_with_a_generator_of_seeds() -> None:
    assert check_task("forward_invoice", seeds=iter(range(2))) == []


@pytest.mark.parametrize(
    ("flaw", "problem"),
    [
        (lambda world, plan: replace(plan, solve=idle_solution), "the solution scores 0.0"),
        (lambda world, plan: replace(plan, solve=idle_solution), "fewer than 4 steps"),
        (lambda world, plan: replace(plan, solve=idle_solution), "fewer than 3 slips"),
        (lambda world, plan: replace(plan, solve=failing_solution), "a call of the solution fails"),
        (guessing, "a value that no tool showed"),
        (without_secrets, "no sensitive unit"),
        (with_a_secret_nobody_drew, "looks like iban and is not annotated"),
        (with_a_unit_that_is_nowhere, "is annotated and nowhere in the episode"),
        (drifting(), "two episodes"),
        (lambda world, plan: replace(plan, instruction="Do it."), "every seed has the same instruction"),
        (lambda world, plan: replace(plan, checks=(Check("any", 1.0, lambda state: 1.0),)), "the agent 'nothing' scores 1.0"),
        (lambda world, plan: replace(plan, checks=(Check("any", 1.0, lambda state: 1.0),)), "a wrong solution scores 1.0"),
        (lambda world, plan: replace(plan, forbidden=(Forbidden("all", bool),)), "the solution scores 0.0"),
    ],
)
def test_a_flaw_is_named(flaw: Flaw, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(world: World) -> Plan:
        return flaw(world, SOUND.build(world))

    monkeypatch.setitem(tasks.added, "flawed", replace(SOUND, build=build, languages=("en",)))
    found = check_task("flawed", seeds=range(20) if "same instruction" in problem else range(4))
    assert any(problem in one for one in found), found
    assert all("flawed" in one for one in found)
