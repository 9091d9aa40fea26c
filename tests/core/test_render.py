"""Rendering shows what happened and what crossed, and lets no content act on the reader's terminal or browser."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from ec2_env.envs import DecisionEnv, WorkspaceEnv
from ec2_env.models.base import ModelCard, Reply
from ec2_env.models.scripted import ScriptedModel
from ec2_env.render import cut, inert

COLOR = re.compile(r"\x1b\[\d*m")
EVIL = "\x1b[2J\x07\x9b1A<script>alert(1)</script>"
CARD = ModelCard(name="scripted", family="o200k", price="gpt-5.4")


class Balanced(HTMLParser):
    """Notes the tags of a page and whether they close in order."""

    VOID = frozenset({"meta", "br", "hr", "img", "link", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def evil_episode(render_mode: str) -> str:
    """Returns the rendering of an episode in which agent and cloud write what could do harm."""
    cloud = ScriptedModel([Reply(text=EVIL)], CARD)
    env = WorkspaceEnv(task="forward_invoice", language="en", cloud=cloud, render_mode=render_mode)
    env.reset(seed=0)
    unit = env.episode.units[0].value
    for action in (
        {"name": EVIL, "arguments": {EVIL: EVIL}},
        {"name": "write_file", "arguments": {"path": "a.md", "content": EVIL}},
        {"name": "invoke_cloud", "arguments": {"request": f"{EVIL} {unit} {EVIL}", "mode": "advise", "share": "request"}},
        {"name": "finish", "arguments": {"answer": EVIL}},
    ):
        env.step(action)
    shown = env.render()
    assert isinstance(shown, str)
    return shown


def test_a_terminal_shows_only_colors() -> None:
    shown = COLOR.sub("", evil_episode("ansi"))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)
    assert "exposed" in shown
    assert "fail" in shown


def test_a_page_is_well_formed_and_runs_nothing() -> None:
    page = evil_episode("html")
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert "script" not in parser.seen
    assert "mark" in parser.seen, "the exposed value is not marked"
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.parametrize("render_mode", ["ansi", "html"])
def test_every_kind_of_event_can_be_shown(render_mode: str) -> None:
    env = DecisionEnv(domain="email", render_mode=render_mode, cloud_settings={"max_calls": 4, "outage_rate": 0.3})
    env.reset(seed=1)
    for decision in (1, 2, 3, 4, 5, 0, 4, 4):
        _, _, terminated, truncated, _ = env.step(decision)
        if terminated or truncated:
            break
    shown = env.render()
    for word in ("plan", "redacted", "refused"):
        assert word in shown
    assert env.episode.task.title in shown


def test_long_lines_are_cut() -> None:
    assert cut("a b\nc", 10) == "a b c"
    assert len(cut("x" * 500, 100)) == 100
    assert inert("a\x1b[2Jb中") == "a?[2Jb中"
