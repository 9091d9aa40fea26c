"""The workspace store: copies are independent, and undo, net changes and reactions follow from the journal."""

from __future__ import annotations

import pickle
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ec2_env.errors import ToolError
from ec2_env.task import build_episode
from ec2_env.workspace.store import Change, Reaction, Row, Workspace


class Note(Row, frozen=True, kw_only=True):
    text: str


def started(*ids: str, reactions: tuple[Reaction, ...] = ()) -> Workspace:
    workspace = Workspace(datetime(2026, 1, 5, 9))
    for row in ids:
        workspace.put("note", Note(id=row, text="old"))
    workspace.begin(reactions)
    return workspace


def state(workspace: Workspace) -> dict[str, Any]:
    return dict(workspace.rows("note"))


STEPS = st.lists(st.tuples(st.sampled_from(("put", "remove", "fork")), st.sampled_from("abcd"), st.text(max_size=2)), max_size=25)


def apply(workspace: Workspace, model: dict[str, Any], steps: list[tuple[str, str, str]]) -> None:
    """Does the same to a workspace and to a plain dictionary, and compares them."""
    for kind, row, text in steps:
        if kind == "fork":
            branch = workspace.fork()
            branch.put("note", Note(id="branch", text=text))
            assert "branch" not in workspace.rows("note")
        elif kind == "put":
            workspace.put("note", Note(id=row, text=text))
            model[row] = Note(id=row, text=text)
        elif row in model:
            workspace.remove("note", row)
            del model[row]
        assert state(workspace) == model


@given(before=STEPS, after=STEPS)
def test_a_copy_and_its_origin_do_not_see_each_other(before: Any, after: Any) -> None:
    workspace = started("a", "b")
    model = dict(state(workspace))
    apply(workspace, model, before)
    copy, kept = workspace.fork(), dict(model)
    apply(copy, dict(model), after)
    assert state(workspace) == kept
    apply(workspace, model, list(reversed(after)))


@given(first=STEPS, second=STEPS)
def test_undo_restores_the_state_and_the_journal(first: Any, second: Any) -> None:
    workspace = started("a", "b")
    apply(workspace, dict(state(workspace)), first)
    kept, since = dict(state(workspace)), len(workspace.journal)
    apply(workspace, dict(state(workspace)), second)
    workspace.undo(since)
    assert state(workspace) == kept
    assert len(workspace.journal) == since


@given(steps=STEPS)
def test_the_net_changes_turn_the_start_into_the_end(steps: Any) -> None:
    origin = started("a", "b")
    workspace = origin.fork()
    apply(workspace, dict(state(workspace)), steps)
    rebuilt = dict(state(origin))
    for change in workspace.diff():
        assert change.before == rebuilt.get(change.id)
        if change.after is None:
            del rebuilt[change.id]
        else:
            rebuilt[change.id] = change.after
        assert change.kind == ("added" if change.before is None else "removed" if change.after is None else "changed")
    assert rebuilt == state(workspace)


def test_writing_what_is_there_already_changes_nothing() -> None:
    workspace = started("a")
    workspace.put("note", Note(id="a", text="old"))
    assert workspace.journal == ()
    assert workspace.diff() == ()


def test_what_is_done_and_undone_by_hand_leaves_no_net_change() -> None:
    workspace = started("a")
    workspace.put("note", Note(id="a", text="new"))
    workspace.put("note", Note(id="a", text="old"))
    workspace.put("note", Note(id="b", text="x"))
    workspace.remove("note", "b")
    assert workspace.diff() == ()


def test_the_clock_ticks_with_changes_only() -> None:
    workspace = started("a")
    assert workspace.now == datetime(2026, 1, 5, 9)
    workspace.rows("note")
    workspace.put("note", Note(id="b", text=""))
    assert workspace.now == datetime(2026, 1, 5, 9, 1)


def test_missing_rows_are_a_matter_for_the_agent() -> None:
    workspace = started("a")
    for miss in (workspace.get, workspace.remove):
        with pytest.raises(ToolError, match="no note with id 'zz'"):
            miss("note", "zz")
    assert workspace.rows("nothing") == {}


def answering() -> Reaction:
    return Reaction(
        trigger=lambda workspace, change: change.kind == "added",
        effect=lambda workspace: workspace.put("note", Note(id="answer", text="hello")),
    )


def test_others_react_once_and_their_doing_is_not_the_agents() -> None:
    workspace = started("a", reactions=(answering(),))
    workspace.put("note", Note(id="b", text=""))
    workspace.react(0)
    assert "answer" in workspace.rows("note")
    assert [change.id for change in workspace.diff()] == ["b"]
    assert [change.author for change in workspace.journal] == ["agent", "world"]
    workspace.put("note", Note(id="c", text=""))
    workspace.react(2)
    assert len(workspace.journal) == 3


def test_copies_react_by_themselves() -> None:
    workspace = started("a", reactions=(answering(),))
    copy = workspace.fork()
    copy.put("note", Note(id="b", text=""))
    copy.react(0)
    assert "answer" not in workspace.rows("note")
    workspace.put("note", Note(id="b", text=""))
    workspace.react(0)
    assert "answer" in workspace.rows("note")


def test_a_pickle_keeps_state_and_journal_and_takes_reactions_from_the_origin() -> None:
    origin = build_episode("forward_invoice", 0).workspace
    workspace = origin.fork()
    workspace.remove("mail", next(iter(workspace.rows("mail"))))
    again: Workspace = pickle.loads(pickle.dumps(workspace))
    again.adopt_reactions(origin)
    assert again.now == workspace.now
    assert again.diff() == workspace.diff()
    assert dict(again.rows("mail")) == dict(workspace.rows("mail"))
    again.remove("mail", next(iter(again.rows("mail"))))
    assert len(workspace.journal) == 1


def test_a_change_knows_its_kind() -> None:
    row = Note(id="a", text="")
    assert Change("note", "a", None, row, "agent").kind == "added"
    assert Change("note", "a", row, None, "agent").kind == "removed"
    assert Change("note", "a", row, row, "agent").kind == "changed"
