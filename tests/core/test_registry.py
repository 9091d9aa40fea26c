"""Registries find what a folder holds, import only what is asked for, and suggest what was meant."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ec2_env.errors import ConfigurationError, MissingExtra, UnknownName
from ec2_env.registry import Registry, require
from ec2_env.strategy import Always, Decision, StrategyMaker, flags, load_strategy, options, strategies
from ec2_env.task import tasks
from ec2_env.workspace.tools import apps


def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, **files: str) -> Registry[int]:
    """Returns a registry of whole numbers over a package of these files ("a__b" is the file b in the folder a)."""
    root = tmp_path / name
    root.mkdir()
    (root / "__init__.py").write_text("")
    for path, text in files.items():
        *above, stem = path.split("__")
        (root.joinpath(*above)).mkdir(exist_ok=True)
        root.joinpath(*above, f"{stem}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    return Registry("number", name, "NUMBER", int)


def test_names_are_file_names_and_nothing_is_imported_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = folder(tmp_path, monkeypatch, "pk_names", two="NUMBER = 2", sub__one="NUMBER = 1", bad="raise SystemExit")
    assert found.names() == ("bad", "one", "two")
    assert found.get("one") == 1
    assert found.get("two") is found.get("two")


def test_a_wrong_name_is_answered_with_the_nearest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = folder(tmp_path, monkeypatch, "pk_near", forward="NUMBER = 1")
    with pytest.raises(UnknownName, match="Did you mean 'forward'"):
        found.get("foward")
    with pytest.raises(UnknownName, match="Known: forward"):
        found.get("zzz")


def test_files_that_hold_something_else_are_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = folder(tmp_path, monkeypatch, "pk_wrong", empty="", text="NUMBER = 'x'")
    for name in ("empty", "text"):
        with pytest.raises(ConfigurationError, match="must define NUMBER"):
            found.get(name)


def test_two_files_of_one_name_are_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = folder(tmp_path, monkeypatch, "pk_twice", a__same="NUMBER = 1", b__same="NUMBER = 2")
    with pytest.raises(ConfigurationError, match="two number files"):
        found.names()


def test_a_package_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigurationError, match="no_such_package"):
        Registry("number", "no_such_package", "NUMBER", int).names()


def test_a_missing_extra_says_what_to_install() -> None:
    assert require("json", extra="x").__name__ == "json"
    with pytest.raises(MissingExtra, match=r"pip install 'ec2-env\[local\]'"):
        require("no_such_module_at_all", extra="local")


@pytest.mark.parametrize("registry", [tasks, apps, strategies], ids=["tasks", "apps", "strategies"])
def test_everything_registered_loads(registry: Registry[object]) -> None:
    assert registry.names()
    for name in registry.names():
        assert registry.get(name) is registry.get(name)


def test_importing_the_package_imports_no_task_and_nothing_heavy() -> None:
    code = (
        "import sys, ec2_env; heavy = ('torch', 'transformers', 'openai', 'pandas', 'matplotlib', 'trl', 'rich'); "
        "print([m for m in sys.modules if m.split('.')[0] in heavy or m.startswith('ec2_env.tasks.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


# -- strategies


@pytest.mark.parametrize("name", strategies.names())
def test_every_strategy_says_what_it_is(name: str) -> None:
    assert len(strategies.get(name).about) > 10


@pytest.mark.parametrize(
    "spec", ["edge_only:x", "cloud_only:redact", "step_routing:threshold=high", "step_routing:limit=1", "random:1"]
)
def test_unknown_options_of_a_strategy_are_refused(spec: str) -> None:
    with pytest.raises(ConfigurationError):
        load_strategy(spec)


def test_a_strategy_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnknownName, match="cloud_only"):
        load_strategy("cloud_onli")


def test_options_read_numbers_over_defaults() -> None:
    assert options("a=2,b=0.5", a=1.0, b=1.0, c=3.0) == {"a": 2.0, "b": 0.5, "c": 3.0}
    assert flags("x,y", "x", "y", "z") == {"x", "y"}
    with pytest.raises(ConfigurationError):
        flags("w", "x")


def test_a_strategy_maker_makes_what_the_text_says() -> None:
    maker = StrategyMaker(make=lambda text: Always(name=text, decision=Decision.EDGE), about="always the edge")
    assert maker.make("mine").name == "mine"


def test_an_object_from_outside_is_added_once_under_a_free_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = folder(tmp_path, monkeypatch, "pk_outside", two="NUMBER = 2")
    three = 3
    found.add("three", three)
    found.add("three", three)
    assert found.names() == ("three", "two")
    assert found.get("three") == 3
    for name in ("two", "three"):
        with pytest.raises(ConfigurationError, match=f"named '{name}' already"):
            found.add(name, 4)
    with pytest.raises(ConfigurationError, match="must be a int, got str"):
        found.add("four", "4")  # type: ignore[arg-type]  # the mistake that is tested
    with pytest.raises(UnknownName, match="Did you mean 'three'"):
        found.get("thre")
