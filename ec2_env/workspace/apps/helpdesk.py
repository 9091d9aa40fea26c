"""Helpdesk: tickets with priority, category, tags and comments. Lists show headers; only opening a ticket shows who wrote what.

Closed tickets cannot be changed any more; a follow-up ticket can be opened instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ec2_env.errors import ToolError
from ec2_env.workspace.apps.mail import addresses, stamp
from ec2_env.workspace.helpdesk_rows import NOISE, USUAL, Priority, Resolution, Status, Ticket, TicketComment
from ec2_env.workspace.store import Workspace
from ec2_env.workspace.tools import App, tool

if TYPE_CHECKING:
    from ec2_env.workspace.world import Person, World

PAGE = 20
"""Tickets on one page of a list."""
HOST = "office.example"
"""Addresses of agents end in this."""


@tool(opens="get_ticket")
def list_tickets(
    workspace: Workspace,
    status: Status | None = None,
    priority: Priority | None = None,
    category: str | None = None,
    assignee: str | None = None,
    page: int = 1,
) -> list[dict[str, Any]]:
    """Lists tickets, newest first, without their text and without the requester's details.

    Args:
        status: Show only tickets with this status.
        priority: Show only tickets with this priority.
        category: Show only tickets of this category.
        assignee: Show only tickets assigned to this address; an empty text for unassigned ones.
        page: Page number, from 1; a page has 20 tickets.
    """
    wanted = {"status": status, "priority": priority, "category": category, "assignee": assignee}
    conditions = [(name, value) for name, value in wanted.items() if value is not None]
    rows = workspace.rows("ticket").values()
    return headers((t for t in rows if all(getattr(t, name) == value for name, value in conditions)), page)


@tool(opens="get_ticket")
def search_tickets(workspace: Workspace, query: str, page: int = 1) -> list[dict[str, Any]]:
    """Finds tickets whose subject, description, requester, category or tags contain every word of the query.

    Args:
        query: Words to look for, separated by spaces; upper and lower case are the same.
        page: Page number, from 1; a page has 20 tickets.
    """
    wanted = query.lower().split()
    if not wanted:
        raise ToolError("query is empty; give at least one word")
    return headers((t for t in workspace.rows("ticket").values() if _contains(t, wanted)), page)


@tool()
def get_ticket(workspace: Workspace, ticket_id: str) -> dict[str, Any]:
    """Shows one ticket in full: description, requester, customer, times and all comments.

    Args:
        ticket_id: Id of the ticket, as shown by list_tickets or search_tickets.
    """
    ticket = workspace.get("ticket", ticket_id)
    shown = {name: getattr(ticket, name) for name in ticket.__struct_fields__}
    shown = {name: list(value) if isinstance(value, tuple) else value for name, value in shown.items() if value}
    comments = [c for c in workspace.rows("ticket_comment").values() if c.ticket_id == ticket_id]
    shown["comments"] = [
        {"author": c.author, "at": c.at, "public": c.public, "body": c.body} for c in sorted(comments, key=lambda c: c.at)
    ]
    return shown


@tool(write=True)
def create_ticket(
    workspace: Workspace,
    subject: str,
    description: str,
    priority: Priority = "normal",
    category: str = "",
    assignee: str | None = None,
    tags: list[str] | None = None,
    customer_id: str = "",
    follow_up_of: str | None = None,
) -> dict[str, Any]:
    """Opens a new ticket with you as the requester.

    Args:
        subject: Subject line.
        description: What it is about.
        priority: How pressing it is.
        category: Category, such as those of other tickets.
        assignee: Address of the agent who gets it; unassigned if left out.
        tags: Tags to put on it.
        customer_id: Id of the customer's account that it concerns.
        follow_up_of: Id of a closed ticket that it continues.
    """
    if not subject.strip() or len(subject) > 200:
        raise ToolError("subject must have 1 to 200 characters")
    if len(customer_id) > 40:
        raise ToolError("customer_id must have at most 40 characters")
    if follow_up_of is not None and workspace.get("ticket", follow_up_of).status != "closed":
        raise ToolError(f"{follow_up_of} is not closed; comment on it instead of opening a follow-up")
    name, email = _me(workspace)
    ticket = Ticket(
        id=workspace.new_id("ticket"),
        subject=subject.strip(),
        description=description,
        requester=name,
        requester_email=email,
        created_at=stamp(workspace.now),
        status="open" if assignee else "new",
        priority=priority,
        category=_category(category),
        assignee=_agent(assignee or ""),
        tags=_tags(tags or ()),
        customer_id=customer_id.strip(),
        follow_up_of=follow_up_of or "",
    )
    workspace.put("ticket", ticket)
    return {**header(ticket), "tags": list(ticket.tags)}


@tool(write=True)
def update_ticket(
    workspace: Workspace,
    ticket_id: str,
    priority: Priority | None = None,
    assignee: str | None = None,
    category: str | None = None,
    tags: list[str] | None = None,
    status: Literal["open", "pending", "solved"] | None = None,
) -> dict[str, Any]:
    """Changes the given fields of a ticket that is not closed. A new ticket that gets an assignee is open from then on.

    Args:
        ticket_id: Id of the ticket.
        priority: New priority.
        assignee: Address of the agent who gets it; an empty text takes it from everybody.
        category: New category.
        tags: All tags that it shall carry from now on; earlier ones are replaced.
        status: New status; to close it use close_ticket.
    """
    ticket = _editable(workspace, ticket_id)
    given = {"priority": priority, "status": status}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if assignee is not None:
        changes["assignee"] = _agent(assignee)
    if category is not None:
        changes["category"] = _category(category)
    if tags is not None:
        changes["tags"] = _tags(tags)
    if not changes:
        raise ToolError("nothing to change; give at least one of priority, assignee, category, tags or status")
    if ticket.status == "new" and changes.get("assignee"):
        changes.setdefault("status", "open")
    edited = msgspec.structs.replace(ticket, **changes)
    workspace.put("ticket", edited)
    return {**header(edited), "tags": list(edited.tags)}


@tool(write=True)
def comment_ticket(workspace: Workspace, ticket_id: str, body: str, public: bool) -> dict[str, Any]:
    """Adds a comment to a ticket that is not closed. A public one is mailed to the requester; others are notes for agents only.

    Args:
        ticket_id: Id of the ticket.
        body: Text of the comment.
        public: True for an answer to the requester, false for an internal note.
    """
    ticket = _editable(workspace, ticket_id)
    if not body.strip():
        raise ToolError("body is empty; write what the comment shall say")
    comment = TicketComment(
        id=workspace.new_id("comment"),
        ticket_id=ticket_id,
        author=_me(workspace)[1],
        body=body,
        public=public,
        at=stamp(workspace.now),
        to=ticket.requester_email if public else "",
    )
    workspace.put("ticket_comment", comment)
    return {"id": comment.id, "ticket_id": ticket_id, "public": public, "sent_to": comment.to or None}


@tool(write=True)
def close_ticket(workspace: Workspace, ticket_id: str, resolution: Resolution) -> dict[str, Any]:
    """Closes a ticket for good; it cannot be changed or commented on afterwards.

    Args:
        ticket_id: Id of the ticket.
        resolution: How it ended.
    """
    ticket = _editable(workspace, ticket_id)
    edited = msgspec.structs.replace(ticket, status="closed", resolution=resolution)
    workspace.put("ticket", edited)
    return {**header(edited), "resolution": resolution}


@tool(write=True)
def merge_tickets(workspace: Workspace, ticket_id: str, into_ticket_id: str) -> dict[str, Any]:
    """Merges a ticket into another one about the same matter: the first is closed as a duplicate and points to the second.

    Args:
        ticket_id: Id of the ticket to close.
        into_ticket_id: Id of the ticket that goes on; it must not be closed.
    """
    if ticket_id == into_ticket_id:
        raise ToolError("a ticket cannot be merged into itself; give two different ids")
    ticket, target = _editable(workspace, ticket_id), _editable(workspace, into_ticket_id)
    edited = msgspec.structs.replace(ticket, status="closed", resolution="duplicate", merged_into=target.id)
    workspace.put("ticket", edited)
    return {**header(edited), "merged_into": target.id}


def header(ticket: Ticket) -> dict[str, Any]:
    return {
        "id": ticket.id,
        "subject": ticket.subject,
        "requester": ticket.requester,
        "status": ticket.status,
        "priority": ticket.priority,
        "category": ticket.category,
        "assignee": ticket.assignee,
        "created_at": ticket.created_at,
    }


def headers(tickets: Iterable[Ticket], page: int) -> list[dict[str, Any]]:
    """Returns one page of headers, newest first."""
    if page < 1:
        raise ToolError("page must be 1 or more")
    ordered = sorted(tickets, key=lambda t: (t.created_at, t.id), reverse=True)
    return [header(ticket) for ticket in ordered[(page - 1) * PAGE : page * PAGE]]


def _contains(ticket: Ticket, wanted: Sequence[str]) -> bool:
    text = f"{ticket.subject} {ticket.description} {ticket.requester} {ticket.category} {' '.join(ticket.tags)}".lower()
    return all(word in text for word in wanted)


def _editable(workspace: Workspace, ticket_id: str) -> Ticket:
    ticket: Ticket = workspace.get("ticket", ticket_id)
    if ticket.status == "closed":
        raise ToolError(f"status closed prevents an update of {ticket_id}; open a new one with create_ticket(follow_up_of=...)")
    return ticket


def _agent(address: str) -> str:
    if not address.strip():
        return ""
    found = addresses("assignee", [address])[0]
    if not found.endswith(f"@{HOST}"):
        raise ToolError(f"assignee: {found[:80]!r} is not an agent; agents have an address that ends in @{HOST}")
    return found


def _category(text: str) -> str:
    if len(text) > 40:
        raise ToolError("category must have at most 40 characters")
    return text.strip()


def _tags(values: Iterable[str]) -> tuple[str, ...]:
    tags = {"_".join(value.lower().split()) for value in values}
    if any(not tag or len(tag) > 40 for tag in tags) or len(tags) > 20:
        raise ToolError("tags must have 1 to 40 characters each, and there may be at most 20")
    return tuple(sorted(tags))


def _me(workspace: Workspace) -> tuple[str, str]:
    """Returns the name and address of whom the agent works for."""
    owner = next(iter(workspace.rows("mailbox").values()), None)
    return (owner.name, owner.id) if owner else ("me", f"me@{HOST}")


class HelpdeskSeeder:
    """Fills the helpdesk while a world is built."""

    def __init__(self, world: World) -> None:
        self.world = world

    def ticket(
        self,
        requester: Person,
        subject: str,
        description: str,
        *,
        at: datetime | None = None,
        status: Status = "open",
        priority: Priority = "normal",
        category: str = "",
        assignee: Person | str = "",
        tags: Iterable[str] = (),
        phone: str = "",
        customer_id: str = "",
        first_reply_at: str = "",
        solved_at: str = "",
        resolution: str = "",
    ) -> Ticket:
        """Adds a ticket and returns it. `at` is a moment in the last week if not given; tags are lower case, without spaces."""
        world = self.world
        ticket = Ticket(
            id=world.new_id("ticket"),
            subject=subject,
            description=description,
            requester=requester.name,
            requester_email=requester.email,
            created_at=stamp(at or world.moment(-world.rng.randrange(1, 8))),
            status=status,
            priority=priority,
            category=category,
            assignee=assignee if isinstance(assignee, str) else assignee.email,
            tags=tuple(sorted(tags)),
            department="" if requester.firm else requester.department,
            requester_phone=phone,
            customer_id=customer_id,
            first_reply_at=first_reply_at,
            solved_at=solved_at,
            resolution=resolution,
        )
        world.workspace.put("ticket", ticket)
        return ticket

    def comment(
        self, ticket: Ticket, author: Person | str, body: str, *, public: bool = True, at: datetime | None = None
    ) -> TicketComment:
        """Adds a comment to a ticket and returns it. It is of today's morning if no time is given."""
        comment = TicketComment(
            id=self.world.new_id("comment"),
            ticket_id=ticket.id,
            author=author if isinstance(author, str) else author.email,
            body=body,
            public=public,
            at=stamp(at or self.world.moment(0, 8)),
            to=ticket.requester_email if public else "",
        )
        self.world.workspace.put("ticket_comment", comment)
        return comment

    def noise(self, count: int, *, status: Status | None = None) -> list[Ticket]:
        """Adds tickets about everyday matters, most of them solved or closed unless a status is given."""
        world, rng = self.world, self.world.rng
        people = [world.person() for _ in range(min(3, count))]
        tickets = []
        for _ in range(count):
            category, subject, description = rng.choice(NOISE[world.language])
            number = rng.randrange(2, 60)
            state = status if status is not None else rng.choice(USUAL)
            tickets.append(
                self.ticket(
                    rng.choice(people),
                    subject.format(n=number),
                    description.format(n=number),
                    status=state,
                    priority=rng.choice(("low", "low", "normal")),
                    category=category,
                    resolution="fixed" if state == "closed" else "",
                )
            )
        return tickets


APP = App(
    "helpdesk",
    (list_tickets, search_tickets, get_ticket, create_ticket, update_ticket, comment_ticket, close_ticket, merge_tickets),
    HelpdeskSeeder,
)
