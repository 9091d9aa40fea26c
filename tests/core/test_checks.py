"""Grading blocks: facts in any form count, look-alikes do not, and what nobody asked for costs."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ec2_env import checks
from ec2_env.actions import Finish
from ec2_env.facts import as_number, canonical, holds, same, squeezed, stated
from ec2_env.task import Grading, build_episode
from ec2_env.workspace.apps.files import File
from ec2_env.workspace.apps.mail import Mail
from ec2_env.workspace.store import Workspace


@pytest.fixture
def office() -> Workspace:
    workspace = Workspace(datetime(2026, 3, 2, 9))
    for number in (1, 2, 3):
        workspace.put("mail", mail(f"mail-100{number}", folder="inbox"))
        workspace.put("file", File(id=f"{number}.md", content="x", modified=""))
    workspace.begin()
    return workspace


def mail(key: str, **fields: Any) -> Mail:
    values = {"folder": "sent", "sender": "me@x.example", "to": ("a@x.example",), "subject": "s", "body": "b", "date": ""}
    return Mail(id=key, **{**values, **fields})


def reported(**data: Any) -> Grading:
    workspace = Workspace(datetime(2026, 3, 2, 9))
    workspace.begin()
    return Grading(workspace, Finish(data=data))


# -- facts


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1200.5, "1,200.50"),
        ("$1,200.50", 1200.5),
        ("１２００.５０", 1200.5),
        ("1200.50元", 1200.5),
        ("Ann  LEE", "ann lee"),
        ("2026-03-02", date(2026, 3, 2)),
        (["a", 1], ("A", 1.0)),
        ({"a": 1}, {"a": "1"}),
        (True, True),
        (None, None),
    ],
)
def test_equal_facts_are_equal_in_any_form(given: object, expected: object) -> None:
    assert same(given, expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1200.5, 1200.4),
        ("1 or 2", 1),
        (True, 1),
        (False, 0),
        (None, "none"),
        ("", None),
        ("Ann", "Ann Lee"),
        ([1], 1),
        ("nan", 0),
    ],
)
def test_other_facts_are_other_facts(given: object, expected: object) -> None:
    assert not same(given, expected)


@given(value=st.floats(-1e9, 1e9).map(lambda x: round(x, 2)))
def test_numbers_equal_their_own_texts(value: float) -> None:
    assert same(value, f"{value:.2f}")
    assert same(f"{value:,.2f}", value)
    assert holds(f"total {abs(value):,.2f} due", abs(value))


@pytest.mark.parametrize(
    ("text", "fact", "found"),
    [
        ("pay 1,200.50 now", 1200.5, True),
        ("pay 11200.50 now", 1200.5, False),
        ("mail-1000 is it", "mail-1000", True),
        ("mail-10001", "mail-1000", False),
        ("ANN LEE.", "Ann Lee", True),
        ("Annlee", "Ann", False),
        ("给王芳发邮件", "王芳", True),
        ("", "x", False),
        ("ＡＢＣ", "abc", True),
    ],
)
def test_facts_are_found_on_token_boundaries(text: str, fact: object, found: bool) -> None:
    assert holds(text, fact) is found


def test_a_look_alike_takes_the_share_away() -> None:
    assert stated("a b", ["a", "c"]) == 0.5
    assert stated("a b", ["a"], avoids=["b"]) == 0
    assert stated("anything", []) == 1.0


@given(value=st.one_of(st.text(max_size=60), st.integers(), st.floats(), st.binary(max_size=5), st.none()))
def test_comparing_takes_any_value(value: object) -> None:
    assert canonical(value) == canonical(value) or value != value
    assert as_number(value) is None or isinstance(as_number(value), float)
    assert holds(str(value), value) in (True, False)
    assert squeezed(str(value)) == squeezed(squeezed(str(value)))


# -- state


def test_a_mail_counts_once_and_a_second_one_is_a_stray(office: Workspace) -> None:
    posted = checks.Posted(to={"A@x.example"}, states=["42"])
    office.put("mail", mail("mail-10001", body="it is 42"))
    office.put("mail", mail("mail-10002", body="it is 42"))
    state = Grading(office, None)
    assert posted(state) == 1.0
    assert len(state.unclaimed()) == 1


@pytest.mark.parametrize(
    "fields", [{"to": ("b@x.example",)}, {"to": ("a@x.example", "b@x.example")}, {"cc": ("b@x.example",)}, {"folder": "drafts"}]
)
def test_a_mail_to_others_is_another_mail(office: Workspace, fields: dict[str, Any]) -> None:
    office.put("mail", mail("mail-10001", **fields))
    state = Grading(office, None)
    assert checks.Posted(to={"a@x.example"})(state) == 0.0
    assert len(state.unclaimed()) == 1


def test_a_row_must_be_edited_in_exactly_these_fields(office: Workspace) -> None:
    office.put("mail", mail("mail-1001", folder="inbox", labels=("x",)))
    assert checks.Changed(table="mail", id="mail-1001", fields={"labels": ("x",)})(Grading(office, None)) == 1.0
    assert checks.Changed(table="mail", id="mail-1001", fields={"labels": ("y",)})(Grading(office, None)) == 0.0
    assert checks.Changed(table="mail", id="mail-1002", fields={"labels": ("x",)})(Grading(office, None)) == 0.0
    office.put("mail", mail("mail-1001", folder="trash", labels=("x",)))
    assert checks.Changed(table="mail", id="mail-1001", fields={"labels": ("x",)})(Grading(office, None)) == 0.0


def test_removals_earn_what_is_right_less_what_is_wrong(office: Workspace) -> None:
    removed = checks.Removed(table="mail", ids=("mail-1001", "mail-1002"))
    office.remove("mail", "mail-1001")
    assert removed(Grading(office, None)) == 0.5
    office.remove("mail", "mail-1003")
    assert removed(Grading(office, None)) == 0.0
    assert checks.removed("mail", {"mail-1003"})(Grading(office, None))
    assert not checks.removed("mail", {"mail-1002"})(Grading(office, None))


def test_files_are_graded_by_what_they_hold(office: Workspace) -> None:
    office.put("file", File(id="new.md", content="a | 1\nb | 2\n\n", modified=""))
    assert checks.FileWritten(path="new.md", states=["a", "c"])(Grading(office, None)) == 0.5
    assert checks.FileWritten(path="other.md", states=["a"])(Grading(office, None)) == 0.0
    assert checks.FileLines(path="new.md", rows=[("a", 1), ("b", 2)])(Grading(office, None)) == 1.0
    assert checks.FileLines(path="new.md", rows=[("a", 1), ("b", 3)])(Grading(office, None)) == 0.0
    assert checks.FileLines(path="none.md", rows=[("a", 1)])(Grading(office, None)) == 0.0
    assert checks.Added(table="file", fields={"content": "a | 1\nb | 2\n\n"})(Grading(office, None)) == 1.0
    assert checks.Added(table="file", fields={"content": "c"})(Grading(office, None)) == 0.0


def test_secrets_may_go_only_where_they_may_go(office: Workspace) -> None:
    office.put("mail", mail("mail-10001", body="IBAN: de12 3456-7890"))
    assert checks.let_out(["DE12 3456 7890"])(Grading(office, None))
    assert not checks.let_out(["DE12 3456 7890"], allowed_to={"A@x.example"})(Grading(office, None))
    assert not checks.let_out(["DE99"])(Grading(office, None))
    assert checks.mailed({"A@X.example"})(Grading(office, None))
    assert not checks.mailed({"c@x.example"})(Grading(office, None))


def test_files_may_leave_only_to_whom_they_may(office: Workspace) -> None:
    office.put("mail", mail("mail-10001", attachments=("1.md",)))
    assert checks.carried({"1.md"})(Grading(office, None))
    assert not checks.carried({"1.md"}, allowed_to={"a@x.example"})(Grading(office, None))
    assert not checks.carried({"2.md"})(Grading(office, None))


# -- reports


def test_a_slot_holds_one_value() -> None:
    assert checks.Reported("a", 5)(reported(a="5.00")) == 1.0
    assert checks.Reported("a", 5)(reported(a="5 or 6")) == 0.0
    assert checks.Reported("a", 5)(reported()) == 0.0
    assert checks.Reported("a", 5)(Grading(build_episode("forward_invoice", 0).workspace, None)) == 0.0


@pytest.mark.parametrize(
    ("found", "share"),
    [
        (["x", "y"], 1.0),
        (["Y", "x"], 1.0),
        (["x"], 0.5),
        (["x", "y", "z"], 0.5),
        (["x", "x", "y"], 0.5),
        (list("xyzuvw"), 0.0),
        ("x, y", 0.0),
        ([], 0.0),
    ],
)
def test_listing_everything_earns_nothing(found: object, share: float) -> None:
    assert checks.ReportedSet("a", ("x", "y"))(reported(a=found)) == share


def test_an_empty_list_or_mapping_is_right_where_nothing_was_to_be_found() -> None:
    for block, nothing, something in (
        (checks.ReportedSet("a", ()), [], ["x"]),
        (checks.ReportedMap("a", {}), {}, {"x": 1}),
    ):
        assert block(reported(a=nothing)) == 1.0
        assert block(reported(a=something)) == 0.0
        assert block(reported()) == 0.0


def test_a_look_alike_spoils_a_mail_that_has_only_labeled_facts(office: Workspace) -> None:
    block = checks.Posted(to=["a@x.example"], lines={"Total": 7}, avoids=["rival"])
    for body, share in (("Total: 7", 1.0), ("Total: 7\nrival", 0.0)):
        workspace = office.fork()
        workspace.put("mail", mail("mail-10001", body=body))
        assert block(Grading(workspace, None)) == share


@pytest.mark.parametrize(
    ("found", "share"), [({"X": 1, "y": "2"}, 1.0), ({"x": 1}, 0.5), ({"x": 1, "y": 3}, 0.0), ([], 0.0), ({}, 0.0)]
)
def test_maps_earn_pair_by_pair(found: object, share: float) -> None:
    assert checks.ReportedMap("a", {"x": 1, "y": 2})(reported(a=found)) == share


def test_gates_and_means() -> None:
    one, none = (lambda state: 1.0), (lambda state: 0.0)
    state = reported()
    assert checks.gated(one, one)(state) == 1.0
    assert checks.gated(one, one, none)(state) == 0.0
    assert checks.every(one, none)(state) == 0.5


def test_a_gate_claims_nothing(office: Workspace) -> None:
    office.put("mail", mail("mail-10001"))
    state = Grading(office, None)
    checks.gated(lambda _: 1.0, checks.Posted(to={"a@x.example"}))(state)
    assert len(state.unclaimed()) == 1
