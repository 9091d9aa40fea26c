from __future__ import annotations

import msgspec
import pytest

from ec2_env.checks import JsonWritten

WANTED = {"name": "a", "nodes": [{"id": "x", "settings": {"wait": 30, "mode": "stop"}}, {"id": "y", "settings": {"on": True}}]}
CHECK = JsonWritten(path="a.json", content=WANTED, frame=("name", "id"))


def test_layout_and_order_and_number_forms_make_no_difference() -> None:
    text = '{"nodes":[{"id":"y","settings":{"on":true}},\n {"settings":{"mode":"Stop","wait":"30.0"},"id":"x"}],"name":"a"}'
    assert CHECK.share(text) == 1.0


@pytest.mark.parametrize(
    ("old", "new", "share"),
    [("30", "31", 1 / 3), ("true", '"true"', 1 / 3), (',"mode":"stop"', "", 2 / 3), ('"on":true', '"on":true,"more":1', 2 / 3)],
)
def test_a_wrong_value_costs_twice_and_one_left_out_or_too_many_once(old: str, new: str, share: float) -> None:
    assert CHECK.share(msgspec.json.encode(WANTED).decode().replace(old, new)) == pytest.approx(share)


@pytest.mark.parametrize(("old", "new"), [('"id":"y"', '"id":"z"'), ('"name":"a"', '"name":"b"'), ("{", ""), ("]", "")])
def test_a_wrong_frame_or_no_json_earns_nothing(old: str, new: str) -> None:
    assert CHECK.share(msgspec.json.encode(WANTED).decode().replace(old, new)) == 0.0


def test_hostile_json_earns_nothing() -> None:
    assert CHECK.share("[" * 50_000) == 0.0
