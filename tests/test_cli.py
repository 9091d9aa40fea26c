"""The program `ec2-env`: commands, exit status, messages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ec2_env import __version__, cli
from ec2_env.command import Command
from ec2_env.registry import Registry

HEADER = "from ec2_env.command import Command\n"
COMMANDS = {
    "greet": """
def add_arguments(parser):
    parser.add_argument("--name", default="you")
def run(options):
    print("hello", options.name)
    return 0
""",
    "fall_over": """
from ec2_env.errors import ConfigurationError
def add_arguments(parser):
    pass
def run(options):
    raise ConfigurationError("the budget is -1;\\n  expected 0 or more")
""",
    "interrupt": """
def add_arguments(parser):
    pass
def run(options):
    raise KeyboardInterrupt
""",
    "find": """
def add_arguments(parser):
    pass
def run(options):
    return 1
""",
}
FOOTER = "COMMAND = Command(help='{name} once', add_arguments=add_arguments, run=run)\n"


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Puts four small commands in the place of the real ones; returns the name of their package."""
    package = f"commands_of_{tmp_path.name}"
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").touch()
    for name, body in COMMANDS.items():
        (tmp_path / package / f"{name}.py").write_text(HEADER + body + FOOTER.format(name=name), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(cli, "COMMANDS", Registry("command", package, "COMMAND", Command))
    return package


@pytest.mark.usefixtures("commands")
def test_command_gets_its_flags_and_its_status_is_returned(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["greet", "--name", "世界"]) == 0
    assert cli.main(["find"]) == 1
    assert capsys.readouterr().out == "hello 世界\n"


def test_only_the_chosen_command_is_imported(commands: str) -> None:
    cli.main(["find"])
    assert f"{commands}.find" in sys.modules
    assert f"{commands}.greet" not in sys.modules


@pytest.mark.usefixtures("commands")
def test_unknown_command_names_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["great"]) == 2
    assert capsys.readouterr().err == "ec2-env: error: No command named 'great'. Did you mean 'greet'?\n"


@pytest.mark.usefixtures("commands")
def test_error_is_one_line_unless_a_traceback_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["fall-over"]) == 2
    assert capsys.readouterr().err == "ec2-env: error: the budget is -1; expected 0 or more\n"
    for words in (["fall-over", "--traceback"], ["--traceback", "fall_over"]):
        with pytest.raises(ValueError, match="budget"):
            cli.main(words)


@pytest.mark.usefixtures("commands")
def test_interrupt_ends_with_130() -> None:
    assert cli.main(["interrupt"]) == 130


@pytest.mark.usefixtures("commands")
def test_unknown_flag_ends_with_2_and_says_which(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["greet", "--nam", "x"]) == 2
    assert "--nam" in capsys.readouterr().err


@pytest.mark.usefixtures("commands")
def test_no_command_shows_the_help_and_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "greet once" in capsys.readouterr().err


def test_help_lists_every_command_with_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name in cli.COMMANDS.names():
        shown_name = name.replace("_", "-")
        assert any(line.split(maxsplit=1) == [shown_name, cli.COMMANDS.get(name).help] for line in shown.splitlines()), name


@pytest.mark.parametrize("name", cli.COMMANDS.names())
def test_every_command_shows_its_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"usage: ec2-env {name}")


def test_module_and_program_are_the_same() -> None:
    run = subprocess.run([sys.executable, "-m", "ec2_env", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout == f"ec2-env {__version__}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes close differently there")
def test_closed_pipe_is_no_error() -> None:
    run = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m ec2_env --help | true; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode in (0, 141)
    assert run.stderr == ""


def test_listing_commands_loads_nothing_heavy() -> None:
    script = (
        "import sys; from ec2_env import cli; cli.main(['--help']); "
        "print(*sorted({'torch', 'transformers', 'trl', 'openai', 'pandas', 'matplotlib', 'pyarrow'} & sys.modules.keys()))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == ""
