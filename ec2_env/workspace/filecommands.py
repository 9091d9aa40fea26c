"""Commands on files and folders: ls, find, cp, mv, rm, touch, mkdir, cd, pwd, date."""

from __future__ import annotations

import re

from ec2_env.workspace.commandline import Failed, Program, Shell, joined, options
from ec2_env.workspace.patterns import wildcard


def ls(shell: Shell, words: list[str], stdin: str | None) -> str:
    given = options("ls", words, flags="laAR1StrhF", long={"all": "a", "recursive": "R"})
    blocks: list[str] = []
    plain_files: list[str] = []
    for path in given.rest or ["."]:
        full = shell.locate(path)
        if full in shell.workspace.rows("file"):
            plain_files.append(full)
        elif not shell.is_folder(full):
            raise Failed(f"ls: {path[:120]}: no such file or folder", 2)
        else:
            folders = (
                [one for one in _folders(shell, full) if _shown_below(one, full, given.flags)] if "R" in given.flags else [full]
            )
            titled = len(folders) > 1 or len(given.rest) > 1
            blocks += [(f"{_title(shell, one)}:\n" if titled else "") + _listing(shell, one, given.flags) for one in folders]
    rows = {shell.shown(full): shell.workspace.rows("file")[full] for full in plain_files}
    return "\n".join([*([_rendered(rows, given.flags)] if rows else []), *blocks])


def _shown_below(folder: str, top: str, flags: frozenset[str]) -> bool:
    return not flags.isdisjoint("aA") or not any(part.startswith(".") for part in folder[len(top) :].split("/"))


def _title(shell: Shell, full: str) -> str:
    return "." if full == shell.folder else shell.shown(full) if full else "."


def _folders(shell: Shell, full: str) -> list[str]:
    found = {full: None}
    for path in shell.files_below(full):
        parts = path.split("/")[:-1]
        found.update(dict.fromkeys("/".join(parts[:depth]) for depth in range(1, len(parts) + 1)))
    return sorted(one for one in found if one == full or not full or one.startswith(f"{full}/"))


def _listing(shell: Shell, full: str, flags: frozenset[str]) -> str:
    entries: dict[str, object] = {}
    for path in shell.files_below(full):
        name, _, below = (path.removeprefix(f"{full}/") if full else path).partition("/")
        if not name.startswith(".") or not flags.isdisjoint("aA"):
            entries[f"{name}/" if below else name] = None if below else shell.workspace.rows("file")[path]
    return _rendered(entries, flags)


def _rendered(entries: dict[str, object], flags: frozenset[str]) -> str:
    """Returns one line an entry; folders, whose row is None, end in a slash."""

    def size(name: str) -> int:
        return len(getattr(entries[name], "content", "").encode())

    names = sorted(entries)
    if "S" in flags:
        names.sort(key=size, reverse=True)
    elif "t" in flags:
        names.sort(key=lambda name: str(getattr(entries[name], "modified", "")), reverse=True)
    if "r" in flags:
        names.reverse()
    if "l" not in flags:
        return joined(names)
    sizes = {name: _size(size(name), "h" in flags) if entries[name] else "-" for name in names}
    return joined([f"{sizes[name]:>8}  {getattr(entries[name], 'modified', '-'):16}  {name}" for name in names])


def _size(count: int, human: bool) -> str:
    return f"{count / 1024:.1f}K" if human and count >= 1024 else str(count)


def find(shell: Shell, words: list[str], stdin: str | None) -> str:
    starts: list[str] = []
    rest = list(words)
    while rest and not rest[0].startswith("-"):
        starts.append(rest.pop(0))
    name, kind, ignore_case = "*", "", False
    while rest:
        option, value = rest.pop(0), rest.pop(0) if rest else ""
        if option in ("-name", "-iname") and value:
            name, ignore_case = value, option == "-iname"
        elif option == "-type" and value in ("f", "d"):
            kind = value
        else:
            raise Failed(
                f"find: {option[:40]} {value[:40]} is not supported; use -name PATTERN, -iname PATTERN, -type f or -type d"
            )
    found: list[str] = []
    for start in starts or ["."]:
        full = shell.locate(start)
        if full in shell.workspace.rows("file"):
            entries = [(full, "f")]
        elif shell.is_folder(full):
            entries = [(one, "d") for one in _folders(shell, full)] + [(one, "f") for one in shell.files_below(full)]
        else:
            raise Failed(f"find: {start[:120]}: no such file or folder")
        found += [
            _title(shell, one)
            for one, sort in sorted(entries)
            if kind in ("", sort) and _named(one.rpartition("/")[2] or ".", name, ignore_case)
        ]
    return joined(found)


def _named(text: str, pattern: str, ignore_case: bool) -> bool:
    return wildcard(pattern.lower(), text.lower()) if ignore_case else wildcard(pattern, text)


def cp(shell: Shell, words: list[str], stdin: str | None) -> str:
    given = options("cp", words, flags="rRapf", long={"recursive": "r"})
    for source, target in _pairs(shell, "cp", given.rest, folders=not given.flags.isdisjoint("rRa")):
        shell.write(target, shell.text(source))
    return ""


