"""A world: seeded people, firms, dates and secrets, and the workspace that they fill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ec2_env.errors import ConfigurationError
from ec2_env.sensitive import KINDS, Necessity, SensitiveUnit
from ec2_env.workspace import secrets, words
from ec2_env.workspace.dice import Dice
from ec2_env.workspace.store import Workspace
from ec2_env.workspace.tools import apps

if TYPE_CHECKING:
    from ec2_env.workspace.apps.calendar import CalendarSeeder
    from ec2_env.workspace.apps.chat import ChatSeeder
    from ec2_env.workspace.apps.config import ConfigSeeder
    from ec2_env.workspace.apps.contacts import ContactsSeeder
    from ec2_env.workspace.apps.crm import CrmSeeder
    from ec2_env.workspace.apps.feeds import FeedsSeeder
    from ec2_env.workspace.apps.files import FilesSeeder
    from ec2_env.workspace.apps.finance import FinanceSeeder
    from ec2_env.workspace.apps.helpdesk import HelpdeskSeeder
    from ec2_env.workspace.apps.inventory import InventorySeeder
    from ec2_env.workspace.apps.kb import KbSeeder
    from ec2_env.workspace.apps.mail import MailSeeder
    from ec2_env.workspace.apps.notes import NotesSeeder
    from ec2_env.workspace.apps.scheduler import SchedulerSeeder
    from ec2_env.workspace.apps.sheets import SheetsSeeder
    from ec2_env.workspace.apps.shell import ShellSeeder
    from ec2_env.workspace.apps.sql import SqlSeeder
    from ec2_env.workspace.apps.todo import TodoSeeder
    from ec2_env.workspace.apps.web import WebSeeder

Language = Literal["en", "zh"]
Split = Literal["train", "test"]
T = TypeVar("T")
HELD_OUT = 2
"""How many phrasings at the end of each list are for the test split only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody in a world. `email` is unique in the world; `firm` is None for colleagues."""

    name: str
    email: str
    role: str
    department: str
    firm: str | None = None

    @property
    def given(self) -> str:
        return self.name.split(" ")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Firm:
    """An outside company: its name and the domain of its addresses."""

    name: str
    domain: str


class World:
    """Draws everything of one episode from one seeded generator.

    Args:
        key: Text that fixes every draw; the same key gives the same world on every platform.
        language: Language of names, texts and formats.
        split: `test` uses the held-out phrasings, `train` the others.
        variant: Which variant of the task to build, from 0.
    """

    def __init__(self, key: str, language: Language, split: Split, variant: int = 0) -> None:
        self.rng = Dice(key)
        self.language: Language = language
        self.split = split
        self.variant = variant
        self.units: list[SensitiveUnit] = []
        self.today = date(2026, 1, 5) + timedelta(days=self.rng.randrange(40) * 7 + self.rng.randrange(5))
        self.workspace = Workspace(datetime(self.today.year, self.today.month, self.today.day, 9, 0))
        self._taken: set[str] = set()
        self._ids: set[str] = set()
        self._kinds: dict[str, int] = {}
        self.me = self.person(role=self.text("assistant to the office", "办公室助理"))

    # -- people and firms

    def person(
        self, *, role: str | None = None, department: str | None = None, firm: Firm | None = None, like: Person | None = None
    ) -> Person:
        """Returns somebody new.

        Args:
            role: Job title; drawn as "member of staff" if not given.
            department: Drawn if not given.
            firm: The outside company that the person works for; None for a colleague.
            like: Somebody with the same family name (English: and the same first letter), for tasks about namesakes.
        """
        rng, language = self.rng, self.language
        for _ in range(1000):
            family = rng.choice(words.FAMILY[language])
            given = rng.choice(words.GIVEN[language])
            if like is not None:
                family = like.name[0] if language == "zh" else like.name.split(" ")[1]
            name = f"{family}{given}" if language == "zh" else f"{given} {family}"
            if name not in self._taken:
                break
        self._taken.add(name)
        local = f"{words.GIVEN_PINYIN[given]}.{words.PINYIN[family]}" if language == "zh" else name.lower().replace(" ", ".")
        email = f"{local}@{firm.domain if firm else 'office.example'}"
        suffix = 2
        while email in self._taken:
            email = f"{local}{suffix}@{firm.domain if firm else 'office.example'}"
            suffix += 1
        self._taken.add(email)
        return Person(
            name=name,
            email=email,
            role=role or self.text("member of staff", "员工"),
            department=department or rng.choice(words.DEPARTMENTS[language]),
            firm=firm.name if firm else None,
        )

    def people(self, count: int, roles: Sequence[str] = ()) -> list[Person]:
        """Returns `count` new colleagues; `roles` gives their job titles in order."""
        return [self.person(role=roles[i] if i < len(roles) else None) for i in range(count)]

    def firm(self) -> Firm:
        """Returns a new outside company."""
        for _ in range(1000):
            head, tail = self.rng.choice(words.FIRM_HEAD[self.language]), self.rng.choice(words.FIRM_TAIL[self.language])
            if head not in self._taken:
                break
        self._taken.add(head)
        index = words.FIRM_HEAD[self.language].index(head)
        return Firm(
            name=head + tail if self.language == "zh" else f"{head} {tail}",
            domain=f"{words.FIRM_HEAD['en'][index].lower()}.example",
        )

    # -- values

    def secret(self, kind: str, value: str | None = None, *, owner: Person | Firm | str, need: Necessity = "none") -> str:
        """Annotates a sensitive value where it is created, and returns it.

        Args:
            kind: One of `ec2_env.sensitive.KINDS`.
            value: The value as it will be written; drawn if not given.
            owner: Whom it is about.
            need: What the work needs of it: "none", "copy" (a placeholder serves) or "reason" (compared, summed, matched).

        Raises:
            ConfigurationError: if the kind is unknown.
        """
        if kind not in KINDS:
            raise ConfigurationError(f"{kind!r} is not a kind of sensitive value; the kinds are {', '.join(KINDS)}")
        if value is None:
            value = self.fresh(lambda: secrets.DRAW[kind](self.rng, self.language))
        dimension, weight = KINDS[kind]
        number = self._kinds[kind] = self._kinds.get(kind, 0) + 1
        whose = owner if isinstance(owner, str) else owner.name
        self.units.append(
            SensitiveUnit(
                id=f"{kind}-{number}", kind=kind, value=value, owner=whose, weight=weight, necessity=need, dimension=dimension
            )
        )
        return value

    def fresh(self, draw: Any) -> str:
        """Calls `draw()` until it returns a text that this world has not used yet (or gives up after 50 draws)."""
        for _ in range(50):
            value: str = draw()
            if value not in self._taken:
                break
        self._taken.add(value)
        return value

    def number(self, low: int, high: int, *, cents: bool = True) -> float:
        """Returns an amount between two bounds, with cents unless told otherwise, never a round hundred."""
        value = self.rng.randrange(low, high)
        value += 7 if value % 100 == 0 else 0
        return value + self.rng.randrange(1, 100) / 100 if cents else float(value)

    def near(self, value: float, *, within: float, above: bool | None = None) -> float:
        """Returns an amount that differs from `value` by a share of at most `within`, above or below it (or as told)."""
        up = self.rng.random() < 0.5 if above is None else above
        share = self.rng.uniform(within / 4, within)
        return round(value * (1 + share if up else 1 - share), 2)

    def money(self, value: float) -> str:
        """Returns an amount as this world writes it."""
        return secrets.money(value, self.language)

    def new_id(self, prefix: str) -> str:
        """Returns an unused id with four random digits, so that an id says nothing about order or importance."""
        while True:
            value = f"{prefix}-{self.rng.randrange(1000, 10_000)}"
            if value not in self._ids:
                self._ids.add(value)
                return value

    # -- time

    def day(self, offset: int) -> date:
        """Returns the date `offset` calendar days from today."""
        return self.today + timedelta(days=offset)

    def workday(self, offset: int) -> date:
        """Returns the date `offset` working days from today (Saturdays and Sundays are skipped)."""
        weeks, rest = divmod(abs(offset), 5)
        step = 1 if offset >= 0 else -1
        current = self.today + timedelta(days=7 * step * weeks)
        for _ in range(rest):
            current += timedelta(days=step)
            while current.weekday() >= 5:
                current += timedelta(days=step)
        return current

    def moment(self, offset_days: int, hour: int | None = None, minute: int | None = None) -> datetime:
        """Returns a time of day `offset_days` from today; hour (8 to 17) and minute are drawn if not given."""
        day = self.day(offset_days)
        hour = self.rng.randrange(8, 18) if hour is None else hour
        return datetime(day.year, day.month, day.day, hour, self.rng.randrange(60) if minute is None else minute)

    def weekday(self, day: date) -> str:
        """Returns the name of a date's weekday in this world's language."""
        return words.WEEKDAYS[self.language][day.weekday()]

    # -- language

    def text(self, en: T, zh: T) -> T:
        """Returns the value that belongs to this world's language."""
        return zh if self.language == "zh" else en

    def pick(self, en: Sequence[T], zh: Sequence[T]) -> T:
        """Returns one of the values for this world's language."""
        return self.rng.choice(zh if self.language == "zh" else en)

    def phrase(self, phrasings: Mapping[str, Sequence[str]], **values: object) -> str:
        """Returns one phrasing of the instruction, from those that belong to the split, with its placeholders filled."""
        options = phrasings[self.language]
        own = options[-HELD_OUT:] if self.split == "test" else options[:-HELD_OUT]
        return self.rng.choice(own).format(**values)

    # -- apps

    @cached_property
    def mail(self) -> MailSeeder:
        return apps.get("mail").seeder(self)  # type: ignore[no-any-return]  # a registry cannot know each seeder's class

    @cached_property
    def contacts(self) -> ContactsSeeder:
        return apps.get("contacts").seeder(self)  # type: ignore[no-any-return]  # as above

    @cached_property
    def calendar(self) -> CalendarSeeder:
        return apps.get("calendar").seeder(self)  # type: ignore[no-any-return]  # as above

    @cached_property
    def files(self) -> FilesSeeder:
        return apps.get("files").seeder(self)  # type: ignore[no-any-return]  # as above

    @cached_property
    def chat(self) -> ChatSeeder:
        return apps.get("chat").seeder(self)  # type: ignore[no-any-return]  # as above

    @cached_property
    def todo(self) -> TodoSeeder:
        return apps.get("todo").seeder(self)  # type: ignore[no-any-return]  # as above

    @cached_property
    def notes(self) -> NotesSeeder:
        return apps.get("notes").seeder(self)  # type: ignore[no-any-return]  # as above

    @cached_property
    def kb(self) -> KbSeeder:
        return apps.get("kb").seeder(self)  # type: ignore[no-any-return]  # as above

    @cached_property
    def helpdesk(self) -> HelpdeskSeeder:
        return apps.get("helpdesk").seeder(self)  # type: ignore[no-any-return]  # as above

    @cached_property
    def crm(self) -> CrmSeeder:
        return apps.get("crm").seeder(self)  # type: ignore[no-any-return]  # as above

    @cached_property
    def finance(self) -> FinanceSeeder:
        return apps.get("finance").seeder(self)  # type: ignore[no-any-return]  # as above

    @cached_property
    def inventory(self) -> InventorySeeder:
        return apps.get("inventory").seeder(self)  # type: ignore[no-any-return]  # as above

    @cached_property
    def feeds(self) -> FeedsSeeder:
        return apps.get("feeds").seeder(self)  # type: ignore[no-any-return]  # as above

    @cached_property
    def scheduler(self) -> SchedulerSeeder:
        return apps.get("scheduler").seeder(self)  # type: ignore[no-any-return]  # as above

    @cached_property
    def config(self) -> ConfigSeeder:
        return apps.get("config").seeder(self)  # type: ignore[no-any-return]  # as above

    @cached_property
    def sheets(self) -> SheetsSeeder:
        return apps.get("sheets").seeder(self)  # type: ignore[no-any-return]  # as above

    @cached_property
    def sql(self) -> SqlSeeder:
        return apps.get("sql").seeder(self)  # type: ignore[no-any-return]  # as above

    @cached_property
    def web(self) -> WebSeeder:
        return apps.get("web").seeder(self)  # type: ignore[no-any-return]  # as above

    @cached_property
    def shell(self) -> ShellSeeder:
        return apps.get("shell").seeder(self)  # type: ignore[no-any-return]  # as above
