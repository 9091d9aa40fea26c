"""Notes: a notebook with meeting notes. Lists show titles, dates, tags and who took part; only opening a note shows its text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from ec2_env.errors import ToolError
from ec2_env.workspace.apps.calendar import parse_day
from ec2_env.workspace.apps.mail import addresses
from ec2_env.workspace.store import Row, Workspace
from ec2_env.workspace.tools import App, tool

if TYPE_CHECKING:
    from ec2_env.workspace.world import Person, World

PAGE = 20
"""Notes on one page of a list."""
MAX_TAGS = 20


class Note(Row, frozen=True, kw_only=True):
    """One note. Times are local, "YYYY-MM-DD HH:MM"; `shared_with` are addresses.

    Attributes:
        participants: Names of those who took part, for the notes of a meeting.
        minutes: How long the meeting took; 0 if the note is not about one.
        locked: Whether its author has closed it against changes.
    """

    title: str
    body: str
    created: str
    updated: str
    tags: tuple[str, ...] = ()
    participants: tuple[str, ...] = ()
    minutes: int = 0
    shared_with: tuple[str, ...] = ()
    locked: bool = False

    @property
    def lasting(self) -> bool:
        return bool(self.shared_with)

    @property
    def reaches(self) -> tuple[str, ...]:
        return self.shared_with


@tool(opens="get_note")
def list_notes(
    workspace: Workspace, date_from: str | None = None, date_to: str | None = None, tag: str | None = None, page: int = 1
) -> list[dict[str, Any]]:
    """Lists notes, newest first, without their text.

    Args:
        date_from: Show only notes created on or after this date, YYYY-MM-DD.
        date_to: Show only notes created on or before this date, YYYY-MM-DD.
        tag: Show only notes that carry this tag.
        page: Page number, from 1; a page has 20 notes.
    """
    first = parse_day(date_from, "date_from").isoformat() if date_from is not None else ""
    last = parse_day(date_to, "date_to").isoformat() if date_to is not None else "9999-12-31"
    if first > last:
        raise ToolError("validation_error: date_from is after date_to")
    notes = (n for n in workspace.rows("note").values() if first <= n.created[:10] <= last)
    return listed((n for n in notes if tag is None or tag.strip() in n.tags), page)


@tool(opens="get_note")
def search_notes(workspace: Workspace, query: str, page: int = 1) -> list[dict[str, Any]]:
    """Finds notes whose title, text, tags or participants contain every word of the query, newest first.

    Args:
        query: Words to look for, separated by spaces; upper and lower case are the same.
        page: Page number, from 1; a page has 20 notes.
    """
    wanted = query.lower().split()
    if not wanted:
        raise ToolError("validation_error: query is empty; give at least one word")
    return listed((n for n in workspace.rows("note").values() if contains(n, wanted)), page)


@tool()
def get_note(workspace: Workspace, note_id: str) -> dict[str, Any]:
    """Shows one note in full: its text, and with whom it is shared.

    Args:
        note_id: Id of the note, as shown by list_notes or search_notes.
    """
    note = workspace.get("note", note_id)
    return {**header(note), "updated": note.updated, "shared_with": list(note.shared_with), "body": note.body}


@tool(write=True)
def create_note(
    workspace: Workspace, title: str, body: str, tags: list[str] | None = None, participants: list[str] | None = None
) -> dict[str, Any]:
    """Creates a note. Nobody else sees it until it is shared.

    Args:
        title: Title of the note; must not be empty.
        body: Text of the note.
        tags: Tags to file it under.
        participants: Names of those who took part, for the notes of a meeting.
    """
    now = workspace.now.isoformat(" ", "minutes")
    note = Note(
        id=workspace.new_id("note"),
        title=titled(title),
        body=body,
        created=now,
        updated=now,
        tags=tagged(tags or ()),
        participants=tuple(participants or ()),
    )
    workspace.put("note", note)
    return header(note)


@tool(write=True)
def update_note(
    workspace: Workspace, note_id: str, title: str | None = None, body: str | None = None, tags: list[str] | None = None
) -> dict[str, Any]:
    """Changes a note; what is not given stays as it is.

    Args:
        note_id: Id of the note.
        title: New title.
        body: New text, in place of the whole old one.
        tags: New tags, in place of all old ones.
    """
    note = editable(workspace, note_id)
    changed = msgspec.structs.replace(
        note,
        title=note.title if title is None else titled(title),
        body=note.body if body is None else body,
        tags=note.tags if tags is None else tagged(tags),
    )
    if changed != note:
        changed = msgspec.structs.replace(changed, updated=workspace.now.isoformat(" ", "minutes"))
        workspace.put("note", changed)
    return {**header(changed), "updated": changed.updated}


@tool(write=True)
def share_note(workspace: Workspace, note_id: str, recipients: list[str]) -> dict[str, Any]:
    """Shares a note with people: each gets an invitation by mail at once and can read the whole note. It cannot be called back.

    Args:
        note_id: Id of the note.
        recipients: Addresses of the people.
    """
    note = workspace.get("note", note_id)
    invited = addresses("recipients", recipients)
    if not invited:
        raise ToolError("validation_error: recipients is empty; give at least one address")
    shared = tuple(dict.fromkeys((*note.shared_with, *invited)))
    workspace.put("note", msgspec.structs.replace(note, shared_with=shared))
    return {"id": note_id, "title": note.title, "shared_with": list(shared)}


@tool(write=True)
def delete_note(workspace: Workspace, note_id: str) -> dict[str, Any]:
    """Deletes a note for good, also for those with whom it is shared.

    Args:
        note_id: Id of the note.
    """
    editable(workspace, note_id)
    workspace.remove("note", note_id)
    return {"deleted": note_id}


def editable(workspace: Workspace, note_id: str) -> Note:
    """Returns a note that may be changed.

    Raises:
        ToolError: if there is none, or if it is locked.
    """
    note: Note = workspace.get("note", note_id)
    if note.locked:
        raise ToolError(f"restricted_resource: {note_id} is locked by its author; create a new note instead")
    return note


def titled(title: str) -> str:
    """Returns a title that can be shown in one line.

    Raises:
        ToolError: if it is empty or too long.
    """
    text = " ".join(title.split())
    if not text or len(text) > 200:
        raise ToolError("validation_error: title must have 1 to 200 characters")
    return text


def tagged(tags: Iterable[str]) -> tuple[str, ...]:
    """Returns tags in order, once each.

    Raises:
        ToolError: if one is empty or too long, or if there are too many.
    """
    found = tuple(sorted({tag.strip() for tag in tags}))
    if len(found) > MAX_TAGS or not all(0 < len(tag) <= 40 for tag in found):
        raise ToolError(f"validation_error: at most {MAX_TAGS} tags of 1 to 40 characters each")
    return found


def contains(note: Note, wanted: Sequence[str]) -> bool:
    text = f"{note.title}\n{note.body}\n{' '.join(note.tags)}\n{' '.join(note.participants)}".lower()
    return all(word in text for word in wanted)


def header(note: Note) -> dict[str, Any]:
    """Returns what a list shows of a note."""
    shown: dict[str, Any] = {"id": note.id, "title": note.title, "created": note.created, "tags": list(note.tags)}
    if note.participants:
        shown["participants"] = list(note.participants)
    if note.minutes:
        shown["duration_minutes"] = note.minutes
    if note.locked:
        shown["locked"] = True
    return shown


def listed(notes: Iterable[Note], page: int) -> list[dict[str, Any]]:
    """Returns one page of notes, newest first."""
    if page < 1:
        raise ToolError("validation_error: page must be 1 or more")
    ordered = sorted(notes, key=lambda n: (n.created, n.id), reverse=True)
    return [header(note) for note in ordered[(page - 1) * PAGE : page * PAGE]]


class NotesSeeder:
    """Fills the notebook while a world is built."""

    def __init__(self, world: World) -> None:
        self.world = world

    def add(
        self,
        title: str,
        body: str,
        *,
        at: datetime | None = None,
        tags: Sequence[str] = (),
        participants: Sequence[Person | str] = (),
        minutes: int = 0,
        shared_with: Sequence[Person | str] = (),
        locked: bool = False,
    ) -> Note:
        """Adds a note and returns it. `at` is a moment in the last three weeks if not given."""
        moment = at or self.world.moment(-self.world.rng.randrange(1, 21))
        created = moment.isoformat(" ", "minutes")
        note = Note(
            id=self.world.new_id("note"),
            title=title,
            body=body,
            created=created,
            updated=created,
            tags=tuple(tags),
            participants=tuple(p if isinstance(p, str) else p.name for p in participants),
            minutes=minutes,
            shared_with=tuple(p if isinstance(p, str) else p.email for p in shared_with),
            locked=locked,
        )
        self.world.workspace.put("note", note)
        return note

    def noise(self, count: int) -> list[Note]:
        """Adds notes that have nothing to do with any work."""
        rng, templates = self.world.rng, NOISE[self.world.language]
        notes = []
        for _ in range(count):
            title, body, tag = rng.choice(templates)
            n = rng.randrange(2, 60)
            notes.append(self.add(title.format(n=n), body.format(n=n), tags=(tag,)))
        return notes


NOISE = {
    "en": (
        ("Reading list {n}", "Books to read this season; number {n} on the list comes highly recommended.", "personal"),
        ("Recipe no. {n}", "Lentil soup for the team lunch: simmer for {n} minutes and season at the end.", "personal"),
        ("Desk setup", "The standing desk goes up to position {n}. The cable is behind the cabinet.", "office"),
        ("Course notes, lesson {n}", "Pivot tables: rows, columns, values. Exercise {n} is homework.", "training"),
        ("Running log", "Week {n}: two short runs and a long one. Knee is fine.", "personal"),
        ("Quotes", "A good plan today beats a perfect plan tomorrow. Found on page {n}.", "personal"),
        ("Packing list", "Charger, badge, umbrella, {n} business cards.", "travel"),
        ("Ideas for the summer party", "Boat trip or barbecue? About {n} people would come.", "office"),
    ),
    "zh": (
        ("书单{n}", "本季想读的书，第{n}本口碑很好。", "个人"),
        ("食谱{n}", "团队午餐的扁豆汤：小火煮{n}分钟，最后调味。", "个人"),
        ("工位设置", "升降桌调到第{n}档，电源线在柜子后面。", "办公"),
        ("课程笔记第{n}课", "数据透视表：行、列、值，第{n}题是作业。", "培训"),
        ("跑步记录", "第{n}周：两次短跑一次长跑，膝盖没问题。", "个人"),
        ("摘抄", "今天的好计划胜过明天的完美计划，见第{n}页。", "个人"),
        ("行李清单", "充电器、工牌、雨伞、名片{n}张。", "出行"),
        ("夏日活动点子", "坐船还是烧烤？大约{n}人参加。", "办公"),
    ),
}

APP = App(
    "notes",
    (list_notes, search_notes, get_note, create_note, update_note, share_note, delete_note),
    NotesSeeder,
)