def mv(shell: Shell, words: list[str], stdin: str | None) -> str:
    given = options("mv", words, flags="fn", long={"force": "f", "no-clobber": "n"})
    for source, target in _pairs(shell, "mv", given.rest, folders=True):
        if source == target or ("n" in given.flags and target in shell.workspace.rows("file")):
            continue
        shell.write(target, shell.text(source))
        shell.workspace.remove("file", shell.locate(source))
    return ""


def _pairs(shell: Shell, name: str, rest: list[str], *, folders: bool) -> list[tuple[str, str]]:
    """Returns which file goes where, as paths from the current folder."""
    if len(rest) < 2:
        raise Failed(f"{name}: give what to take and where it goes")
    *sources, target = rest
    goal = shell.locate(target)
    into = shell.is_folder(goal) or target.endswith("/")
    if len(sources) > 1 and not into:
        raise Failed(f"{name}: {target[:120]}: no such folder; a new folder is named with a slash at its end")
    up = _upwards(shell)
    pairs: list[tuple[str, str]] = []
    for source in sources:
        full = shell.locate(source)
        place = (f"{goal}/" if goal else "") + full.rpartition("/")[2] if into else goal
        if full in shell.workspace.rows("file"):
            pairs.append((up + full, up + place))
        elif not full or not shell.is_folder(full):
            raise Failed(f"{name}: {source[:120]}: no such file or folder")
        elif not folders:
            raise Failed(f"{name}: {source[:120]}: is a folder; use -r")
        elif f"{place}/".startswith(f"{full}/"):
            raise Failed(f"{name}: {source[:120]}: a folder cannot go into itself")
        else:
            pairs += [(up + path, up + place + path.removeprefix(full)) for path in shell.files_below(full)]
    return pairs


def _upwards(shell: Shell) -> str:
    return "../" * len(shell.folder.split("/")) if shell.folder else ""


def rm(shell: Shell, words: list[str], stdin: str | None) -> str:
    given = options("rm", words, flags="rRf", long={"recursive": "r", "force": "f"})
    if not given.rest:
        raise Failed("rm: give a path")
    for path in given.rest:
        full = shell.locate(path)
        if full in shell.workspace.rows("file"):
            shell.workspace.remove("file", full)
        elif not full:
            raise Failed("rm: the top folder stays")
        elif not shell.is_folder(full):
            if "f" not in given.flags:
                raise Failed(f"rm: {path[:120]}: no such file or folder")
        elif given.flags.isdisjoint("rR"):
            raise Failed(f"rm: {path[:120]}: is a folder; use -r")
        else:
            for below in shell.files_below(full):
                shell.workspace.remove("file", below)
    return ""


def touch(shell: Shell, words: list[str], stdin: str | None) -> str:
    for path in options("touch", words).rest:
        full = shell.locate(path)
        shell.write(path, shell.text(path) if full in shell.workspace.rows("file") else "")
    return ""


def mkdir(shell: Shell, words: list[str], stdin: str | None) -> str:
    for path in options("mkdir", words, flags="p", long={"parents": "p"}).rest:
        if shell.locate(path) in shell.workspace.rows("file"):
            raise Failed(f"mkdir: {path[:120]}: a file has this name")
    return ""


def cd(shell: Shell, words: list[str], stdin: str | None) -> str:
    full = shell.locate(words[0]) if words else ""
    if not shell.is_folder(full):
        raise Failed(f"cd: {words[0][:120]}: no such folder")
    shell.folder = full
    return ""


def pwd(shell: Shell, words: list[str], stdin: str | None) -> str:
    return f"{shell.folder or '.'}\n"


def date(shell: Shell, words: list[str], stdin: str | None) -> str:
    now = shell.workspace.now
    forms = {"": now.isoformat(" ", "minutes"), "+%F": now.date().isoformat(), "+%Y-%m-%d": now.date().isoformat()}
    form = words[0] if words else ""
    if form not in forms or re.search(r"\s", form):
        raise Failed("date: the only form is +%F")
    return f"{forms[form]}\n"


def tee(shell: Shell, words: list[str], stdin: str | None) -> str:
    given = options("tee", words, flags="a", long={"append": "a"})
    for path in given.rest:
        kept = shell.text(path) if "a" in given.flags and shell.locate(path) in shell.workspace.rows("file") else ""
        shell.write(path, kept + (stdin or ""))
    return stdin or ""


PROGRAMS: dict[str, Program] = {
    "ls": Program(ls, "ls [-l -a -R -S -t -r -h] [PATH...]"),
    "find": Program(find, "find [FOLDER...] [-name PATTERN] [-iname PATTERN] [-type f|d]"),
    "cp": Program(cp, "cp [-r] SOURCE... TARGET"),
    "mv": Program(mv, "mv [-n] SOURCE... TARGET"),
    "rm": Program(rm, "rm [-r -f] PATH..."),
    "touch": Program(touch, "touch PATH..."),
    "tee": Program(tee, "tee [-a] PATH..."),
    "mkdir": Program(mkdir, "mkdir [-p] FOLDER... (a folder appears with its first file)"),
    "cd": Program(cd, "cd FOLDER (for the rest of the line)"),
    "pwd": Program(pwd, "pwd"),
    "date": Program(date, "date [+%F]"),
}
