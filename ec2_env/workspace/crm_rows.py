"""Rows of the CRM: accounts, opportunities, activities and exports."""

from __future__ import annotations

from typing import Literal

from ec2_env.workspace.store import Row

Tier = Literal["vip", "gold", "silver", "standard"]
AccountStatus = Literal["prospect", "active", "on_hold", "churned"]
Stage = Literal["prospecting", "proposal", "negotiation", "closed_won", "closed_lost"]
Column = Literal[
    "name", "tier", "status", "industry", "owner", "contact_name", "contact_email", "contact_phone", "contract_end",
    "contract_value", "satisfaction", "last_contact", "notes",
]  # fmt: skip
TEAM = "team:crm"
"""Everybody in sales reads what is written into the CRM."""


class Account(Row, frozen=True, kw_only=True):
    """One customer. Dates are "YYYY-MM-DD", amounts are texts; details that it does not have are empty."""

    name: str
    tier: str = "standard"
    status: str = "active"
    industry: str = ""
    owner: str = ""
    aliases: tuple[str, ...] = ()
    website: str = ""
    contact_name: str = ""
    contact_email: str = ""
    contact_phone: str = ""
    contact_birthday: str = ""
    billing_address: str = ""
    bank_account: str = ""
    contract_start: str = ""
    contract_end: str = ""
    contract_value: str = ""
    contract_terms: str = ""
    satisfaction: float | None = None
    last_contact: str = ""
    created: str = ""
    notes: str = ""
    locked: bool = False
    merged_into: str = ""

    @property
    def reaches(self) -> tuple[str, ...]:
        return (TEAM,)


class Opportunity(Row, frozen=True, kw_only=True):
    """One deal in the making. `amount` is a text."""

    account_id: str
    name: str
    stage: str
    amount: str
    close_date: str
    owner: str = ""
    notes: str = ""

    @property
    def reaches(self) -> tuple[str, ...]:
        return (TEAM,)


class Activity(Row, frozen=True, kw_only=True):
    """Something that was done for an account."""

    account_id: str
    kind: str
    subject: str
    notes: str
    date: str
    author: str

    @property
    def reaches(self) -> tuple[str, ...]:
        return (TEAM,)


class AccountExport(Row, frozen=True, kw_only=True):
    """A table of accounts that was sent to somebody. `lines` holds what it shows, one account a line."""

    title: str
    account_ids: tuple[str, ...]
    columns: tuple[str, ...]
    recipients: tuple[str, ...]
    lines: tuple[str, ...]

    @property
    def lasting(self) -> bool:
        return True

    @property
    def reaches(self) -> tuple[str, ...]:
        return self.recipients


INDUSTRIES = {
    "en": ("logistics", "retail", "software", "food", "energy", "media", "health care", "education"),
    "zh": ("物流", "零售", "软件", "食品", "能源", "传媒", "医疗", "教育"),
}
NOISE = {
    "en": (
        "Ashgrove Bakeries", "Brindle & Sons", "Copperfield Dental", "Dunmore Ferries", "Elderwood Schools", "Fernhill Optics",
        "Gorse Garden Centres", "Hawthorn Cycles", "Inkwell Press", "Jackdaw Records", "Knoll Farm Dairy", "Linden Pharmacies",
        "Mossbank Hotels", "Nettle Outdoor", "Orchard Lane Toys", "Peartree Insurance",
    ),
    "zh": (
        "白桦烘焙", "春晓口腔", "翠谷渡轮", "朝阳学校", "鼎盛光学", "东湖园艺", "飞燕单车", "广文书局",
        "和鸣唱片", "锦绣乳业", "康宁药房", "蓝湾酒店", "绿野户外", "南山玩具", "平安里保险", "青松画廊",
    ),
}  # fmt: skip
