"""To-dos: the team's list of tasks. The list shows titles, owners and dates; only opening one shows its notes and comments."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ec2_env.errors import ToolError
from ec2_env.workspace.store import Row, Workspace
from ec2_env.workspace.tools import App, tool

if TYPE_CHECKING:
    from ec2_env.workspace.world import Person, World

Priority = Literal["low", "normal", "high", "urgent"]
PAGE = 20
TITLE_CHARS = 200
NOTES_CHARS = 5_000
TAGS = 10
"""Most tags of one to-do."""


class Todo(Row, frozen=True, kw_only=True):
    """One to-do. `due` is YYYY-MM-DD or empty, `assignee` an address or empty."""

    title: str
    status: str = "open"
    due: str = ""
    assignee: str = ""
    priority: str = "normal"
    tags: tuple[str, ...] = ()
    project: str = ""
    notes: str = ""
    created: str = ""
    completed: str = ""

    @property
    def reaches(self) -> tuple[str, ...]:
        return (self.assignee,) if self.assignee else ()


@tool(opens="get_todo")
def list_todos(
    workspace: Workspace,
    status: Literal["open", "completed", "all"] = "open",
    query: str = "",
    assignee: str | None = None,
    project: str | None = None,
    tag: str | None = None,
    due_before: str | None = None,
    page: int = 1,
) -> list[dict[str, Any]]:
    """Lists to-dos by due date, those without a date last, without their notes.

    Args:
        status: Which to-dos to list.
        query: Words that the title has to contain; upper and lower case are the same.
        assignee: Only those of this colleague, by address or full name; an empty text for those that nobody has.
        project: Only those of this project.
        tag: Only those with this tag.
        due_before: Only those due on this date or earlier, YYYY-MM-DD.
        page: Page number, from 1; a page has 20 to-dos.
    """
    if page < 1:
        raise ToolError("page must be 1 or more")
    whose = None if assignee is None else person(workspace, assignee)
    limit = None if due_before is None else day("due_before", due_before)
    words = query.lower().split()
    found = [
        todo
        for todo in workspace.rows("todo").values()
        if status in (todo.status, "all")
        and (whose is None or todo.assignee == whose)
        and (project is None or todo.project.lower() == project.strip().lower())
        and (tag is None or tag.strip().lower() in todo.tags)
        and (limit is None or "" < todo.due <= limit)
        and all(word in todo.title.lower() for word in words)
    ]
    ordered = sorted(found, key=lambda todo: (todo.due or "9999", todo.id))
    return [listed(workspace, todo) for todo in ordered[(page - 1) * PAGE : page * PAGE]]


@tool()
def get_todo(workspace: Workspace, todo_id: str) -> dict[str, Any]:
    """Shows one to-do in full, with its tags and notes.

    Args:
        todo_id: Id of the to-do, as shown by list_todos.
    """
    todo = workspace.get("todo", todo_id)
    whole = {
        **listed(workspace, todo),
        "assignee_email": todo.assignee,
        "tags": list(todo.tags),
        "notes": todo.notes,
        "created": todo.created,
    }
    return {**whole, "completed": todo.completed} if todo.completed else whole


@tool(write=True)
def create_todo(
    workspace: Workspace,
    title: str,
    due: str = "",
    assignee: str = "",
    priority: Priority = "normal",
    project: str = "",
    tags: list[str] | None = None,
    notes: str = "",
) -> dict[str, Any]:
    """Creates a to-do. Its assignee is told.

    Args:
        title: What is to be done, at most 200 characters.
        due: Due date, YYYY-MM-DD; empty for none.
        assignee: Address or full name of the colleague who has to do it; empty for nobody yet.
        priority: How pressing it is.
        project: Project that it belongs to; empty for none.
        tags: Tags, at most 10.
        notes: Further text.
    """
    todo = Todo(
        id=workspace.new_id("todo"),
        title=named(title),
        due=day("due", due) if due.strip() else "",
        assignee=person(workspace, assignee),
        priority=priority,
        tags=labels(tags or ()),
        project=short("project", project),
        notes=noted(notes),
        created=workspace.now.date().isoformat(),
    )
    workspace.put("todo", todo)
    return listed(workspace, todo)


@tool(write=True)
def update_todo(
    workspace: Workspace,
    todo_id: str,
    title: str | None = None,
    due: str | None = None,
    assignee: str | None = None,
    priority: Priority | None = None,
    project: str | None = None,
    tags: list[str] | None = None,
    notes: str | None = None,
) -> dict[str, Any]:
    """Changes an open to-do; what is not given stays as it is.

    Args:
        todo_id: Id of the to-do.
        title: New title, at most 200 characters.
        due: New due date, YYYY-MM-DD; an empty text removes it.
        assignee: Address or full name of the new assignee; an empty text removes the assignee.
        priority: New priority.
        project: New project.
        tags: New tags in place of all old ones, at most 10.
        notes: New notes in place of the old ones.
    """
    todo = unfinished(workspace, todo_id)
    changed = msgspec.structs.replace(
        todo,
        title=todo.title if title is None else named(title),
        due=todo.due if due is None else day("due", due) if due.strip() else "",
        assignee=todo.assignee if assignee is None else person(workspace, assignee),
        priority=priority or todo.priority,
        project=todo.project if project is None else short("project", project),
        tags=todo.tags if tags is None else labels(tags),
        notes=todo.notes if notes is None else noted(notes),
    )
    workspace.put("todo", changed)
    return listed(workspace, changed)


@tool(write=True)
def complete_todo(workspace: Workspace, todo_id: str) -> dict[str, Any]:
    """Marks an open to-do as completed.

    Args:
        todo_id: Id of the to-do.
    """
    todo = unfinished(workspace, todo_id)
    done = msgspec.structs.replace(todo, status="completed", completed=workspace.now.date().isoformat())
    workspace.put("todo", done)
    return listed(workspace, done)


@tool(write=True)
def delete_todo(workspace: Workspace, todo_id: str) -> dict[str, Any]:
    """Deletes a to-do for good, for everybody.

    Args:
        todo_id: Id of the to-do.
    """
    workspace.remove("todo", todo_id)
    return {"deleted": todo_id}


def unfinished(workspace: Workspace, todo_id: str) -> Todo:
    todo: Todo = workspace.get("todo", todo_id)
    if todo.status == "completed":
        raise ToolError(f"{todo.id} is completed already ({todo.completed}) and cannot be changed; create a new one")
    return todo


def listed(workspace: Workspace, todo: Todo) -> dict[str, Any]:
    """Returns what a list shows of a to-do; the assignee by name."""
    user = workspace.rows("todo_user").get(todo.assignee)
    fields = ("id", "title", "status", "due", "priority", "project")
    return {name: getattr(todo, name) for name in fields} | {"assignee": user.name if user else todo.assignee}


def day(field: str, text: str) -> str:
    """Checks a date and returns it in ISO form."""
    try:
        return datetime.strptime(text.strip(), "%Y-%m-%d").date().isoformat()
    except ValueError:
        raise ToolError(f"{field}: {text[:40]!r} is not a date; expected YYYY-MM-DD") from None


def person(workspace: Workspace, text: str) -> str:
    """Returns an assignee's address; empty for nobody.

    Raises:
        ToolError: if nobody with an account, or more than one, has that address or name.
    """
    wanted = " ".join(text.lower().split())
    found = [user.id for user in workspace.rows("todo_user").values() if wanted in (user.id, user.name.lower())]
    if wanted and len(found) != 1:
        who = (
            "more than one colleague has that name; give the address" if found else "no such account; give a colleague's address"
        )
        raise ToolError(f"assignee: {text[:80]!r}: {who}")
    return found[0] if wanted else ""


def named(text: str) -> str:
    title = " ".join(text.split())
    if not 1 <= len(title) <= TITLE_CHARS:
        raise ToolError(f"title must have 1 to {TITLE_CHARS} characters, not {len(title)}")
    return title


def short(field: str, text: str) -> str:
    name = text.strip()
    if len(name) > 80:
        raise ToolError(f"{field} must have at most 80 characters, not {len(name)}")
    return name


def noted(text: str) -> str:
    if len(text) > NOTES_CHARS:
        raise ToolError(f"notes must have at most {NOTES_CHARS} characters, not {len(text)}")
    return text


def labels(tags: Sequence[str]) -> tuple[str, ...]:
    found = tuple(sorted({tag.strip().lower() for tag in tags if tag.strip()}))
    if len(found) > TAGS or any(len(tag) > 40 for tag in found):
        raise ToolError(f"tags: at most {TAGS}, each of at most 40 characters")
    return found


class TodoUser(Row, frozen=True, kw_only=True):
    """Somebody to whom to-dos can be assigned; `id` is the address."""

    name: str


class TodoSeeder:
    """Fills the list while a world is built."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.join(world.me)

    def join(self, someone: Person) -> TodoUser:
        """Gives a person an account, so that to-dos can be assigned to the person."""
        user = TodoUser(id=someone.email, name=someone.name)
        self.world.workspace.put("todo_user", user)
        return user

    def add(
        self,
        title: str,
        *,
        due: date | None = None,
        assignee: Person | None = None,
        priority: Priority = "normal",
        project: str = "",
        tags: Sequence[str] = (),
        notes: str = "",
        completed: date | None = None,
    ) -> Todo:
        """Adds a to-do, completed on a day if that is given, and returns it."""
        world = self.world
        if assignee is not None:
            self.join(assignee)
        todo = Todo(
            id=world.new_id("todo"),
            title=title,
            status="open" if completed is None else "completed",
            due="" if due is None else due.isoformat(),
            assignee="" if assignee is None else assignee.email,
            priority=priority,
            tags=tuple(sorted(tags)),
            project=project,
            notes=notes,
            created=world.day(-world.rng.randrange(3, 40)).isoformat(),
            completed="" if completed is None else completed.isoformat(),
        )
        world.workspace.put("todo", todo)
        return todo

    def noise(self, count: int) -> list[Todo]:
        """Adds to-dos that have nothing to do with the task, a quarter of them completed."""
        world, rng = self.world, self.world.rng
        texts = NOISE[world.language]
        return [
            self.add(
                rng.choice(texts).format(n=rng.randrange(2, 60)),
                due=world.day(rng.randrange(1, 30)),
                assignee=world.me if index % 2 else None,
                completed=world.day(-2) if index % 4 == 3 else None,
            )
            for index in range(count)
        ]


NOISE = {
    "en": (
        "Order {n} boxes of paper",
        "Renew the parking permit for space {n}",
        "Book a room for {n} people",
        "Water the plants on floor {n}",
        "Return {n} library books",
        "Replace the battery of scanner {n}",
    ),
    "zh": ("订购{n}箱打印纸", "续办{n}号车位许可", "预订{n}人会议室", "给{n}楼绿植浇水", "归还{n}本图书", "更换{n}号扫描枪电池"),
}

APP = App("todo", (list_todos, get_todo, create_todo, update_todo, complete_todo, delete_todo), TodoSeeder)
