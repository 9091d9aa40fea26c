"""What every command of the shell works with: its options, its input, and the files that it may see and write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ec2_env.errors import ToolError
from ec2_env.workspace.apps.files import File, inside
from ec2_env.workspace.patterns import wildcard
from ec2_env.workspace.shellwords import MARK, STAR, plain
from ec2_env.workspace.store import Workspace

MAX_DATA = 150_000
"""Longest text, in characters, that a command takes, passes on or puts into a file."""
BUDGET = 600_000
"""Most characters that the commands of one line may take in together."""
MAX_MATCHES = 300
"""Most paths that one wildcard stands for."""


class Failed(Exception):
    """A command failed: its message (may be empty, as for a grep that finds nothing), exit status and output so far."""

    def __init__(self, message: str, status: int = 1, output: str = "") -> None:
        super().__init__(message)
        self.message, self.status, self.output = message, status, output


@dataclass(frozen=True, slots=True)
class Program:
    """One command of the shell.

    Attributes:
        run: Takes the shell, the words after the name and the input (None if nothing is piped in); returns the output.
        usage: How to call it, in one line.
    """

    run: Callable[[Shell, list[str], str | None], str]
    usage: str


@dataclass(frozen=True, slots=True)
class Options:
    """The words of a command, sorted.

    Attributes:
        flags: Letters of the options without a value.
        values: Values of the others by letter.
        rest: What is no option.
    """

    flags: frozenset[str]
    values: Mapping[str, str]
    rest: list[str]

    def number(self, letter: str, default: int) -> int:
        """Returns the value of an option that takes a number from 0 to a million.

        Raises:
            Failed: if it is something else.
        """
        text = self.values.get(letter, str(default))
        if not (text.isascii() and text.isdigit() and len(text) < 7):
            raise Failed(f"-{letter} takes a whole number, got {text[:40]!r}")
        return int(text)


def options(name: str, words: Sequence[str], flags: str = "", valued: str = "", long: Mapping[str, str] | None = None) -> Options:
    """Sorts the words of a command into options and the rest; `--` ends the options.

    Args:
        name: The command, for error messages.
        words: The words after its name.
        flags: Letters of options without a value.
        valued: Letters of options with one. With "n" among them, -5 is short for -n 5.
        long: Letters that long names stand for; their values are written --name=value.

    Raises:
        Failed: for an unknown option; the message lists those that exist.
    """
    found: set[str] = set()
    values: dict[str, str] = {}
    rest: list[str] = []
    queue = list(words)

    def take(letter: str, value: str) -> None:
        """Notes an option's value: what is given, or the next word. One that is given twice has two paragraphs."""
        value = value or (queue.pop(0) if queue else "")
        values[letter] = f"{values[letter]}\n\n{value}" if letter in values else value

    while queue:
        word = queue.pop(0)
        if word == "--":
            return Options(frozenset(found), values, rest + queue)
        if word.startswith("--"):
            key, _, value = word[2:].partition("=")
            letter = (long or {}).get(key)
            if letter is None:
                raise Failed(_unknown(name, f"--{key[:40]}", flags, valued, long))
            if letter in valued:
                take(letter, value)
            else:
                found.add(letter)
        elif len(word) > 1 and word[0] == "-":
            if "n" in valued and word[1:].isdigit():
                values["n"] = word[1:]
                continue
            for at, letter in enumerate(word[1:], 2):
                if letter in valued:
                    take(letter, word[at:])
                    break
                if letter not in flags:
                    raise Failed(_unknown(name, f"-{letter}", flags, valued, long))
                found.add(letter)
        else:
            rest.append(word)
    return Options(frozenset(found), values, rest)


def _unknown(name: str, given: str, flags: str, valued: str, long: Mapping[str, str] | None) -> str:
    known = [f"-{letter}" for letter in flags] + [f"-{letter} VALUE" for letter in valued] + [f"--{key}" for key in long or ()]
    return f"{name}: unknown option {given}; {'the options are ' + ' '.join(known) if known else 'it has no options'}"


