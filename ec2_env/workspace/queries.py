"""A guarded SQLite database in memory: it answers one SELECT at a time and can neither change, reach out, nor run away.

Four walls: an authorizer that knows only reading and a list of functions, a limit on the virtual machine's steps, limits on the
length of texts, and functions of our own where SQLite's would take long or depend on the clock or the machine.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from ec2_env.errors import ToolError

MAX_QUERY_CHARS = 2_000
MAX_JOINED = 8
"""How many `||` one query may hold; each at most doubles the longest text."""
MAX_STEPS = 400_000
"""Instructions of SQLite's virtual machine that one query may take, some 10 ms."""
MAX_TEXT = 20_000
"""Longest text that a function of a query may make."""
MAX_CELL = 500
"""Longest text kept of one cell."""
_STRIDE = 1_000

_READS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
}
FUNCTIONS = frozenset(
    "abs avg coalesce count current_date current_time current_timestamp date datetime format group_concat ifnull iif instr "
    "julianday length like lower ltrim max min nullif printf replace round rtrim strftime substr substring sum time total trim "
    "typeof upper row_number rank dense_rank lag lead first_value last_value nth_value ntile percent_rank cume_dist".split()
)
"""What a query may call. Left out are functions that draw at random, load code, or blow up texts."""
_START = re.compile(r"\s*(select|with|values)\b", re.IGNORECASE)
_WIDE = re.compile(r"\d{3,}|\*")


class Table(NamedTuple):
    """A table to build: its name, its columns with their SQLite types, and its rows."""

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: Sequence[Sequence[Any]]


class Answer(NamedTuple):
    """The first rows of a result, and whether there are more."""

    columns: list[str]
    rows: list[list[Any]]
    more: bool


class Database:
    """A read-only database over some tables.

    Args:
        tables: What to build; names must be plain identifiers.
    """

    def __init__(self, tables: Sequence[Table]) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._plain = sqlite3.connect(":memory:", isolation_level=None)
        self._now = ""
        self._steps = 0
        self._names = {table.name for table in tables} | {"sqlite_master", "sqlite_schema"}
        for table in tables:
            self._build(table)
        self._replace_functions()
        self._connection.set_authorizer(self._authorize)
        self._connection.set_progress_handler(self._step, _STRIDE)

    def __del__(self) -> None:
        self._connection.close()
        self._plain.close()

    def query(self, text: str, now: datetime, limit: int) -> Answer:
        """Runs one SELECT.

        Args:
            text: The statement.
            now: What the query takes for the current time.
            limit: How many rows to return at most.

        Raises:
            ToolError: if it is no single SELECT, is wrong, or takes too long.
        """
        problem = refused(text)
        if problem:
            raise ToolError(problem)
        self._now, self._steps = now.isoformat(" ", "seconds"), 0
        cursor = None
        try:
            cursor = self._connection.execute(text)
            rows = cursor.fetchmany(limit + 1)
            columns = [column[0] for column in cursor.description or ()]
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
            raise ToolError(self._explained(error)) from None
        finally:
            if cursor is not None:
                cursor.close()
        return Answer(columns, [[shown(cell) for cell in row] for row in rows[:limit]], len(rows) > limit)

    def _build(self, table: Table) -> None:
        columns = ", ".join(f'"{name}" {kind}' for name, kind in table.columns)
        self._connection.execute(f'CREATE TABLE "{table.name}" ({columns})')
        marks = ", ".join("?" * len(table.columns))
        self._connection.executemany(f'INSERT INTO "{table.name}" VALUES ({marks})', table.rows)

    def _replace_functions(self) -> None:
        own: Mapping[str, tuple[int, Callable[..., Any]]] = {
            "date": (-1, self._dated("date", 0)),
            "time": (-1, self._dated("time", 0)),
            "datetime": (-1, self._dated("datetime", 0)),
            "julianday": (-1, self._dated("julianday", 0)),
            "strftime": (-1, self._dated("strftime", 1)),
            "current_date": (0, lambda: self._now[:10]),
            "current_time": (0, lambda: self._now[11:]),
            "current_timestamp": (0, lambda: self._now),
            "printf": (-1, self._printf),
            "format": (-1, self._printf),
            "replace": (3, _replace),
            "instr": (2, lambda text, part: None if text is None or part is None else _text(text).find(_text(part)) + 1),
            "trim": (-1, _trimmed(str.strip)),
            "ltrim": (-1, _trimmed(str.lstrip)),
            "rtrim": (-1, _trimmed(str.rstrip)),
        }
        for name, (count, function) in own.items():
            self._connection.create_function(name, count, function)
        for count in (2, 3):
            self._connection.create_function("like", count, like)
        self._connection.create_aggregate("group_concat", -1, _Joined)  # type: ignore[arg-type]  # the stub wants one step()

    def _authorize(self, action: int, first: str | None, second: str | None, database: str | None, inner: str | None) -> int:
        allowed = action in _READS
        if action == sqlite3.SQLITE_READ:
            allowed = not second or first in self._names
        elif action == sqlite3.SQLITE_FUNCTION:
            allowed = (second or "").lower() in FUNCTIONS
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    def _step(self) -> int:
        self._steps += _STRIDE
        return int(self._steps > MAX_STEPS)

    def _dated(self, name: str, place: int) -> Callable[..., Any]:
        """Returns SQLite's date function with the simulated time for "now"; it has no other time zone."""

        def function(*given: Any) -> Any:
            arguments = list(given)
            if len(arguments) == place:
                arguments.append("now")
            if place < len(arguments) and str(arguments[place]).strip().lower() == "now":
                arguments[place] = self._now
            kept = [a for i, a in enumerate(arguments) if i <= place or str(a).strip().lower() not in ("localtime", "utc")]
            marks = ", ".join("?" * len(kept))
            return self._plain.execute(f"SELECT {name}({marks})", kept).fetchone()[0]

        return function

    def _printf(self, *arguments: Any) -> Any:
        if not arguments or len(arguments) > 20 or _WIDE.search(str(arguments[0])):
            raise ValueError("printf takes a format without widths above 99 and at most 19 values")
        marks = ", ".join("?" * len(arguments))
        return _bounded(self._plain.execute(f"SELECT printf({marks})", arguments).fetchone()[0])

    def _explained(self, error: BaseException) -> str:
        text = str(error)
        if "interrupted" in text:
            return f"the query takes more than {MAX_STEPS} steps; join on equal columns, and read less"
        if "not authorized" in text or "prohibited" in text:
            return "not authorized; only SELECT on the listed tables, without WITH RECURSIVE, and plain functions are allowed"
        if "one statement" in text:
            return "give one statement at a time"
        if "no such table" in text:
            return f"{text[:200]}; the tables are {', '.join(sorted(self._names - {'sqlite_master', 'sqlite_schema'}))}"
        return f"SQL error: {text[:300]}"


