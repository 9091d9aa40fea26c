"""The rows of the offline web, and what its servers do with a form that is sent to them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Literal

from ec2_env.errors import ToolError
from ec2_env.workspace.store import Row, Workspace

FieldKind = Literal["text", "number", "date", "choice", "email", "phone"]
Pairs = tuple[tuple[str, str], ...]
MAX_VALUE_CHARS = 1_000
"""Longest value of one field; a field of its own may allow less."""
MAX_ADDRESS_CHARS = 300
_NORMAL = re.compile(r"https://[a-z0-9-]+(\.[a-z0-9-]+)+(/[^\s#]*[^\s#/])?", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,12}(\.\d{1,6})?", re.ASCII)
_EMAIL = re.compile(r"[^@\s,;<>]{1,64}@[^@\s,;<>.]{1,64}(\.[^@\s,;<>.]{1,64}){1,4}")
_PHONE = re.compile(r"\+?[\d ()-]{6,24}", re.ASCII)


class Page(Row, frozen=True, kw_only=True):
    """One page; `id` is its address.

    Attributes:
        links: Text and address of each link.
        forms: Addresses of the forms on it.
        record: Id of the server's record that it shows below its text, or empty.
        moved_to: Address that it redirects to, or empty.
        refusal: What the server says instead of showing it (403), or empty.
        indexed: Whether the search engine knows it.
    """

    title: str
    text: str = ""
    links: Pairs = ()
    forms: tuple[str, ...] = ()
    record: str = ""
    moved_to: str = ""
    refusal: str = ""
    indexed: bool = True


class Field(Row, frozen=True, kw_only=True):
    """One field of a form; `id` is its name. What is empty or None is not asked for.

    Attributes:
        low: Least value of a number or date, as text.
        high: Greatest value, as text.
        known: Values that the server knows; others are refused with `unknown`. Not shown.
        refused: Values that the server refuses, each with what it says. Not shown.
    """

    label: str
    kind: FieldKind = "text"
    required: bool = True
    choices: tuple[str, ...] = ()
    hint: str = ""
    low: str = ""
    high: str = ""
    known: tuple[str, ...] = ()
    unknown: str = ""
    refused: Pairs = ()


class Rule(Row, frozen=True, kw_only=True):
    """What the server demands of one field when others have certain values: a pair that fits no `accepts` is refused."""

    field: str
    when: Pairs
    low: str = ""
    high: str = ""
    accepts: tuple[str, ...] = ()
    message: str


class Form(Row, frozen=True, kw_only=True):
    """A form; `id` is its address.

    Attributes:
        effect: "submit" files a submission; "edit" changes the record; "open" only shows a page (a search, a login).
        rules: Demands on combinations of fields.
        answers: For "open": the values, joined by "|", and the address that they open.
        otherwise: For "open": what the server says to any other values.
        record: For "edit": id of the record.
        unique: For "submit": the field of which each value is accepted once (409), or empty.
        prefix: For "submit": how the confirmation number begins.
        closed: What the server says if it takes no submissions any more, or empty.
    """

    title: str
    fields: tuple[Field, ...]
    effect: Literal["submit", "edit", "open"] = "submit"
    rules: tuple[Rule, ...] = ()
    answers: Pairs = ()
    otherwise: str = ""
    record: str = ""
    unique: str = ""
    prefix: str = "web"
    closed: str = ""
    thanks: str = ""


class Submission(Row, frozen=True, kw_only=True):
    """What was filed with a form; `id` is the confirmation number. A field that was left empty is an empty text."""

    form: str
    values: Pairs
    date: str

    @property
    def lasting(self) -> bool:
        return True

    @property
    def reaches(self) -> tuple[str, ...]:
        return (f"host:{host_of(self.form)}",)


class Record(Row, frozen=True, kw_only=True):
    """What a site's server holds about something: an account, a booking. `site` is its host."""

    site: str
    values: Pairs

    @property
    def reaches(self) -> tuple[str, ...]:
        return (f"host:{self.site}",)


def host_of(url: str) -> str:
    return url.partition("://")[2].partition("/")[0]


def address(text: str) -> str:
    """Returns an address in its one normal form: https, host in lower case, no fragment, no slash at the end.

    Raises:
        ToolError: if it is none.
    """
    if len(text) <= MAX_ADDRESS_CHARS and _NORMAL.fullmatch(text):
        return text
    url = text.strip().partition("#")[0]
    scheme, separator, rest = url.partition("://")
    if not separator:
        scheme, rest = "https", url
    host, slash, path = rest.partition("/")
    if scheme.lower() not in ("http", "https") or "." not in host or len(url) > MAX_ADDRESS_CHARS or len(url.split()) != 1:
        raise ToolError(f"{text[:80]!r} is not an address; expected https://host/path")
    return f"https://{host.lower()}{slash}{path}".rstrip("/")


