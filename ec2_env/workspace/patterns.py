"""Patterns that cannot hang: wildcards for paths, and the common part of grep's regular expressions on a lazy automaton.

Matching takes time in proportion to the text whatever the pattern, because nothing is ever tried twice (Thompson's construction).
"""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_STATES = 400
MAX_WORK = 60_000
"""How many states one pattern may look at before it is refused as too costly."""

_NAMED = {
    "d": (("0", "9"),),
    "w": (("a", "z"), ("A", "Z"), ("0", "9"), ("_", "_")),
    "s": ((" ", " "), ("\t", "\r")),
}
_CLASSES = {
    "digit": _NAMED["d"],
    "alpha": _NAMED["w"][:2],
    "alnum": _NAMED["w"][:3],
    "space": _NAMED["s"],
    "upper": (("A", "Z"),),
    "lower": (("a", "z"),),
}
_ACCEPT = 0


class PatternError(ValueError):
    """A pattern is malformed, not supported or too costly."""


@dataclass(slots=True)
class _Node:
    """One state: `kind` is "accept", "set" (consumes a character), "split", "bol" or "eol"."""

    kind: str
    targets: list[int] = field(default_factory=list)
    ranges: tuple[tuple[str, str], ...] = ()
    negated: bool = False


class Pattern:
    """A regular expression: literals, `.`, `[...]`, `*`, `+`, `?`, `{m,n}`, `|`, groups, `^`, `$`, `\\d`, `\\w`, `\\s`.

    Args:
        text: The pattern.
        extended: Whether `+ ? | ( ) {` are operators as they stand (grep -E) or only after a backslash (grep).
        ignore_case: Whether upper and lower case are the same.

    Raises:
        PatternError: if the pattern is malformed, uses something else, or is too large.
    """

    def __init__(self, text: str, *, extended: bool = False, ignore_case: bool = False) -> None:
        if len(text) > 200:
            raise PatternError("the pattern is too long; give at most 200 characters")
        self._ignore_case = ignore_case
        self._nodes = [_Node("accept")]
        self._work = 0
        start = self._compile(_Parser(text, extended).whole(), _ACCEPT)
        self._inside = self._closure([start], at_start=False)
        self._first = self._closure([start], at_start=True)
        self._table: dict[frozenset[int], dict[str, frozenset[int]]] = {}
        self._ends: dict[frozenset[int], bool] = {}

    def found_in(self, line: str) -> bool:
        """Says whether some part of a line matches.

        Raises:
            PatternError: if the pattern turns out to be too costly.
        """
        current = self._first
        for char in line:
            if _ACCEPT in current:
                return True
            row = self._table.get(current)
            if row is None:
                row = self._table[current] = {}
            following = row.get(char)
            if following is None:
                following = row[char] = self._step(current, char)
            current = following
        if current not in self._ends:
            pending = [t for n in current if self._nodes[n].kind == "eol" for t in self._nodes[n].targets]
            # An empty line is its own start: "$^" matches it, as in grep.
            self._ends[current] = _ACCEPT in current or _ACCEPT in self._closure(pending, at_start=not line, at_end=True)
        return self._ends[current]

    def _step(self, current: frozenset[int], char: str) -> frozenset[int]:
        self._work += len(current) + 1
        if self._work > MAX_WORK:
            raise PatternError("the pattern is too costly; use a simpler one, or grep -F")
        targets = [self._nodes[n].targets[0] for n in current if self._consumes(self._nodes[n], char)]
        return self._closure(targets, at_start=False) | self._inside

    def _consumes(self, node: _Node, char: str) -> bool:
        if node.kind != "set":
            return False
        forms = {char, char.lower(), char.upper()} if self._ignore_case else (char,)
        return any(low <= form <= high for form in forms for low, high in node.ranges) != node.negated

    def _closure(self, states: list[int], *, at_start: bool, at_end: bool = False) -> frozenset[int]:
        seen: set[int] = set()
        stack = list(states)
        while stack:
            state = stack.pop()
            if state in seen:
                continue
            seen.add(state)
            node = self._nodes[state]
            if node.kind == "split" or (node.kind == "bol" and at_start) or (node.kind == "eol" and at_end):
                stack += node.targets
        return frozenset(s for s in seen if self._nodes[s].kind in ("set", "eol", "accept"))

    def _add(self, node: _Node) -> int:
        if len(self._nodes) >= MAX_STATES:
            raise PatternError("the pattern is too large; use smaller repeats")
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _compile(self, tree: tuple[object, ...], target: int) -> int:
        """Adds the states of a syntax tree that go on to `target`; returns the first."""
        match tree:
            case ("cat", list(parts)):
                for part in reversed(parts):
                    target = self._compile(part, target)
                return target
            case ("alt", list(parts)):
                return self._add(_Node("split", [self._compile(part, target) for part in parts]))
            case ("repeat", tuple(part), int(low), high):
                return self._repeat(part, low, high if isinstance(high, int) else None, target)
            case ("set", tuple(ranges), bool(negated)):
                return self._add(_Node("set", [target], ranges, negated))
            case (str(anchor),):
                return self._add(_Node(anchor, [target]))
        raise AssertionError(tree)

    def _repeat(self, part: tuple[object, ...], low: int, high: int | None, target: int) -> int:
        if high is None:
            loop = self._add(_Node("split"))
            self._nodes[loop].targets = [self._compile(part, loop), target]
            target = loop
        else:
            for _ in range(high - low):
                target = self._add(_Node("split", [self._compile(part, target), target]))
        for _ in range(low):
            target = self._compile(part, target)
        return target


