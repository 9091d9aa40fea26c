"""Rows of the helpdesk: tickets and their comments."""

from __future__ import annotations

from typing import Literal

from ec2_env.workspace.store import Row

Priority = Literal["low", "normal", "high", "urgent"]
Status = Literal["new", "open", "pending", "solved", "closed"]
Resolution = Literal["fixed", "answered", "duplicate", "not_reproducible", "declined"]
TEAM = "team:helpdesk"
"""Everybody who works at the helpdesk reads tickets and internal notes."""


class Ticket(Row, frozen=True, kw_only=True):
    """One ticket. Times are "YYYY-MM-DD HH:MM"; details that it does not have are empty texts."""

    subject: str
    description: str
    requester: str
    requester_email: str
    created_at: str
    status: str = "open"
    priority: str = "normal"
    category: str = ""
    assignee: str = ""
    tags: tuple[str, ...] = ()
    department: str = ""
    requester_phone: str = ""
    customer_id: str = ""
    first_reply_at: str = ""
    solved_at: str = ""
    resolution: str = ""
    merged_into: str = ""
    follow_up_of: str = ""

    @property
    def reaches(self) -> tuple[str, ...]:
        return (TEAM,)


class TicketComment(Row, frozen=True, kw_only=True):
    """One comment. `to` is the requester's address if the comment is public, else empty. Comments cannot be taken back."""

    ticket_id: str
    author: str
    body: str
    public: bool
    at: str
    to: str = ""

    @property
    def lasting(self) -> bool:
        return True

    @property
    def reaches(self) -> tuple[str, ...]:
        return (TEAM, self.to) if self.to else (TEAM,)
