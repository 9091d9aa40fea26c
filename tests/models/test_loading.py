"""Specifications of models: which are understood, and what is said of the others."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.models.loading import load_model, loader, prefixes, read_options


@dataclass(frozen=True)
class Options:
    path: str | None = None
    count: int = 1
    rate: float = 0.5
    way: Literal["fast", "slow"] = "fast"


@pytest.mark.parametrize("prefix", prefixes())
def test_every_loader_says_how_it_is_written(prefix: str) -> None:
    assert loader(prefix).form.startswith(prefix)


def test_modules_without_a_loader_are_no_prefixes() -> None:
    assert {"base", "loading", "toolchat"}.isdisjoint(prefixes())
    with pytest.raises(UnknownName):
        load_model("base:x")


def test_an_unknown_prefix_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'scripted'"):
        load_model("scriptd:x.json")


@pytest.mark.parametrize("spec", ["", "  ", ":", "@", "@a=b", "two words"])
def test_a_text_that_is_no_specification_is_refused(spec: str) -> None:
    with pytest.raises(ConfigurationError, match="PREFIX"):
        load_model(spec)


def test_the_same_text_gives_the_same_model(tmp_path: Path) -> None:
    file = tmp_path / "replies.json"
    file.write_text('["a"]')
    assert load_model(f"scripted:{file}") is load_model(f"scripted:{file}")


def test_options_are_read_by_the_types_of_their_fields() -> None:
    name, options = read_options("a:b@c/d@path=x@y=z,w,count=3,rate=1e-2,way=slow", Options, form="f")
    assert name == "a:b@c/d"
    assert options == Options(path="x@y=z,w", count=3, rate=0.01, way="slow")


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("m@cuont=3", "'count'"),
        ("m@count=many", "count"),
        ("m@way=other", "way"),
        ("m@count=1,count=2", "twice"),
        ("m@rate=", "rate"),
    ],
)
def test_wrong_options_are_explained(rest: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        read_options(rest, Options, form="kind:NAME@count=1")


def test_listing_prefixes_imports_nothing_heavy() -> None:
    code = (
        "import json, sys; from ec2_env.models.loading import loader, prefixes; [loader(p) for p in prefixes()];"
        "print(json.dumps(sorted(set(sys.modules) & {'torch', 'transformers', 'openai', 'peft', 'xllamacpp'})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