class _Parser:
    """Reads a pattern into a tree of nodes: cat, alt (parts); repeat (part, low, high); set (ranges, negated); bol; eol."""

    def __init__(self, text: str, extended: bool) -> None:
        self.text, self.extended, self.at = text, extended, 0

    def whole(self) -> tuple[object, ...]:
        tree = self._alternatives()
        if self.at < len(self.text):
            raise PatternError("a closing bracket has no opening one")
        return tree

    def _operator(self) -> str:
        """Returns the operator at the current position as it is written in the extended form, or ""."""
        text, at = self.text, self.at
        if at >= len(text):
            return ""
        escaped = text[at] == "\\" and at + 1 < len(text)
        char = text[at + 1] if escaped else text[at]
        if char in "+?|(){}" and escaped != self.extended:
            return char
        return "*" if char == "*" and not escaped else ""

    def _skip(self) -> None:
        self.at += 2 if self.text[self.at] == "\\" else 1

    def _alternatives(self) -> tuple[object, ...]:
        parts = [self._sequence()]
        while self._operator() == "|":
            self._skip()
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else ("alt", parts)

    def _sequence(self) -> tuple[object, ...]:
        parts: list[tuple[object, ...]] = []
        begin = self.at
        while self.at < len(self.text) and self._operator() not in ("|", ")"):
            operator = self._operator()
            if operator in ("*", "+", "?", "{") and parts:
                parts[-1] = self._repeated(parts[-1], operator)
            elif operator == "(":
                self._skip()
                parts.append(self._alternatives())
                if self._operator() != ")":
                    raise PatternError("an opening bracket is never closed")
                self._skip()
            else:
                parts.append(self._atom(first=self.at == begin))
        return ("cat", parts)

    def _repeated(self, part: tuple[object, ...], operator: str) -> tuple[object, ...]:
        self._skip()
        if operator != "{":
            return ("repeat", part, int(operator == "+"), 1 if operator == "?" else None)
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at : end].rstrip("\\").partition(",") if end >= 0 else ("", "", "")
        if not (
            low.isascii()
            and low.isdigit()
            and len(low) < 4
            and (not high or (high.isascii() and high.isdigit() and len(high) < 4))
        ):
            raise PatternError("a repeat is written {2}, {2,} or {2,5}")
        self.at = end + 1
        most = None if comma and not high else int(high or low)
        if most is not None and most < int(low):
            raise PatternError("a repeat has its bounds the wrong way round")
        return ("repeat", part, int(low), most)

    def _atom(self, first: bool) -> tuple[object, ...]:
        char = self.text[self.at]
        self.at += 1
        if char == ".":
            return ("set", (), True)
        if char == "[":
            return self._set()
        if char == "^" and (self.extended or first):
            return ("bol",)
        if char == "$" and (self.extended or self.at == len(self.text) or self._operator() in ("|", ")")):
            return ("eol",)
        if char == "\\":
            if self.at == len(self.text):
                raise PatternError("the pattern ends in a backslash")
            char = self.text[self.at]
            self.at += 1
            if char.lower() in _NAMED:
                return ("set", _NAMED[char.lower()], char.isupper())
            if char.isalnum() or char in "<>":
                raise PatternError(f"\\{char} is not supported; supported are \\d \\w \\s and escaped signs")
        return ("set", ((char, char),), False)

    def _set(self) -> tuple[object, ...]:
        text = self.text
        negated = text[self.at : self.at + 1] == "^"
        self.at += negated
        ranges: list[tuple[str, str]] = []
        begin = self.at
        while self.at < len(text) and (text[self.at] != "]" or self.at == begin):
            if text.startswith("[:", self.at):
                name, closing, _ = text[self.at + 2 :].partition(":]")
                if not closing or name not in _CLASSES:
                    raise PatternError(f"the classes are {', '.join(f'[:{name}:]' for name in _CLASSES)}")
                ranges += _CLASSES[name]
                self.at += len(name) + 4
            elif text[self.at + 1 : self.at + 2] == "-" and text[self.at + 2 : self.at + 3] not in ("", "]"):
                ranges.append((text[self.at], text[self.at + 2]))
                self.at += 3
            else:
                ranges.append((text[self.at], text[self.at]))
                self.at += 1
        if self.at >= len(text):
            raise PatternError("a [ is never closed")
        self.at += 1
        return ("set", tuple(ranges), negated)


def wildcard(pattern: str, text: str) -> bool:
    """Says whether a whole text matches a pattern in which `*` stands for any characters and `?` for one.

    Takes time in proportion to the product of both lengths at worst.
    """
    at = start = 0
    star, mark = -1, 0
    while at < len(text):
        if start < len(pattern) and pattern[start] == "*":
            star, mark = start, at
            start += 1
        elif start < len(pattern) and pattern[start] in ("?", text[at]):
            at, start = at + 1, start + 1
        elif star >= 0:
            mark += 1
            at, start = mark, star + 1
        else:
            return False
    return all(char == "*" for char in pattern[start:])
