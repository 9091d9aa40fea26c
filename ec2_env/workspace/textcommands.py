"""Commands that read texts: cat, head, tail, grep, wc, sort, uniq, cut, sed, diff, echo, printf."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from ec2_env.workspace.commandline import Failed, Program, Shell, bounded, inputs, joined, options
from ec2_env.workspace.linediff import lines_of, unified
from ec2_env.workspace.patterns import Pattern, PatternError

_NUMBER = re.compile(r"\s*(-?\d{1,15}(?:\.\d{1,15})?)", re.ASCII)
_SPAN = re.compile(r"(\d{1,6}|\$)(?:,(\d{1,6}|\$))?([pd])", re.ASCII)


def cat(shell: Shell, words: list[str], stdin: str | None) -> str:
    given = options("cat", words, flags="n")
    text = "".join(text for _, text in inputs(shell, given.rest, stdin, "cat"))
    if "n" in given.flags:
        return joined([f"{number:6}  {line}" for number, line in enumerate(lines_of(text), 1)])
    return text


def head(shell: Shell, words: list[str], stdin: str | None) -> str:
    return _ends("head", shell, words, stdin, lambda lines, count: lines[:count])


def tail(shell: Shell, words: list[str], stdin: str | None) -> str:
    return _ends("tail", shell, words, stdin, lambda lines, count: lines[max(0, len(lines) - count) :])


def _ends(name: str, shell: Shell, words: list[str], stdin: str | None, cut_out: Callable[[list[str], int], list[str]]) -> str:
    if name == "tail" and any(word.startswith("+") and word[1:].isdigit() for word in words):
        raise Failed("tail: to begin at a line write sed -n '5,$p' FILE")
    given = options(name, words, valued="n", long={"lines": "n"})
    count = given.number("n", 10)
    texts = inputs(shell, given.rest, stdin, name)
    parts = [(f"==> {path} <==\n" if len(texts) > 1 else "") + joined(cut_out(lines_of(text), count)) for path, text in texts]
    return "\n".join(parts)


def grep(shell: Shell, words: list[str], stdin: str | None) -> str:
    long = {"ignore-case": "i", "line-number": "n", "recursive": "r", "invert-match": "v", "count": "c"}
    given = options("grep", words, flags="inrRvclEFPhHqs", valued="eABC", long=long)
    rest = list(given.rest)
    if "e" not in given.values and not rest:
        raise Failed("grep: give a pattern")
    pattern = given.values["e"] if "e" in given.values else rest.pop(0)
    form = partial(matcher, fixed="F" in given.flags, extended=bool(given.flags & {"E", "P"}), ignore_case="i" in given.flags)
    parts = [part for part in pattern.split("\n") if part]
    if len(parts) > 20:
        raise Failed("grep: too many patterns; at most 20 are accepted")
    tests = [form(part) for part in parts or [""]]
    around = given.number("C", 0)
    before, after = given.number("B", around), given.number("A", around)
    recursive = not given.flags.isdisjoint("rR")
    paths = _below(shell, rest or ["."]) if recursive else rest
    texts = inputs(shell, paths, None if recursive else stdin, "grep") if paths or not recursive else []
    named = "h" not in given.flags and (recursive or len(texts) > 1 or "H" in given.flags)
    wanted = "v" not in given.flags
    output: list[str] = []
    any_found = False
    for path, text in texts:
        try:
            hits = [
                (number, line) for number, line in enumerate(lines_of(text), 1) if any(test(line) for test in tests) == wanted
            ]
        except PatternError as error:
            raise Failed(f"grep: {error}", 2) from None
        any_found |= bool(hits)
        prefix = f"{path}:" if named else ""
        if "l" in given.flags:
            output += [path or "(standard input)"] if hits else []
        elif "c" in given.flags:
            output.append(f"{prefix}{len(hits)}")
        elif "q" not in given.flags:
            numbered = "n" in given.flags
            output += _hits(lines_of(text), [number for number, _ in hits], prefix, numbered, before, after)
    if not any_found:
        raise Failed("", 1, joined(output))
    return joined(output)


def _hits(lines: list[str], numbers: list[int], prefix: str, numbered: bool, before: int, after: int) -> list[str]:
    """Returns the lines with these numbers and those around them, marked by : and -, with -- between groups that do not touch."""
    found, shown = frozenset(numbers), 0
    output: list[str] = []
    for hit in numbers:
        first, last = max(shown + 1, hit - before), min(len(lines), hit + after)
        if (before or after) and shown and first > shown + 1:
            output.append("--")
        for number in range(first, last + 1):
            sign = ":" if number in found else "-"
            head = f"{prefix[:-1]}{sign}" if prefix else ""
            output.append(f"{head}{f'{number}{sign}' if numbered else ''}{lines[number - 1]}")
        shown = max(shown, last)
    return output


def matcher(pattern: str, *, fixed: bool = False, extended: bool = False, ignore_case: bool = False) -> Callable[[str], bool]:
    """Returns what says whether a line matches a pattern.

    Raises:
        Failed: if the pattern cannot be used.
    """
    if fixed or re.fullmatch(r"[^\\.\[\]*^$+?|(){}]*", pattern):
        if ignore_case:
            lowered = pattern.lower()
            return lambda line: lowered in line.lower()
        return lambda line: pattern in line
    try:
        return Pattern(pattern, extended=extended, ignore_case=ignore_case).found_in
    except PatternError as error:
        raise Failed(f"grep: {error}", 2) from None


def _below(shell: Shell, paths: list[str]) -> list[str]:
    """Returns the files that paths name, those below folders included, as they are shown."""
    found: list[str] = []
    for path in paths:
        full = shell.locate(path)
        if full in shell.workspace.rows("file"):
            found.append(path)
        elif shell.is_folder(full):
            found += [shell.shown(below) for below in shell.files_below(full)]
        else:
            raise Failed(f"grep: {path[:120]}: no such file or folder", 2)
    return found


def wc(shell: Shell, words: list[str], stdin: str | None) -> str:
    given = options("wc", words, flags="lwcm", long={"lines": "l", "words": "w", "bytes": "c", "chars": "m"})
    measures: dict[str, Callable[[str], int]] = {
        "l": lambda text: text.count("\n"),
        "w": lambda text: len(text.split()),
        "m": len,
        "c": lambda text: len(text.encode()),
    }
    wanted = [letter for letter in measures if letter in (given.flags or "lwc")]
    texts = inputs(shell, given.rest, stdin, "wc")
    rows = [([measures[letter](text) for letter in wanted], path) for path, text in texts]
    if len(rows) > 1:
        rows.append(([sum(column) for column in zip(*(numbers for numbers, _ in rows), strict=True)], "total"))
    return joined([" ".join([*map(str, numbers), path]).rstrip() for numbers, path in rows])


def sort(shell: Shell, words: list[str], stdin: str | None) -> str:
    given = options("sort", words, flags="nru", valued="kt", long={"numeric-sort": "n", "reverse": "r", "unique": "u"})
    lines = [line for _, text in inputs(shell, given.rest, stdin, "sort") for line in lines_of(text)]
    column = given.number("k", 0) if "k" in given.values else 0
    separator = given.values.get("t") or None

    def key(line: str) -> tuple[float, str]:
        cells = line.split(separator)
        text = line if not column else separator.join(cells[column - 1 :]) if separator else " ".join(cells[column - 1 :])
        number = _NUMBER.match(text) if "n" in given.flags else None
        return (float(number[1]) if number else 0.0, text if "n" not in given.flags else "")

    if "u" in given.flags:
        lines = list({key(line) if "n" in given.flags else line: line for line in reversed(lines)}.values())
    # Lines that are equal under -n are in the order of their whole text, as in sort's last resort.
    return joined(sorted(lines, key=lambda line: (*key(line), line), reverse="r" in given.flags))


def uniq(shell: Shell, words: list[str], stdin: str | None) -> str:
    given = options("uniq", words, flags="cdu", long={"count": "c"})
    runs: list[tuple[str, int]] = []
    for line in lines_of("".join(text for _, text in inputs(shell, given.rest[:1], stdin, "uniq"))):
        if runs and runs[-1][0] == line:
            runs[-1] = (line, runs[-1][1] + 1)
        else:
            runs.append((line, 1))
    if not given.flags.isdisjoint("du"):
        runs = [(line, count) for line, count in runs if (count > 1) == ("d" in given.flags)]
    return joined([f"{count:7} {line}" if "c" in given.flags else line for line, count in runs])


def cut(shell: Shell, words: list[str], stdin: str | None) -> str:
    given = options("cut", words, flags="s", valued="dfc", long={"delimiter": "d", "fields": "f", "characters": "c"})
    if ("f" in given.values) == ("c" in given.values):
        raise Failed("cut: give either -f FIELDS (with -d SEPARATOR) or -c CHARACTERS, such as -f 1,3 or -c 1-8")
    separator = given.values.get("d", "\t")
    if len(separator) != 1:
        raise Failed("cut: -d takes one character")
    chosen = _positions(given.values.get("f") or given.values.get("c") or "")
    lines: list[str] = []
    for _, text in inputs(shell, given.rest, stdin, "cut"):
        for line in lines_of(text):
            if "c" in given.values:
                lines.append("".join(line[part] for part in chosen))
            elif separator in line:
                cells = line.split(separator)
                lines.append(separator.join(cell for part in chosen for cell in cells[part]))
            elif "s" not in given.flags:
                lines.append(line)
    return joined(lines)


def _positions(text: str) -> list[slice]:
    """Returns what a list such as 1,3-5,8- chooses, in rising order and each position once."""
    ranges: list[tuple[int, int]] = []
    for part in text.split(",")[:50]:
        found = re.fullmatch(r"(\d{0,6})(-?)(\d{0,6})", part, re.ASCII)
        if not found or not (found[1] or found[3]):
            raise Failed(f"cut: {text[:40]!r} is no list of positions; write 1,3-5 or 2-")
        low = int(found[1] or 1)
        ranges.append((max(1, low), int(found[3] or 10**6) if found[2] else low))
    end, chosen = 0, []
    for low, high in sorted(ranges):
        if high > end:
            chosen.append(slice(max(low - 1, end), high))
            end = high
    return chosen


def sed(shell: Shell, words: list[str], stdin: str | None) -> str:
    given = options("sed", words, flags="ni", valued="e", long={"in-place": "i", "quiet": "n"})
    rest = list(given.rest)
    if "e" not in given.values and not rest:
        raise Failed("sed: give a script: 's/OLD/NEW/g' (OLD is plain text), '3d', '2,5p' with -n, or '/TEXT/d'")
    edit = _script(given.values["e"] if "e" in given.values else rest.pop(0), quiet="n" in given.flags)
    texts = inputs(shell, rest, stdin, "sed")
    if "i" in given.flags:
        if not rest:
            raise Failed("sed: -i needs a file")
        for path, text in texts:
            shell.write(path, bounded(joined(edit(lines_of(text)))))
        return ""
    return bounded("".join(joined(edit(lines_of(text))) for _, text in texts))


def _script(script: str, *, quiet: bool) -> Callable[[list[str]], list[str]]:
    span = _SPAN.fullmatch(script)
    if span and quiet == (span[3] == "p"):
        return lambda lines: _within(lines, span[1], span[2] or span[1], keep=span[3] == "p")
    if len(script) > 3 and script[0] == "/" and script[-2:] in ("/d", "/p") and quiet == (script[-1] == "p"):
        found_in = matcher(script[1:-2].replace("\\/", "/"))
        return lambda lines: [line for line in lines if found_in(line) == quiet]
    if len(script) > 3 and script[0] == "s" and not quiet:
        mark = re.escape(script[1])
        parts = re.split(rf"(?<!\\){mark}", script[2:])
        if len(parts) == 3 and parts[2] in ("", "g") and parts[0]:
            return _substitution(parts[0], parts[1], script[1], every=parts[2] == "g")
    raise Failed(
        f"sed: {script[:60]!r} is not supported; use 's/OLD/NEW/g' (OLD is plain text), '3d', '2,5p' with -n, or '/TEXT/d'"
    )


def _substitution(old: str, new: str, mark: str, *, every: bool) -> Callable[[list[str]], list[str]]:
    ahead, behind = old.startswith("^"), old.endswith("$") and not old.endswith("\\$")
    core = old[ahead : len(old) - behind]
    if re.search(r"(?<!\\)(?:\.\*|[\[\]*^$])", core) or re.search(r"(?<!\\)(?:&|\\\d)", new):
        raise Failed("sed: OLD and NEW are plain text here: put a backslash before . * [ ] ^ $ and &, and use no groups")
    core = re.sub(r"\\(.)", r"\1", core)
    new = re.sub(r"\\(.)", r"\1", new)

    def edit(line: str) -> str:
        if ahead or behind:
            fits = line == core if ahead and behind else line.startswith(core) if ahead else line.endswith(core)
            return line if not fits else new + line[len(core) :] if ahead else line[: len(line) - len(core)] + new
        return line.replace(core, new, -1 if every else 1) if core else line

    return lambda lines: bounded("\n".join(map(edit, lines))).split("\n") if lines else []


def _within(lines: list[str], first: str, last: str, *, keep: bool) -> list[str]:
    low, high = (len(lines) if bound == "$" else int(bound) for bound in (first, last))
    return [line for number, line in enumerate(lines, 1) if (low <= number <= max(low, high)) == keep]


def diff(shell: Shell, words: list[str], stdin: str | None) -> str:
    given = options("diff", words, flags="uq", long={"unified": "u", "brief": "q"})
    if len(given.rest) != 2:
        raise Failed("diff: give two files", 2)
    (first, old), (second, new) = inputs(shell, given.rest, stdin, "diff")
    if old == new:
        return ""
    if "q" in given.flags:
        raise Failed("", 1, f"Files {first} and {second} differ\n")
    raise Failed("", 1, joined([f"--- {first}", f"+++ {second}", *unified(old, new)]))


def echo(shell: Shell, words: list[str], stdin: str | None) -> str:
    flags = ""
    while words and re.fullmatch(r"-[neE]+", words[0]):
        flags += words.pop(0)
    text = " ".join(words)
    return (unescaped(text) if "e" in flags else text) + ("" if "n" in flags else "\n")


def printf(shell: Shell, words: list[str], stdin: str | None) -> str:
    if not words:
        raise Failed("printf: give a text")
    form, values = unescaped(words[0]), words[1:]
    if re.search(r"%(?![s%])", form):
        raise Failed("printf: only %s and %% are supported")
    rounds = max(1, -(-len(values) // max(1, form.replace("%%", "").count("%s"))))
    output = ""
    for _ in range(rounds if "%s" in form.replace("%%", "") else 1):
        output += re.sub(r"%[s%]", lambda sign: "%" if sign[0] == "%%" else (values.pop(0) if values else ""), form)
        bounded(output)
    return output


def unescaped(text: str) -> str:
    """Returns a text with \\n, \\t and \\\\ read as echo -e reads them."""
    return re.sub(r"\\([nt\\])", lambda found: {"n": "\n", "t": "\t", "\\": "\\"}[found[1]], text)


PROGRAMS: dict[str, Program] = {
    "cat": Program(cat, "cat [-n] FILE..."),
    "head": Program(head, "head [-n N] [FILE...]"),
    "tail": Program(tail, "tail [-n N] [FILE...]"),
    "grep": Program(grep, "grep [-i -n -r -v -c -l -h -q -E -F] [-A N -B N -C N] PATTERN [PATH...]"),
    "wc": Program(wc, "wc [-l -w -c -m] [FILE...]"),
    "sort": Program(sort, "sort [-n -r -u] [-k COLUMN] [-t SEPARATOR] [FILE...]"),
    "uniq": Program(uniq, "uniq [-c -d -u] [FILE]"),
    "cut": Program(cut, "cut -d SEPARATOR -f FIELDS | -c CHARACTERS [FILE...]"),
    "sed": Program(sed, "sed [-i] 's/OLD/NEW/g' | -n 'M,Np' | 'Nd' | '/TEXT/d' [FILE...]"),
    "diff": Program(diff, "diff [-u -q] FILE FILE"),
    "echo": Program(echo, "echo [-n -e] TEXT..."),
    "printf": Program(printf, "printf FORMAT [VALUE...]"),
}
