"""Plain tables of text, for a terminal, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

WIDTH = 120
BOLD, DIM, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_LATEX = {
    "\\": r"\textbackslash{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\^{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
_SPECIAL = re.compile("[" + re.escape("".join(_LATEX)) + "]")


class Laid(Protocol):
    """What can be shown as a table."""

    @property
    def title(self) -> str: ...

    @property
    def head(self) -> Sequence[str]: ...

    @property
    def sections(self) -> Sequence[tuple[str, Sequence[Sequence[str]]]]: ...

    @property
    def notes(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table as it is shown, and the figures behind it.

    Attributes:
        name: Short name, for JSON and for choosing tables.
        head: Headings; the first column is flush left.
        sections: Rows under one heading each; an empty heading is left out.
        notes: Paragraphs below.
        data: The same figures, not rounded, one mapping a row; JSON-able.
    """

    name: str
    title: str
    head: Sequence[str]
    sections: Sequence[tuple[str, Sequence[Sequence[str]]]]
    notes: Sequence[str] = ()
    data: Sequence[Mapping[str, Any]] = field(default=())


def widths_of(rows: Sequence[Sequence[str]]) -> list[int]:
    """Returns the width of each column."""
    return [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]


def line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Returns one row: the first cell flush left, the others flush right."""
    first, *others = cells
    return "  ".join(
        [first.ljust(widths[0]), *(text.rjust(width) for text, width in zip(others, widths[1:], strict=True))]
    ).rstrip()


def rule(heading: str, widths: Sequence[int]) -> str:
    """Returns the line above a section."""
    return f"-- {heading} {'-' * max(0, sum(widths) + 2 * len(widths) - len(heading) - 6)}"


def wrapped(text: str, before: str = "", after: str = "") -> list[str]:
    """Returns a paragraph as lines of at most `WIDTH` columns, each between the same two marks."""
    return [f"{before}{found}{after}" for found in textwrap.wrap(text, WIDTH)]


def terminal_lines(table: Laid, *, color: bool) -> list[str]:
    """Returns the lines of a table for a terminal."""
    bold, dim, plain = (BOLD, DIM, PLAIN) if color else ("", "", "")
    widths = widths_of([table.head, *(row for _, rows in table.sections for row in rows)])
    lines = [*wrapped(table.title, bold, plain), "", f"{bold}{line(table.head, widths)}{plain}"]
    for heading, rows in table.sections:
        lines += [f"{dim}{rule(heading, widths)}{plain}"] if heading else []
        lines += [line(row, widths) for row in rows]
    return [*lines, "", *(found for note in table.notes for found in wrapped(note, dim, plain))]


def markdown_lines(table: Laid) -> list[str]:
    """Returns the lines of a table for a page."""
    lines = [f"**{table.title}**", ""]
    for heading, rows in table.sections:
        lines += [f"*{heading}*", ""] if heading else []
        lines += [*markdown_rows(table.head, rows), ""]
    return [*lines, *(f"{note}  " for note in table.notes), ""]


def markdown_rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns a Markdown table."""
    shown = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return ["| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in shown]


def latex_lines(table: Laid) -> list[str]:
    """Returns a `table` environment; it needs the package booktabs, which every paper class has."""
    width = len(table.head)
    lines = ["% needs \\usepackage{booktabs}", "\\begin{table}", "\\centering", "\\small", f"\\caption{{{latex(table.title)}}}"]
    lines += [f"\\begin{{tabular}}{{l{'r' * (width - 1)}}}", "\\toprule", _latex_row(table.head)]
    for heading, rows in table.sections:
        lines += ["\\midrule"]
        lines += [f"\\multicolumn{{{width}}}{{l}}{{\\textit{{{latex(heading)}}}}} \\\\"] if heading else []
        lines += [_latex_row(row) for row in rows]
    lines += ["\\bottomrule", "\\end{tabular}"]
    lines += ["", *(f"\\par\\footnotesize {latex(note)}" for note in table.notes)] if table.notes else []
    return [*lines, "\\end{table}"]


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(latex(cell) for cell in cells) + " \\\\"


def latex(text: str) -> str:
    """Returns text that LaTeX shows as it is."""
    return _SPECIAL.sub(lambda match: _LATEX[match.group()], text)


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns rows with the union of their keys as columns, in the order in which they first appear."""
    out = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([[_plain(row.get(name)) for name in names] for row in rows])
    return out.getvalue()


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return repr(round(value, 9))
    return "" if value is None else " ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