def checked(form: Form, given: Mapping[str, str], workspace: Workspace) -> Pairs:
    """Returns the values of a form in normal form and in the order of its fields, as the server takes them.

    Raises:
        ToolError: with the server's complaints (422), or 409 for a value that was filed before, or 410 for a closed form.
    """
    if form.closed:
        raise ToolError(f"410 Gone: {form.closed}")
    complaints = [f"{name[:60]!r} is not a field of this form" for name in given if all(f.id != name for f in form.fields)]
    values: dict[str, str] = {}
    for field in form.fields:
        try:
            values[field.id] = normal(field, given.get(field.id, "").strip())
        except ToolError as error:
            complaints.append(f"{field.id}: {error}")
    if not complaints:
        complaints = [f"{rule.field}: {rule.message}" for rule in form.rules if broken(rule, values)]
    if complaints:
        raise ToolError(f"422 Unprocessable: {'; '.join(complaints[:10])}. Nothing was saved")
    pairs = tuple(values.items())
    if form.unique and any(
        row.form == form.id and dict(row.values)[form.unique] == values[form.unique]
        for row in workspace.rows("submission").values()
    ):
        raise ToolError(f"409 Conflict: {form.unique} {values[form.unique]!r} was filed before; see list_submissions")
    return pairs


def normal(field: Field, text: str) -> str:
    """Returns one value in normal form.

    Raises:
        ToolError: if the server refuses it.
    """
    if not text:
        if field.required:
            raise ToolError("required")
        return ""
    if len(text) > MAX_VALUE_CHARS:
        raise ToolError(f"at most {MAX_VALUE_CHARS} characters")
    value = _KINDS[field.kind](field, text)
    if field.known and value.casefold() not in {known.casefold() for known in field.known}:
        raise ToolError(field.unknown or f"{value!r} is unknown")
    for wrong, message in field.refused:
        if value.casefold() == wrong.casefold():
            raise ToolError(message)
    if outside(field.kind, value, field.low, field.high):
        raise ToolError(f"must be from {field.low or 'any'} to {field.high or 'any'}")
    return value


def broken(rule: Rule, values: Mapping[str, str]) -> bool:
    """Says whether values break a rule; an empty value breaks none."""
    value = values.get(rule.field, "")
    if not value or any(values.get(name, "").casefold() != wanted.casefold() for name, wanted in rule.when):
        return False
    if rule.accepts and value.casefold() not in {accepted.casefold() for accepted in rule.accepts}:
        return True
    kind: FieldKind = "number" if _NUMBER.fullmatch(value) else "date"
    return outside(kind, value, rule.low, rule.high)


def outside(kind: FieldKind, value: str, low: str, high: str) -> bool:
    """Says whether a number or date is beyond one of its bounds; both count as inside."""
    if kind == "number":
        return bool(low and float(value) < float(low)) or bool(high and float(value) > float(high))
    return bool(low and value < low) or bool(high and value > high)


def _plain(field: Field, text: str) -> str:
    return " ".join(text.split())


def _number(field: Field, text: str) -> str:
    plain = text.replace(",", "").lstrip("$¥").removesuffix("元")
    if not _NUMBER.fullmatch(plain):
        raise ToolError(f"{text[:40]!r} is not a number")
    return plain.rstrip("0").rstrip(".") if "." in plain else str(int(plain))


def _date(field: Field, text: str) -> str:
    try:
        return date.fromisoformat(text[:10]).isoformat() if len(text) == 10 else _raise(text)
    except ValueError:
        return _raise(text)


def _raise(text: str) -> str:
    raise ToolError(f"{text[:40]!r} is not a date; expected YYYY-MM-DD")


def _choice(field: Field, text: str) -> str:
    for choice in field.choices:
        if choice.casefold() == text.casefold():
            return choice
    raise ToolError(f"choose one of {', '.join(field.choices)}")


def _email(field: Field, text: str) -> str:
    if not _EMAIL.fullmatch(text):
        raise ToolError(f"{text[:40]!r} is not an e-mail address")
    return text.lower()


def _phone(field: Field, text: str) -> str:
    if not _PHONE.fullmatch(text):
        raise ToolError(f"{text[:40]!r} is not a phone number")
    return text


_KINDS = {"text": _plain, "number": _number, "date": _date, "choice": _choice, "email": _email, "phone": _phone}
