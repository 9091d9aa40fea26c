"""What the README and the documents show works: code, commands, links."""

from __future__ import annotations

import ast
import dataclasses
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ec2_env import cli
from ec2_env.command import Command

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("benchmarks/*.md"))]
BLOCK = re.compile(r"(?:<!-- not run: (?P<reason>.+) -->\n+)?```(?P<language>\w*)\n(?P<text>.*?)\n```", re.DOTALL)
"""A fenced block. A page says in a comment above it if, and why, its Python cannot run in a test."""
QUICK = ("demo", "models list", "run", "tasks")
"""Commands that take a second with simulated models. The others only have their flags read."""


def texts() -> Iterator[tuple[Path, str]]:
    """Yields each page and its text, broken lines of commands joined."""
    for page in PAGES:
        yield page, page.read_text(encoding="utf-8").replace("\\\n", "")


def code(*, runs: bool) -> list[object]:
    """Returns the blocks of Python that can run in a test, or the others."""
    return [
        pytest.param(block["text"], id=f"{page.name}:{text.count(chr(10), 0, block.start()) + 1}")
        for page, text in texts()
        for block in BLOCK.finditer(text)
        if block["language"] == "python" and runs == (block["reason"] is None)
    ]


def calls() -> list[str]:
    """Returns every call of `ec2-env` that stands in a block or in running text, without program and comment, each once."""
    found: set[str] = set()
    for _, text in texts():
        for line in [*re.findall(r"(?m)^(?: {4}|\$ )?(ec2-env [a-z].*)$", text), *re.findall(r"`(ec2-env [a-z][^`\n]*)`", text)]:
            found.add(shlex.join(shlex.split(line, comments=True)[1:]))
    return sorted(found)


def quick_calls() -> list[str]:
    return [call for call in calls() if call.startswith(QUICK) and "smollm2" not in call and "openai:" not in call]


class Unrun:
    """The commands with their flags, and nothing behind these."""

    def __init__(self) -> None:
        self.commands = cli.COMMANDS

    def get(self, name: str) -> Command:
        return dataclasses.replace(self.commands.get(name), run=lambda flags: 0)


def test_there_is_code_and_there_are_commands() -> None:
    assert len(code(runs=True)) >= 3
    assert {"demo", "tasks", "bench"} <= set(calls())
    assert quick_calls()


@pytest.mark.parametrize("text", code(runs=True))
def test_python_of_the_pages_runs(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(text, "<page>", "exec"), {"__name__": "__main__"})
    assert not list(tmp_path.iterdir()), "code of a page leaves nothing behind"


@pytest.mark.parametrize("text", code(runs=False))
def test_python_that_is_only_shown_takes_existing_names_from_the_package(text: str) -> None:
    own = [node for node in ast.parse(text).body if isinstance(node, ast.ImportFrom) and str(node.module).startswith("ec2_env")]
    assert own
    exec(compile(ast.Module(own, []), "<page>", "exec"), {})


@pytest.mark.parametrize("call", calls())
def test_commands_of_the_pages_take_the_flags_that_they_show(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "COMMANDS", Unrun())
    assert cli.main(shlex.split(call)) == 0


@pytest.mark.parametrize("call", quick_calls())
def test_quick_commands_of_the_pages_run(call: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(shlex.split(call)) == 0
    assert capsys.readouterr().out


def test_links_lead_to_files() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page, text in texts()
        for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", text)
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert not broken, "\n".join(broken)


def test_links_lead_to_headings() -> None:
    """A heading's anchor is its text in small letters, without punctuation, spaces as hyphens."""
    headings = {
        page: {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"(?m)^#+ (.+)$", text)}
        for page, text in texts()
    }
    broken = [
        f"{page.relative_to(ROOT)}: {target}#{anchor}"
        for page, text in texts()
        for target, anchor in re.findall(r"\]\(([^)\s#]*)#([^)\s]+)\)", text)
        if "://" not in target and anchor not in headings[(page.parent / target).resolve() if target else page]
    ]
    assert not broken, "\n".join(broken)


def test_files_that_the_pages_name_exist() -> None:
    """Names in capitals stand for something; what the instructions of tasks name is in their workspaces."""
    broken = [
        f"{page.relative_to(ROOT)}: {name}"
        for page, text in texts()
        for name in re.findall(
            r"\b(?:agents|benchmarks|docs|ec2_env|examples|tasks|tests|training)/[\w./-]+\.(?:py|md|toml)\b", text
        )
        if page.name != "tasks.md" and not re.search(r"[A-Z]{3}", name) and not (ROOT / name).exists()
    ]
    assert not broken, "\n".join(broken)


def test_documents_that_the_code_names_exist() -> None:
    sources = [
        path for folder in ("agents", "benchmarks", "ec2_env", "examples", "training") for path in ROOT.glob(f"{folder}/**/*.py")
    ]
    named = {name for path in sources for name in re.findall(r"\bdocs/\w+\.md\b", path.read_text(encoding="utf-8"))}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
    assert named


def test_the_extras_that_the_pages_install_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = {extra for _, text in texts() for group in re.findall(r"ec2-env\[([\w,-]+)\]", text) for extra in group.split(",")}
    assert named <= set(extras)
    assert named


def test_the_targets_that_the_pages_make_exist() -> None:
    targets = set(re.findall(r"(?m)^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8")))
    shown = [
        part
        for _, text in texts()
        for part in (*re.findall(r"`(make [^`]+)`", text), *(block["text"] for block in BLOCK.finditer(text)))
    ]
    named = {name for part in shown for name in re.findall(r"(?m)^make ([a-z]+)", part)}
    assert named <= targets
    assert {"bench", "test"} <= named
