"""Calendar: the owner's events, and when colleagues are busy. Lists show times and titles; opening an event shows the rest."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from ec2_env.errors import ToolError
from ec2_env.workspace.apps.mail import addresses
from ec2_env.workspace.store import Row, Workspace
from ec2_env.workspace.tools import App, tool

if TYPE_CHECKING:
    from ec2_env.workspace.world import Person, World

MAX_DAYS = 31


class Event(Row, frozen=True, kw_only=True):
    """One event in the owner's calendar. Times are local, "YYYY-MM-DD HH:MM"; the end is exclusive."""

    title: str
    start: str
    end: str
    attendees: tuple[str, ...] = ()
    location: str = ""
    notes: str = ""

    @property
    def reaches(self) -> tuple[str, ...]:
        return self.attendees


class Busy(Row, frozen=True, kw_only=True):
    """A time at which somebody else cannot come."""

    email: str
    start: str
    end: str


@tool(opens="get_event")
def list_events(workspace: Workspace, start_date: str, end_date: str) -> list[dict[str, Any]]:
    """Lists the events between two dates, both included, in order of time.

    Args:
        start_date: First date, YYYY-MM-DD.
        end_date: Last date, YYYY-MM-DD; at most 31 days after the first.
    """
    first, last = day_range(start_date, end_date)
    events = [e for e in workspace.rows("event").values() if first <= e.start[:10] <= last]
    return [{"id": e.id, "title": e.title, "start": e.start, "end": e.end} for e in sorted(events, key=lambda e: (e.start, e.id))]


@tool()
def get_event(workspace: Workspace, event_id: str) -> dict[str, Any]:
    """Shows one event in full: attendees, location and notes.

    Args:
        event_id: Id of the event, as shown by list_events.
    """
    event = workspace.get("event", event_id)
    return {name: list(v) if isinstance(v := getattr(event, name), tuple) else v for name in event.__struct_fields__}


@tool()
def free_busy(workspace: Workspace, emails: list[str], start_date: str, end_date: str) -> dict[str, list[dict[str, str]]]:
    """Shows when people (and the owner) are busy between two dates, without saying with what.

    Args:
        emails: Addresses of the people.
        start_date: First date, YYYY-MM-DD.
        end_date: Last date, YYYY-MM-DD; at most 31 days after the first.
    """
    first, last = day_range(start_date, end_date)
    found: dict[str, list[dict[str, str]]] = {email: [] for email in addresses("emails", emails)}
    owner = next(iter(workspace.rows("mailbox")), "")
    for busy in workspace.rows("busy").values():
        if busy.email in found and first <= busy.start[:10] <= last:
            found[busy.email].append({"start": busy.start, "end": busy.end})
    for event in workspace.rows("event").values():
        if first <= event.start[:10] <= last:
            for email in found:
                if email == owner or email in event.attendees:
                    found[email].append({"start": event.start, "end": event.end})
    return {email: sorted(times, key=lambda t: (t["start"], t["end"])) for email, times in found.items()}


@tool(write=True)
def create_event(
    workspace: Workspace,
    title: str,
    start: str,
    end: str,
    attendees: list[str] | None = None,
    location: str = "",
    notes: str = "",
) -> dict[str, Any]:
    """Creates an event and invites its attendees.

    Args:
        title: Title of the event.
        start: Start, YYYY-MM-DD HH:MM, in the owner's time zone.
        end: End, YYYY-MM-DD HH:MM.
        attendees: Addresses to invite.
        location: Where it takes place.
        notes: Further text.
    """
    start, end = time_range(start, end)
    event = Event(
        id=workspace.new_id("event"),
        title=title,
        start=start,
        end=end,
        attendees=addresses("attendees", attendees or ()),
        location=location,
        notes=notes,
    )
    workspace.put("event", event)
    return {"id": event.id, "start": start, "end": end}


@tool(write=True)
def update_event(
    workspace: Workspace,
    event_id: str,
    title: str | None = None,
    start: str | None = None,
    end: str | None = None,
    location: str | None = None,
) -> dict[str, Any]:
    """Changes an event; what is not given stays as it is.

    Args:
        event_id: Id of the event.
        title: New title.
        start: New start, YYYY-MM-DD HH:MM.
        end: New end, YYYY-MM-DD HH:MM.
        location: New location.
    """
    event = workspace.get("event", event_id)
    start, end = time_range(start or event.start, end or event.end)
    changed = msgspec.structs.replace(
        event,
        title=event.title if title is None else title,
        start=start,
        end=end,
        location=event.location if location is None else location,
    )
    workspace.put("event", changed)
    return {"id": event_id, "title": changed.title, "start": start, "end": end}


@tool(write=True)
def delete_event(workspace: Workspace, event_id: str) -> dict[str, Any]:
    """Cancels an event.

    Args:
        event_id: Id of the event.
    """
    workspace.remove("event", event_id)
    return {"deleted": event_id}


def day_range(start_date: str, end_date: str) -> tuple[str, str]:
    """Checks two dates and returns them in ISO form."""
    first, last = parse_day(start_date, "start_date"), parse_day(end_date, "end_date")
    if not 0 <= (last - first).days <= MAX_DAYS:
        raise ToolError(f"end_date must be between start_date and {MAX_DAYS} days later")
    return first.isoformat(), last.isoformat()


def parse_day(text: str, field: str) -> date:
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise ToolError(f"{field}: {text[:40]!r} is not a date; expected YYYY-MM-DD") from None


def time_range(start: str, end: str) -> tuple[str, str]:
    """Checks two moments of one event and returns them in the calendar's form."""
    first, last = parse_moment(start, "start"), parse_moment(end, "end")
    if not first < last:
        raise ToolError("end must be after start")
    return first.isoformat(" ", "minutes"), last.isoformat(" ", "minutes")


def parse_moment(text: str, field: str) -> datetime:
    try:
        return datetime.strptime(text.strip().replace("T", " ")[:16], "%Y-%m-%d %H:%M")
    except ValueError:
        raise ToolError(f"{field}: {text[:40]!r} is not a time; expected YYYY-MM-DD HH:MM") from None


class CalendarSeeder:
    """Fills the calendar while a world is built."""

    def __init__(self, world: World) -> None:
        self.world = world

    def add(
        self,
        title: str,
        start: datetime,
        minutes: int = 60,
        *,
        attendees: Sequence[Person | str] = (),
        location: str = "",
        notes: str = "",
    ) -> Event:
        """Adds an event of the owner and returns it."""
        event = Event(
            id=self.world.new_id("event"),
            title=title,
            start=start.isoformat(" ", "minutes"),
            end=(start + timedelta(minutes=minutes)).isoformat(" ", "minutes"),
            attendees=tuple(a if isinstance(a, str) else a.email for a in attendees),
            location=location,
            notes=notes,
        )
        self.world.workspace.put("event", event)
        return event

    def busy(self, person: Person, start: datetime, minutes: int = 60) -> Busy:
        """Marks a colleague as busy."""
        row = Busy(
            id=self.world.new_id("busy"),
            email=person.email,
            start=start.isoformat(" ", "minutes"),
            end=(start + timedelta(minutes=minutes)).isoformat(" ", "minutes"),
        )
        self.world.workspace.put("busy", row)
        return row


APP = App("calendar", (list_events, get_event, free_busy, create_event, update_event, delete_event), CalendarSeeder)
