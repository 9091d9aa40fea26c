"""The database: what a query may do, what it may not, and that it always shows the workspace as it is."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from ec2_env.actions import ToolCall
from ec2_env.errors import ConfigurationError
from ec2_env.workspace.queries import MAX_QUERY_CHARS, like
from ec2_env.workspace.store import Workspace
from ec2_env.workspace.tools import Result, Toolbox
from ec2_env.workspace.world import World

TOOLS = Toolbox(("sql", "contacts"))


def office(language: str = "en") -> World:
    world = World(f"sql/{language}", language, "train")  # type: ignore[arg-type]  # "en" or "zh"
    world.sql.table(
        "orders",
        {"order_id": "TEXT", "customer": "TEXT", "amount": "REAL", "placed": "TEXT"},
        [("O-1", "C-1", 10.25, "2026-01-02"), ("O-2", "C-2", 20.5, "2026-01-03"), ("O-3", "C-1", 30.0, "2026-02-01")],
        description="Orders of the shop",
        notes={"amount": "before refunds"},
    )
    world.sql.table("refunds", {"order_id": "TEXT", "amount": "REAL"}, [("O-3", 5.5)])
    world.contacts.noise(3)
    world.sql.expose("people", "contact", {"name": "TEXT", "mail": "TEXT"}, fields={"mail": "email"})
    world.sql.noise(5)
    world.workspace.begin()
    return world


def run(workspace: Workspace, name: str, **arguments: Any) -> Result:
    return TOOLS.run(workspace, ToolCall(name, arguments))


def rows(workspace: Workspace, query: str) -> Any:
    result = run(workspace, "query_sql", query=query)
    assert result.ok, result.text
    return result.value["rows"]


def test_lists_show_sizes_and_descriptions_show_columns() -> None:
    workspace = office().workspace
    listed = {table["table"]: table for table in run(workspace, "list_tables").value}
    assert listed["orders"] == {"table": "orders", "rows": 3, "description": "Orders of the shop"}
    assert listed["people"]["rows"] == 3
    columns = run(workspace, "describe_table", table="orders").value["columns"]
    assert {"name": "amount", "type": "REAL", "note": "before refunds"} in columns


def test_joins_groups_and_windows_work() -> None:
    workspace = office().workspace
    query = (
        "SELECT o.customer, SUM(o.amount) - COALESCE(SUM(r.amount), 0) AS net FROM orders o "
        "LEFT JOIN refunds r USING (order_id) GROUP BY o.customer ORDER BY net DESC"
    )
    assert rows(workspace, query) == [["C-1", 34.75], ["C-2", 20.5]]
    assert rows(
        workspace, "WITH t AS (SELECT *, row_number() OVER (ORDER BY amount) n FROM orders) SELECT n FROM t WHERE amount=30"
    ) == [[3]]
    assert rows(workspace, "SELECT group_concat(order_id, '; ') FROM orders WHERE customer LIKE 'c-_'") == [["O-1; O-2; O-3"]]


def test_exposed_tables_follow_the_workspace_and_forks_stay_apart() -> None:
    world = office()
    workspace = world.workspace
    other = workspace.fork()
    card = next(iter(workspace.rows("contact").values()))
    assert rows(workspace, "SELECT COUNT(*) FROM people WHERE name = 'Changed'") == [[0]]
    workspace.put("contact", msgspec.structs.replace(card, name="Changed"))
    assert rows(workspace, "SELECT COUNT(*) FROM people WHERE name = 'Changed'") == [[1]]
    assert rows(other, "SELECT COUNT(*) FROM people WHERE name = 'Changed'") == [[0]]
    workspace.undo(0)
    assert rows(workspace, "SELECT COUNT(*) FROM people WHERE name = 'Changed'") == [[0]]


def test_columns_that_are_not_declared_are_not_there() -> None:
    result = run(office().workspace, "query_sql", query="SELECT phone FROM people")
    assert not result.ok
    assert "no such column" in result.text


@pytest.mark.parametrize(
    "query",
    [
        "INSERT INTO orders VALUES ('x', 'y', 1, 'z')",
        "DELETE FROM orders",
        "DROP TABLE orders",
        "PRAGMA table_info(orders)",
        "ATTACH DATABASE 'x.db' AS x",
        "SELECT 1; DROP TABLE orders",
        "SELECT load_extension('x')",
        "SELECT * FROM pragma_database_list",
        "SELECT value FROM json_each('[1,2]')",
        "SELECT random()",
        "SELECT hex(zeroblob(100000000))",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n) SELECT COUNT(*) FROM n",
        "WITH d AS (SELECT 1) DELETE FROM orders",
        "EXPLAIN SELECT 1",
        "",
        "   ",
        "SELECT",
        "SELECT * FROM nowhere",
        "SELECT 'a\x00b",
        "SELECT sum(9223372036854775807) + abs(-9223372036854775807 - 1)",
        "SELECT printf('%1000000d', 1)",
        "SELECT replace('aaaaaaaaaa', 'a', group_concat(c.customer)) FROM orders a, orders b, orders c, orders d, orders e, "
        "orders f, orders g, orders h, orders i",
        "SELECT " + "||".join(["'a'"] * 20),
        "SELECT '" + "x" * MAX_QUERY_CHARS + "'",
        "SELECT " + "(" * 900 + "1" + ")" * 900,
    ],
)
def test_what_is_not_a_plain_select_is_refused_and_changes_nothing(query: str) -> None:
    workspace = office().workspace
    assert not run(workspace, "query_sql", query=query).ok
    assert rows(workspace, "SELECT COUNT(*) FROM orders") == [[3]]
    assert workspace.journal == ()


def test_a_query_that_runs_away_is_stopped() -> None:
    joins = ", ".join(f"orders t{number}" for number in range(16))
    result = run(office().workspace, "query_sql", query=f"SELECT COUNT(*) FROM {joins} WHERE t0.amount + t15.amount < 0")
    assert not result.ok
    assert "steps" in result.text


def test_time_is_the_simulated_time() -> None:
    world = office()
    today = world.today.isoformat()
    query = (
        "SELECT date('now'), date(), CURRENT_DATE, strftime('%Y-%m-%d', 'now'), date('n' || 'ow', 'localtime'), "
        "date('2026-01-31', '+1 day')"
    )
    assert rows(world.workspace, query) == [[today, today, today, today, today, "2026-02-01"]]
    assert rows(world.workspace, "SELECT CURRENT_TIMESTAMP, time('now')") == [[f"{today} 09:00:00", "09:00:00"]]


def test_long_results_are_cut_and_say_so() -> None:
    world = World("sql/long", "en", "train")
    world.sql.table("many", {"n": "INTEGER", "text": "TEXT"}, [(n, "x" * 40) for n in range(300)])
    world.sql.table("wide", {"text": "TEXT"}, [("y" * 400,)] * 50)
    world.workspace.begin()
    many = run(world.workspace, "query_sql", query="SELECT n FROM many").value
    assert len(many["rows"]) == 100
    assert "first 100 rows" in many["note"]
    wide = run(world.workspace, "query_sql", query="SELECT text FROM wide").value
    assert 0 < len(wide["rows"]) < 20
    assert "note" in wide


def test_odd_values_are_shown_as_plain_json() -> None:
    workspace = office().workspace
    assert rows(workspace, "SELECT NULL, 1e999, x'00ff', 0.1 + 0.2, 1 = 1") == [[None, None, "[2 bytes]", 0.3, 1]]


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a%", "Abc", 1),
        ("%c", "abc", 1),
        ("a_c", "abc", 1),
        ("a_c", "abbc", 0),
        ("%b%b%", "abc", 0),
        ("%", "", 1),
        ("", "", 1),
        ("ab%ba", "aba", 0),
        (None, "x", None),
        ("1%", 12, 1),
        ("%物流%", "远舟物流有限公司", 1),
    ],
)
def test_like_is_sqlites(pattern: Any, text: Any, expected: int | None) -> None:
    assert like(pattern, text) == expected


def test_like_can_escape_and_is_quick_on_bad_patterns() -> None:
    assert like("50!%", "50%", "!") == 1
    assert like("50!%", "505", "!") == 0
    assert like("%a" * 200 + "b", "a" * 20_000) == 0


def test_an_unknown_table_is_answered_with_the_known_ones() -> None:
    result = run(office().workspace, "describe_table", table="order")
    assert not result.ok
    assert "orders" in result.text


def test_a_database_does_not_get_in_the_way_of_copies() -> None:
    workspace = office().workspace
    rows(workspace, "SELECT 1")
    assert rows(copy.deepcopy(workspace), "SELECT COUNT(*) FROM orders") == [[3]]


def test_both_languages_have_noise_and_wrong_declarations_raise() -> None:
    world = office("zh")
    assert rows(world.workspace, "SELECT COUNT(*) FROM room_hours") == [[5]]
    with pytest.raises(ConfigurationError):
        world.sql.table("Bad Name", {"a": "TEXT"}, [])
    with pytest.raises(ConfigurationError):
        world.sql.table("bad", {"a": "BLOB"}, [])
    with pytest.raises(ConfigurationError):
        world.sql.table("bad", {"a": "TEXT"}, [("x", "y")])
