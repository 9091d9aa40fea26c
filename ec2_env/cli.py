"""The program `ec2-env`: finds the command, reads its flags, runs it, and turns errors into one line.

Exit status: what the command returned, 2 for a wrong call or setting, 130 after Ctrl-C, 141 when the reader of a pipe left.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from ec2_env import __version__
from ec2_env.command import Command
from ec2_env.errors import EC2Error
from ec2_env.registry import Registry

COMMANDS: Registry[Command] = Registry("command", "ec2_env.commands", "COMMAND", Command)

PROGRAM = "ec2-env"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit status.

    Args:
        argv: The words after the program's name; those of the process if None.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a console that has no Chinese must not stop a run
    try:
        status = _dispatch(words)
        sys.stdout.flush()
    except SystemExit as end:  # argparse, after --help or a wrong flag
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter complains when it flushes
        return 141
    except (EC2Error, OSError) as error:
        if "--traceback" in words:
            raise
        print(f"{PROGRAM}: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return status


def _dispatch(words: list[str]) -> int:
    position = next((i for i, word in enumerate(words) if not word.startswith("-")), len(words))
    general, name, rest = words[:position], words[position : position + 1], words[position + 1 :]
    top = _parser(PROGRAM, "Environments for edge-cloud collaboration of language-model agents.")
    top.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    top.usage = f"{PROGRAM} [--version] [--traceback] COMMAND [ARGUMENTS]"
    top.formatter_class = argparse.RawDescriptionHelpFormatter
    if not name or {"-h", "--help"} & set(general):
        top.epilog = _command_list()
    top.parse_args(general)
    if not name:
        top.print_help(sys.stderr)
        return 2
    command = COMMANDS.get(name[0].replace("-", "_"))
    parser = _parser(f"{PROGRAM} {name[0]}", f"{command.help}.")
    command.add_arguments(parser)
    return command.run(parser.parse_args(rest))


def _parser(program: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program, description=description, allow_abbrev=False)
    parser.add_argument("--traceback", action="store_true", help="show where an error came from")
    return parser


def _command_list() -> str:
    names = COMMANDS.names()
    width = max(map(len, names), default=0)
    lines = [f"  {name.replace('_', '-'):<{width}}  {COMMANDS.get(name).help}" for name in names]
    return "\n".join(["commands:", *lines, "", f"'{PROGRAM} COMMAND --help' shows the flags of one command."])