class Shell:
    """The files of a workspace as commands see them: from one folder, which a line may change for itself by `cd`."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.folder = ""
        self._spent = 0

    def charge(self, characters: int) -> None:
        """Counts what a command takes in.

        Raises:
            ToolError: if the commands of this line have taken in too much.
        """
        self._spent += characters
        if self._spent > BUDGET:
            raise ToolError("the line works on too much text; do it in parts")

    @property
    def paths(self) -> Sequence[str]:
        """All paths, in order."""
        return sorted(self.workspace.rows("file"))

    def locate(self, path: str) -> str:
        """Returns the full path of what a path names from the current folder; "" is the top folder.

        Raises:
            Failed: if it leads out of the workspace or is no path.
        """
        if path.startswith(("/", "~")):
            raise Failed(f"{path[:80]!r} leads out of the workspace; give a path relative to {self.folder or 'the top folder'}")
        parts = self.folder.split("/") if self.folder else []
        for part in path.split("/"):
            if part == "..":
                if not parts:
                    raise Failed(f"{path[:80]!r} leads out of the workspace")
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        if not parts:
            return ""
        try:
            return inside("/".join(parts))
        except ToolError as error:
            raise Failed(str(error)) from None

    def shown(self, full: str) -> str:
        """Returns a full path as it is written from the current folder."""
        return full.removeprefix(f"{self.folder}/") if self.folder else full

    def is_folder(self, full: str) -> bool:
        return not full or any(path.startswith(f"{full}/") for path in self.workspace.rows("file"))

    def text(self, path: str) -> str:
        """Returns what a file holds.

        Raises:
            Failed: if there is no such file.
        """
        full = self.locate(path)
        row = self.workspace.rows("file").get(full)
        if row is None:
            raise Failed(f"{path[:120]}: {'is a folder' if self.is_folder(full) else 'no such file'}")
        content: str = row.content
        self.charge(len(content))
        return bounded(content)

    def write(self, path: str, content: str) -> None:
        """Puts a text into a file.

        Raises:
            Failed: if the path is a folder, or the text is too long.
        """
        full = self.locate(path)
        if self.is_folder(full):
            raise Failed(f"{path[:120]}: is a folder")
        if any(full.startswith(f"{other}/") for other in self.workspace.rows("file")):
            raise Failed(f"{path[:120]}: a file stands where a folder would have to be")
        stamp = self.workspace.now.isoformat(" ", "minutes")
        self.workspace.put("file", File(id=full, content=bounded(content), modified=stamp))

    def expand(self, word: str) -> list[str]:
        """Returns the paths that a word with wildcards stands for, or the word itself if there are none."""
        if STAR not in word and MARK not in word:
            return [word]
        parts = plain(word).split("/")
        found: dict[str, None] = {}
        for path in self.paths:
            names = self.shown(path).split("/")
            if (self.folder and not path.startswith(f"{self.folder}/")) or len(names) < len(parts):
                continue
            if all(
                wildcard(part, name) and (part[0:1] == "." or name[0] != ".") for part, name in zip(parts, names, strict=False)
            ):
                found["/".join(names[: len(parts)])] = None
        if len(found) > MAX_MATCHES:
            raise Failed(f"{plain(word)[:80]} stands for {len(found)} paths; at most {MAX_MATCHES} are accepted")
        return list(found) or [plain(word)]

    def files_below(self, full: str) -> list[str]:
        """Returns the paths of the files in a folder and all below it."""
        return [path for path in self.paths if not full or path.startswith(f"{full}/")]


def bounded(text: str) -> str:
    """Returns a text, if it is short enough to work on.

    Raises:
        Failed: if it is not.
    """
    if len(text) > MAX_DATA:
        raise Failed(f"too much text: {len(text)} characters; at most {MAX_DATA} are accepted")
    return text


def inputs(shell: Shell, paths: Sequence[str], stdin: str | None, name: str) -> list[tuple[str, str]]:
    """Returns (path, text) of the given files; with none, the input, under an empty path.

    Raises:
        Failed: if a file is missing, or there is neither file nor input.
    """
    if not paths:
        if stdin is None:
            raise Failed(f"{name}: give a file, or pipe something into it")
        return [("", stdin)]
    total, found = 0, []
    for path in paths:
        text = (stdin or "") if path == "-" else shell.text(path)
        total += len(text)
        if total > MAX_DATA:
            raise Failed(f"{name}: too much text; at most {MAX_DATA} characters are accepted")
        found.append((path, text))
    return found


def joined(lines: Sequence[str]) -> str:
    """Returns lines as one text, each ended by a newline."""
    return "".join(f"{line}\n" for line in lines)
