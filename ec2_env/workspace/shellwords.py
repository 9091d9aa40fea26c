"""Reads a command line into pipelines: quotes, pipes, `&&`, `||`, `;`, redirections and here-documents; wildcards are marked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from ec2_env.errors import ToolError

STAR, MARK = "\ue000", "\ue001"
"""Stand for an unquoted `*` and `?` in a word, so that quoted ones stay what they are."""
MAX_COMMANDS = 40
MAX_WORDS = 400

Connector = Literal["", "&&", "||", ";"]
_HEREDOC = re.compile(r"<<(-?)\s*(['\"]?)(\w+)\2")


@dataclass(slots=True)
class Command:
    """One program with its words and redirections.

    Attributes:
        words: The program's name and its arguments; wildcards are marked by `STAR` and `MARK`.
        source: Path of the file that it reads as its input, or None.
        here: Text of its here-document, or None.
        target: Path of the file that its output goes to, or None.
        append: Whether the output is added to that file.
        quiet: Whether its error messages are dropped (`2>/dev/null`).
    """

    words: list[str] = field(default_factory=list)
    source: str | None = None
    here: str | None = None
    target: str | None = None
    append: bool = False
    quiet: bool = False


@dataclass(slots=True)
class Pipeline:
    """Commands of which each reads what the one before it wrote, and when to run them."""

    connector: Connector
    commands: list[Command]


def parse(line: str) -> list[Pipeline]:
    """Reads a command line.

    Raises:
        ToolError: if it is not complete, or uses what this shell does not have.
    """
    pipelines = [Pipeline("", [Command()])]
    documented: list[Command] = []
    tokens = _tokens(line.replace(STAR, "\ufffd").replace(MARK, "\ufffd").replace("\r\n", "\n"))
    for count, (kind, text) in enumerate(tokens):
        command = pipelines[-1].commands[-1]
        if count >= MAX_WORDS:
            raise ToolError(f"the line has too many words; at most {MAX_WORDS} are accepted")
        if kind == "word":
            command.words.append(text)
        elif kind == "body":
            documented.pop(0).here = text
        elif text in (">", ">>", "<"):
            _redirect(command, text, next(tokens, ("end", "")))
        elif text == "2>":
            command.quiet = True
        elif text == "<<":
            documented.append(command)
        elif text != "\n" or command.words:
            _join(pipelines, text)
    return _finished(pipelines)


def _join(pipelines: list[Pipeline], sign: str) -> None:
    """Begins the next command, which an operator joins to what there is."""
    if not pipelines[-1].commands[-1].words:
        raise ToolError(f"a command is expected before {sign}")
    if sign == "|":
        pipelines[-1].commands.append(Command())
    else:
        pipelines.append(Pipeline("&&" if sign == "&&" else "||" if sign == "||" else ";", [Command()]))


def _finished(pipelines: list[Pipeline]) -> list[Pipeline]:
    last = pipelines[-1]
    if not last.commands[-1].words and len(last.commands) == 1 and last.connector in ("", ";"):
        pipelines.pop()
    elif not last.commands[-1].words:
        raise ToolError("the line ends where another command is expected")
    if not pipelines:
        raise ToolError("the command is empty; `help` lists the commands")
    if sum(len(pipeline.commands) for pipeline in pipelines) > MAX_COMMANDS:
        raise ToolError(f"the line has too many commands; at most {MAX_COMMANDS} are accepted")
    return pipelines


def plain(word: str) -> str:
    """Returns a word with its wildcards as they were written."""
    return word.replace(STAR, "*").replace(MARK, "?")


def _redirect(command: Command, sign: str, token: tuple[str, str]) -> None:
    kind, path = token
    if kind != "word":
        raise ToolError(f"a path is expected after {sign}")
    if sign == "<":
        command.source = plain(path)
    else:
        command.target, command.append = plain(path), sign == ">>"


def _tokens(line: str) -> Iterator[tuple[str, str]]:
    """Yields ("word", text), ("sign", operator) and, where a line ends, ("body", text) of each here-document asked for."""
    at, end = 0, len(line)
    awaited: list[tuple[str, str]] = []
    while at < end:
        char = line[at]
        if char in " \t" or line.startswith("\\\n", at):
            at += 1 if char in " \t" else 2
        elif char == "#":
            found = line.find("\n", at)
            at = end if found < 0 else found
        elif heredoc := _HEREDOC.match(line, at):
            awaited.append((heredoc[1], heredoc[3]))
            at = heredoc.end()
            yield "sign", "<<"
        elif (sign := _sign(line, at)) is not None:
            text, at = sign
            if text == "\n":
                while awaited:
                    body, at = _body(line, at, *awaited.pop(0))
                    yield "body", body
            if text:
                yield "sign", text
        else:
            text, at = _word(line, at)
            yield "word", text
    if awaited:
        raise ToolError(f"the here-document is never ended; close it with a line {awaited[0][1]}")


def _body(line: str, at: int, dash: str, mark: str) -> tuple[str, int]:
    """Reads a here-document up to the line that ends it; returns its text and where the next line begins."""
    kept: list[str] = []
    while at < len(line):
        close = line.find("\n", at)
        close = len(line) if close < 0 else close
        text = line[at:close].lstrip("\t") if dash else line[at:close]
        at = close + 1
        if text == mark:
            return "".join(f"{one}\n" for one in kept), min(at, len(line))
        kept.append(text)
    raise ToolError(f"the here-document is never ended; close it with a line {mark}")


def _sign(line: str, at: int) -> tuple[str, int] | None:
    """Returns the operator at a position and where it ends, or None if a word begins there."""
    for form, sign in (("2>/dev/null", "2>"), ("2> /dev/null", "2>"), ("2>&1", "")):
        if line.startswith(form, at):
            return sign, at + len(form)
    if line.startswith("2>", at):
        raise ToolError("errors can only be dropped, by 2>/dev/null")
    for form in ("&&", "||", ">>", "|", ";", ">", "<", "\n"):
        if line.startswith(form, at):
            return form, at + len(form)
    if line[at] in "&()":
        raise ToolError(f"{line[at]} is not supported: no background jobs, subshells or functions; join commands by && ; or |")
    return None


def _word(line: str, at: int) -> tuple[str, int]:
    """Reads one word; returns it without its quotes, and where it ends."""
    found: list[str] = []
    end = len(line)
    while at < end and line[at] not in " \t\n|;&<>()":
        char = line[at]
        if char == "'":
            close = line.find("'", at + 1)
            if close < 0:
                raise ToolError("a ' is never closed")
            found.append(line[at + 1 : close])
            at = close + 1
        elif char == '"':
            text, at = _quoted(line, at + 1)
            found.append(text)
        elif char == "\\":
            found.append(line[at + 1 : at + 2])
            at += 2
        else:
            _no_expansion(line, at)
            found.append({"*": STAR, "?": MARK}.get(char, char))
            at += 1
    return "".join(found), at


def _quoted(line: str, at: int) -> tuple[str, int]:
    """Reads up to the closing double quote; returns the text and where it ends."""
    found: list[str] = []
    while at < len(line):
        char = line[at]
        if char == '"':
            return "".join(found), at + 1
        if char == "\\" and line[at + 1 : at + 2] in ('"', "\\", "$", "`"):
            char, at = line[at + 1], at + 1
        else:
            _no_expansion(line, at)
        found.append(char)
        at += 1
    raise ToolError('a " is never closed')


def _no_expansion(line: str, at: int) -> None:
    following = line[at + 1 : at + 2]
    if line[at] == "`" or (line[at] == "$" and (following.isalnum() or following in ("(", "{", "_", "?", "!"))):
        raise ToolError("variables and command substitution are not supported; write the value itself, or put $ in single quotes")
