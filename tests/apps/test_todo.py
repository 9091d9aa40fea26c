"""To-dos: what the list hides, what each write changes, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from ec2_env.actions import ToolCall
from ec2_env.task import toolbox
from ec2_env.workspace.store import Workspace
from ec2_env.workspace.tools import Result
from ec2_env.workspace.world import Language, World

BOX = toolbox(("todo",))


class Office:
    """A list with an open, an undated and a completed to-do."""

    def __init__(self, language: Language = "en") -> None:
        world = World("test/1", language, "train")
        self.ann = world.person()
        self.today = world.today.isoformat()
        todo = world.todo
        self.first = todo.add(
            "Call the bank", due=world.day(2), assignee=self.ann, notes="Account 12", tags=("money",), project="P1"
        )
        self.undated = todo.add("Sort the shelf")
        self.done = todo.add("Buy stamps", due=world.day(-3), completed=world.day(-2))
        self.workspace: Workspace = world.workspace
        self.workspace.begin()

    def do(self, name: str, **arguments: Any) -> Result:
        return BOX.run(self.workspace, ToolCall(name, arguments))

    def good(self, name: str, **arguments: Any) -> Any:
        result = self.do(name, **arguments)
        assert result.ok, result.text
        return result.value

    def ids(self, **arguments: Any) -> list[str]:
        return [todo["id"] for todo in self.good("list_todos", **arguments)]

    def refused(self, name: str, word: str, **arguments: Any) -> bool:
        """Checks that a call is refused in these words and leaves no trace; true then."""
        result = self.do(name, **arguments)
        assert not result.ok
        assert word in result.text, result.text
        assert self.workspace.journal == ()
        return True


@pytest.fixture
def office() -> Office:
    return Office()


def test_the_list_is_ordered_by_date_and_hides_the_notes(office: Office) -> None:
    listed = office.good("list_todos")
    assert [todo["id"] for todo in listed] == [office.first.id, office.undated.id]
    assert (listed[0]["assignee"], listed[1]["assignee"]) == (office.ann.name, "")
    assert all("notes" not in todo and "tags" not in todo for todo in listed)
    shown = office.good("get_todo", todo_id=office.first.id)
    assert (shown["notes"], shown["tags"], shown["assignee_email"]) == ("Account 12", ["money"], office.ann.email)


def test_each_filter_narrows_the_list(office: Office) -> None:
    assert office.ids(status="completed") == [office.done.id]
    assert office.ids(status="all")[0] == office.done.id
    assert office.ids(query="BANK call") == office.ids(assignee=office.ann.email) == office.ids(assignee=office.ann.name)
    assert office.ids(project="p1") == office.ids(tag="Money") == [office.first.id]
    assert office.ids(assignee="") == [office.undated.id]
    assert office.ids(due_before=office.first.due) == [office.first.id]
    assert office.ids(due_before=office.today) == []


def test_a_todo_is_created_with_everything_given(office: Office) -> None:
    made = office.good(
        "create_todo",
        title="  Write   the report ",
        due="2026-03-02",
        assignee=office.ann.name,
        priority="high",
        project="P2",
        tags=["B", "a", "a"],
        notes="Long.",
    )
    shown = office.good("get_todo", todo_id=made["id"])
    assert (shown["title"], shown["due"], shown["priority"], shown["project"]) == ("Write the report", "2026-03-02", "high", "P2")
    assert (shown["tags"], shown["notes"], shown["created"], shown["status"]) == (["a", "b"], "Long.", office.today, "open")
    assert office.workspace.rows("todo")[made["id"]].reaches == (office.ann.email,)


def test_an_update_changes_only_what_is_given(office: Office) -> None:
    office.good("update_todo", todo_id=office.first.id, due="", priority="urgent", tags=[])
    shown = office.good("get_todo", todo_id=office.first.id)
    assert (shown["due"], shown["priority"], shown["tags"]) == ("", "urgent", [])
    assert (shown["title"], shown["notes"], shown["assignee"]) == ("Call the bank", "Account 12", office.ann.name)
    office.good("update_todo", todo_id=office.first.id, assignee="")
    assert office.good("get_todo", todo_id=office.first.id)["assignee_email"] == ""


def test_a_completed_todo_stays_as_it_is(office: Office) -> None:
    for name, more in (("complete_todo", {}), ("update_todo", {"title": "x"})):
        office.refused(name, "completed already", todo_id=office.done.id, **more)
    office.good("complete_todo", todo_id=office.first.id)
    assert office.good("get_todo", todo_id=office.first.id)["completed"] == office.today


def test_a_deleted_todo_is_gone(office: Office) -> None:
    office.good("delete_todo", todo_id=office.first.id)
    assert office.ids(status="all") == [office.done.id, office.undated.id]
    assert not office.do("get_todo", todo_id=office.first.id).ok


def test_what_is_made_and_deleted_leaves_no_difference(office: Office) -> None:
    made = office.good("create_todo", title="x")
    office.good("delete_todo", todo_id=made["id"])
    assert office.workspace.diff() == ()


@pytest.mark.parametrize(
    ("word", "arguments"),
    [
        ("title", {"title": " "}),
        ("title", {"title": "x" * 201}),
        ("due", {"title": "x", "due": "tomorrow"}),
        ("due", {"title": "x", "due": "2026-02-30"}),
        ("assignee", {"title": "x", "assignee": "nobody@office.example"}),
        ("priority", {"title": "x", "priority": "P1"}),
        ("project", {"title": "x", "project": "p" * 81}),
        ("tags", {"title": "x", "tags": ["t" * 41]}),
        ("tags", {"title": "x", "tags": [f"t{n}" for n in range(11)]}),
        ("notes", {"title": "x", "notes": "n" * 5001}),
    ],
)
def test_bad_values_are_refused_and_named(office: Office, word: str, arguments: dict[str, Any]) -> None:
    assert office.refused("create_todo", word, **arguments)


def test_unknown_ids_are_refused(office: Office) -> None:
    for name in ("get_todo", "update_todo", "complete_todo", "delete_todo"):
        assert office.refused(name, "there is no todo", todo_id="todo-0")


def test_a_name_that_two_people_have_needs_the_address() -> None:
    world = World("test/2", "en", "train")
    one = world.todo.join(world.person())
    other = world.person()
    world.workspace.put("todo_user", type(one)(id=other.email, name=one.name))
    world.workspace.begin()
    call = ToolCall("create_todo", {"title": "x", "assignee": one.name})
    assert "more than one" in BOX.run(world.workspace, call).text
    assert BOX.run(world.workspace, ToolCall("create_todo", {"title": "x", "assignee": other.email})).ok


def test_pages_do_not_overlap(office: Office) -> None:
    for number in range(25):
        office.good("create_todo", title=f"n{number}")
    pages = [office.ids(page=page) for page in (1, 2, 3)]
    assert [len(page) for page in pages] == [20, 7, 0]
    assert len({*pages[0], *pages[1]}) == 27
    assert not office.do("list_todos", page=0).ok


@pytest.mark.parametrize(
    "value", ["", " ", "\x00", "x" * 19_000, "中" * 5_000, "9999-12-31", "0000-00-00", "２０２６-01-01", "todo-0"]
)
def test_no_text_makes_a_tool_raise(office: Office, value: str) -> None:
    for tool in BOX.tools.values():
        texts = {name: value for name, hint in tool.hints.items() if name in tool.parameters and hint in (str, str | None)}
        assert isinstance(office.do(tool.name, **texts), Result)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_noise_is_of_its_language_and_partly_completed(language: Language) -> None:
    world = World("test/3", language, "train")
    rows = world.todo.noise(8)
    assert {row.status for row in rows} == {"open", "completed"}
    assert all(row.title.isascii() == (language == "en") for row in rows)