def refused(text: str) -> str | None:
    """Says why a text is not run at all, or None."""
    if len(text) > MAX_QUERY_CHARS:
        return f"the query has {len(text)} characters; at most {MAX_QUERY_CHARS} are accepted"
    if not _START.match(text):
        return "the database is read-only; the query has to start with SELECT or WITH"
    if text.count("||") > MAX_JOINED:
        return f"the query joins texts with || {text.count('||')} times; at most {MAX_JOINED} are accepted"
    return None


def shown(cell: Any) -> Any:
    """Returns a cell as the result shows it: floats to six decimals, long texts cut, no bytes."""
    if isinstance(cell, float):
        return round(cell, 6) if math.isfinite(cell) else None
    if isinstance(cell, bytes):
        return f"[{len(cell)} bytes]"
    if isinstance(cell, str) and len(cell) > MAX_CELL:
        return f"{cell[:MAX_CELL]}..."
    return cell


def like(pattern: Any, text: Any, escape: Any = None) -> int | None:
    """LIKE in time proportional to pattern and text. Case of ASCII letters makes no difference."""
    if pattern is None or text is None:
        return None
    first, *rest = _segments(_text(pattern)[:MAX_CELL], str(escape or "")[:1])
    line = _text(text)
    found = first.match(line)
    if found is None or not rest:
        return int(found is not None and found.end() == len(line))
    position = found.end()
    for segment in rest[:-1]:
        found = segment.search(line, position)
        if found is None:
            return 0
        position = found.end()
    start = len(line) - rest[-1].length
    return int(start >= position and rest[-1].match(line, start) is not None)


@lru_cache(maxsize=256)
def _segments(pattern: str, escape: str) -> tuple[_Segment, ...]:
    """Returns what stands between the % of a pattern, each of a fixed length."""
    parts: list[list[str]] = [[]]
    literal = False
    for char in pattern:
        if char == escape and not literal:
            literal = True
            continue
        if char == "%" and not literal:
            parts.append([])
        else:
            parts[-1].append("." if char == "_" and not literal else re.escape(char))
        literal = False
    return tuple(_Segment(re.compile("".join(part), re.IGNORECASE | re.DOTALL), len(part)) for part in parts)


class _Segment(NamedTuple):
    expression: re.Pattern[str]
    length: int

    def match(self, text: str, position: int = 0) -> re.Match[str] | None:
        return self.expression.match(text, position)

    def search(self, text: str, position: int) -> re.Match[str] | None:
        return self.expression.search(text, position)


class _Joined:
    """group_concat with a limit."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0

    def step(self, value: Any, separator: Any = ",") -> None:
        if value is None:
            return
        self._parts += [_text(separator)] if self._parts else []
        self._parts.append(_text(value))
        self._length += len(self._parts[-1]) + 1
        if self._length > MAX_TEXT:
            raise ValueError("group_concat makes too long a text")

    def finalize(self) -> str | None:
        return "".join(self._parts) if self._parts else None


def _replace(text: Any, old: Any, new: Any) -> str | None:
    if text is None or old is None or new is None:
        return None
    line, part, other = _text(text), _text(old), _text(new)
    if not part:
        return line
    if len(line) + line.count(part) * len(other) > MAX_TEXT:
        raise ValueError("replace makes too long a text")
    return line.replace(part, other)


def _trimmed(strip: Callable[..., str]) -> Callable[..., str | None]:
    return lambda text, chars=" ": None if text is None or chars is None else strip(_text(text), _text(chars))


def _bounded(value: Any) -> Any:
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise ValueError("the text is too long")
    return value


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
