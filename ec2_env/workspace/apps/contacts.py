"""Contacts: the address book. A search shows who there is; only a card shows how to reach somebody, and private details."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ec2_env.errors import ToolError
from ec2_env.workspace.store import Row, Workspace
from ec2_env.workspace.tools import App, tool

if TYPE_CHECKING:
    from ec2_env.workspace.world import Person, World


class Contact(Row, frozen=True, kw_only=True):
    """One card. Details that a card does not have are empty texts."""

    name: str
    role: str
    department: str
    company: str
    email: str
    phone: str = ""
    home_address: str = ""
    birth_date: str = ""
    notes: str = ""


@tool(opens="get_contact")
def search_contacts(workspace: Workspace, query: str) -> list[dict[str, Any]]:
    """Finds people whose name, role, department or company contain every word of the query. At most 20 are shown.

    Args:
        query: Words to look for, separated by spaces; upper and lower case are the same.
    """
    wanted = query.lower().split()
    if not wanted:
        raise ToolError("query is empty; give at least one word")
    found = []
    for card in workspace.rows("contact").values():
        text = f"{card.name} {card.role} {card.department} {card.company} {card.email}".lower()
        if all(word in text for word in wanted):
            found.append(
                {"id": card.id, "name": card.name, "role": card.role, "department": card.department, "company": card.company}
            )
    return sorted(found, key=lambda card: card["id"])[:20]


@tool()
def get_contact(workspace: Workspace, contact_id: str) -> dict[str, Any]:
    """Shows one card in full: address, phone and notes.

    Args:
        contact_id: Id of the card, as shown by search_contacts.
    """
    card = workspace.get("contact", contact_id)
    shown = {name: getattr(card, name) for name in card.__struct_fields__}
    return {name: value for name, value in shown.items() if value}


class ContactsSeeder:
    """Fills the address book while a world is built."""

    def __init__(self, world: World) -> None:
        self.world = world

    def add(self, person: Person, *, phone: str = "", home_address: str = "", birth_date: str = "", notes: str = "") -> Contact:
        """Adds a card for a person and returns it."""
        card = Contact(
            id=self.world.new_id("contact"),
            name=person.name,
            role=person.role,
            department=person.department,
            company=person.firm or self.world.text("our company", "本公司"),
            email=person.email,
            phone=phone,
            home_address=home_address,
            birth_date=birth_date,
            notes=notes,
        )
        self.world.workspace.put("contact", card)
        return card

    def noise(self, count: int) -> list[Contact]:
        """Adds cards of people who have nothing to do with the task."""
        return [self.add(self.world.person()) for _ in range(count)]


APP = App("contacts", (search_contacts, get_contact), ContactsSeeder)
