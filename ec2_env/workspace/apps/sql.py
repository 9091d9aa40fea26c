"""SQL: a read-only SQLite database over the tables that the task's world declares. Nothing else of the workspace is in it.

A table either holds rows of its own or shows some fields of another app's rows as they are at the moment, such as the tickets of
the helpdesk. Mails and credentials are never there unless a task declares them.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ec2_env.errors import ConfigurationError, ToolError
from ec2_env.workspace.queries import MAX_CELL, Database, Table
from ec2_env.workspace.store import Row, Workspace
from ec2_env.workspace.tools import App, tool

if TYPE_CHECKING:
    from ec2_env.workspace.world import World

MAX_ROWS = 100
"""Rows of a result that are shown at most."""
MAX_CHARS = 6_000
"""Characters of a result that are shown at most; further rows are left out."""
KEPT = 8
"""How many databases a thread keeps, one for each state of the workspace that was asked lately."""
_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]{0,39}")
_TYPES = ("TEXT", "INTEGER", "REAL")


class Column(msgspec.Struct, frozen=True):
    """One column: its name, its SQLite type, what it means, and the field of the source's rows that it shows."""

    name: str
    type: str
    note: str = ""
    field: str = ""


class SqlTable(Row, frozen=True, kw_only=True):
    """One table of the database; `id` is its name. It has `cells` of its own, or shows the rows of the table `source`."""

    description: str
    columns: tuple[Column, ...]
    cells: tuple[tuple[str | int | float | None, ...], ...] = ()
    source: str = ""


@tool(opens="describe_table")
def list_tables(workspace: Workspace) -> list[dict[str, Any]]:
    """Lists the tables of the database with their number of rows."""
    return [
        {"table": table.id, "rows": len(_source(workspace, table)), "description": table.description}
        for table in workspace.rows("sqltable").values()
    ]


@tool()
def describe_table(workspace: Workspace, table: str) -> dict[str, Any]:
    """Shows the columns of a table: name, type and meaning.

    Args:
        table: Name of the table, as shown by list_tables.
    """
    found: SqlTable | None = workspace.rows("sqltable").get(table.strip().lower())
    if found is None:
        raise ToolError(f"no such table: {table[:80]!r}; the tables are {', '.join(workspace.rows('sqltable')) or 'none'}")
    columns = [{"name": c.name, "type": c.type, **({"note": c.note} if c.note else {})} for c in found.columns]
    return {"table": found.id, "description": found.description, "rows": len(_source(workspace, found)), "columns": columns}


@tool()
def query_sql(workspace: Workspace, query: str) -> dict[str, Any]:
    """Runs one read-only SELECT statement of SQLite and shows at most 100 rows of its result.

    Args:
        query: The statement, at most 2000 characters. WITH, joins, grouping and window functions work; WITH RECURSIVE does not.
    """
    columns, rows, more = database(workspace).query(query, workspace.now, MAX_ROWS)
    kept, size = 0, 0
    for row in rows:
        size += sum(len(str(cell)) + 3 for cell in row)
        if size > MAX_CHARS:
            break
        kept += 1
    result: dict[str, Any] = {"columns": columns, "rows": rows[:kept]}
    if more or kept < len(rows):
        result["note"] = f"only the first {kept} rows are shown; group, filter, or use LIMIT and OFFSET"
    return result


class _Cache(threading.local):
    def __init__(self) -> None:
        self.known: list[tuple[tuple[Any, ...], Database]] = []


_cache = _Cache()


def database(workspace: Workspace) -> Database:
    """Returns the database for the workspace's present rows; workspaces with the same rows share it, as nobody can change it."""
    tables = tuple(workspace.rows("sqltable").values())
    state = (tables, *(tuple(_source(workspace, table)) for table in tables if table.source))
    known = _cache.known
    for position, (other, found) in enumerate(known):
        if other == state:
            known.insert(0, known.pop(position))
            return found
    built = Database([Table(t.id, tuple((c.name, c.type) for c in t.columns), _cells(workspace, t)) for t in tables])
    known.insert(0, (state, built))
    del known[KEPT:]
    return built


def _source(workspace: Workspace, table: SqlTable) -> Sequence[Any]:
    return list(workspace.rows(table.source).values()) if table.source else table.cells


def _cells(workspace: Workspace, table: SqlTable) -> Sequence[Sequence[Any]]:
    if not table.source:
        return table.cells
    fields = [column.field for column in table.columns]
    return [[_cell(getattr(row, field, None)) for field in fields] for row in workspace.rows(table.source).values()]


