"""What tasks render is pinned: it cannot change without a new version."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ec2_env.bench import pins
from ec2_env.task import tasks


def test_every_task_renders_what_is_pinned() -> None:
    assert pins.differences() == []


def test_another_rendering_asks_for_a_new_version_and_a_new_version_for_a_pin(monkeypatch: pytest.MonkeyPatch) -> None:
    task = tasks.get("forward_invoice")
    monkeypatch.setattr(tasks, "modules", {"forward_invoice": tasks.modules["forward_invoice"]})
    monkeypatch.setattr(pins, "suite_names", lambda: ("email-smoke",))
    old = {"forward_invoice": pins.Pin(0, "x", "y"), "gone": pins.Pin(0, "x", "y")}
    monkeypatch.setattr(pins, "pinned", lambda: pins.Pins(old, {"email-smoke": "z"}))
    assert "raise it, then run: make pins" in pins.differences()[0]
    assert "suite email-smoke has other episodes" in pins.differences()[1]
    assert "gone is pinned" in pins.differences()[2]
    monkeypatch.setitem(tasks.added, "forward_invoice", replace(task, version=task.version + 1))
    assert "version 0 is pinned" in pins.differences()[0]
    monkeypatch.setattr(pins, "pinned", lambda: pins.Pins({}, {}))
    assert "is not pinned" in pins.differences()[0]
