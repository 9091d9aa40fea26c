"""Undoing encodings takes time in proportion to the text, whatever the text."""

from __future__ import annotations

import pytest

from ec2_env.cloud.decoding import decoded_views


@pytest.mark.parametrize(
    "text", ["a\n" + "x" * 200_000, "a\n" + "x/" * 100_000, "\n" * 200_000, "a\n" + ("x" * 50 + "\n  ") * 3_000]
)
def test_long_runs_are_passed_over_at_once(text: str) -> None:
    assert len(decoded_views(text)) < 10


def test_a_wrapped_block_is_still_found_after_a_word() -> None:
    line = "TXkgYmFuayBhY2NvdW50IGlzIERFNTggOTk5OSA5"
    assert any("My bank account" in view.text for view in decoded_views(f"see below\n{line}\n{'OTk5IDAwMzM='}"))