def _cell(value: Any) -> str | int | float | None:
    """Returns a field as SQLite stores it: booleans as 0 and 1, sequences as JSON."""
    if value is None or isinstance(value, int | float):
        return min(max(value, -(2**63)), 2**63 - 1) if isinstance(value, int) else value
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text[:MAX_CELL]


class SqlSeeder:
    """Declares the tables of the database while a world is built."""

    def __init__(self, world: World) -> None:
        self.world = world

    def table(
        self,
        name: str,
        columns: Mapping[str, str],
        rows: Iterable[Sequence[str | int | float | None]],
        *,
        description: str = "",
        notes: Mapping[str, str] | None = None,
    ) -> SqlTable:
        """Adds a table with rows of its own and returns it.

        Args:
            name: Name of the table, in snake case.
            columns: SQLite type (TEXT, INTEGER or REAL) by column name.
            rows: Cells in the order of the columns.
            description: What the table holds, as list_tables shows it.
            notes: What a column means, as describe_table shows it.
        """
        noted = notes or {}
        parts = tuple(Column(column, kind, noted.get(column, "")) for column, kind in columns.items())
        return self._put(SqlTable(id=name, description=description, columns=parts, cells=tuple(tuple(row) for row in rows)))

    def expose(
        self,
        name: str,
        source: str,
        columns: Mapping[str, str],
        *,
        description: str = "",
        notes: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> SqlTable:
        """Shows another app's rows as a table, always as they are at the moment.

        Args:
            name: Name of the table in the database.
            source: Name of the workspace's table, such as "ticket".
            columns: SQLite type by column name; only these columns are shown.
            description: What the table holds.
            notes: What a column means.
            fields: The rows' field by column name, where they differ.
        """
        noted, named = notes or {}, fields or {}
        parts = tuple(Column(column, kind, noted.get(column, ""), named.get(column, column)) for column, kind in columns.items())
        return self._put(SqlTable(id=name, description=description, columns=parts, source=source))

    def noise(self, count: int) -> list[SqlTable]:
        """Adds up to three tables that have nothing to do with the task, with `count` rows each."""
        world = self.world
        rng = world.rng
        added = []
        for name, (text, kinds, words) in NOISE[world.language].items():
            rows = tuple((rng.choice(words), rng.randrange(1, 500)) for _ in range(count))
            added.append(self._put(SqlTable(id=name, description=text, columns=kinds, cells=rows)))
        return added

    def _put(self, table: SqlTable) -> SqlTable:
        for column in table.columns:
            if column.type not in _TYPES or not _IDENTIFIER.fullmatch(column.name):
                raise ConfigurationError(
                    f"column {column.name!r} {column.type!r} of {table.id!r}: expected a snake-case name "
                    f"and one of {', '.join(_TYPES)}"
                )
        if not _IDENTIFIER.fullmatch(table.id):
            raise ConfigurationError(f"table {table.id!r}: expected a snake-case name")
        if any(len(row) != len(table.columns) for row in table.cells):
            raise ConfigurationError(f"table {table.id!r}: every row needs {len(table.columns)} cells")
        self.world.workspace.put("sqltable", table)
        return table


NOISE = {
    "en": {
        "page_views": (
            "Page views of the intranet",
            (Column("page", "TEXT"), Column("views", "INTEGER")),
            ("home", "canteen", "holidays", "phone list", "news", "parking"),
        ),
        "desk_items": (
            "Things counted at the last stock-taking of desks",
            (Column("item", "TEXT"), Column("count", "INTEGER")),
            ("monitor", "lamp", "chair", "headset", "keyboard", "plant"),
        ),
        "room_hours": (
            "Booked hours of meeting rooms",
            (Column("room", "TEXT"), Column("hours", "INTEGER")),
            ("Oak", "Elm", "Birch", "Cedar", "Maple"),
        ),
    },
    "zh": {
        "page_views": (
            "内网页面访问量",
            (Column("page", "TEXT"), Column("views", "INTEGER")),
            ("首页", "食堂", "假期", "通讯录", "新闻", "停车"),
        ),
        "desk_items": (
            "上次盘点的工位物品",
            (Column("item", "TEXT"), Column("count", "INTEGER")),
            ("显示器", "台灯", "椅子", "耳机", "键盘", "绿植"),
        ),
        "room_hours": (
            "会议室预订小时数",
            (Column("room", "TEXT"), Column("hours", "INTEGER")),
            ("梧桐厅", "银杏厅", "松柏厅", "桂花厅", "枫叶厅"),
        ),
    },
}

APP = App("sql", (list_tables, describe_table, query_sql), SqlSeeder)
