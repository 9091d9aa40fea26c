"""Writes HTML: every text is escaped, and only what this package has made itself is taken as markup."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TypeAlias

from ec2_env.report.tally import Place


class Markup(str):
    """HTML that stands as it is."""


Content: TypeAlias = str | Markup


def shown(content: Content) -> str:
    """Returns a text escaped, and markup as it is."""
    return content if isinstance(content, Markup) else escape(content, quote=True)


def tag(name: str, *content: Content, **attributes: str) -> Markup:
    """Returns an element; in names of attributes "_" stands for "-", and a last one is dropped ("class_")."""
    words = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value, quote=True)}"' for key, value in attributes.items())
    return Markup(f"<{name}{words}>{''.join(map(shown, content))}</{name}>")


def joined(*parts: Content) -> Markup:
    """Returns parts one after the other."""
    return Markup("".join(map(shown, parts)))


def scrolled(label: str, content: Content) -> Markup:
    """Returns something wide that scrolls by itself, with the keyboard too."""
    return tag("div", content, class_="wide", role="region", aria_label=label, tabindex="0")


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[Content] | str], words: int = 1) -> Markup:
    """Returns a table.

    Args:
        caption: Says what it holds.
        head: Headings.
        rows: Cells; a text alone is a heading over the rows that follow.
        words: So many columns hold words, the others figures.
    """
    styles = ["words" if n < words else "figure" for n in range(len(head))]
    lines = [tag("caption", tag("span", caption))]
    lines.append(tag("thead", tag("tr", *(tag("th", one, scope="col", class_=c) for one, c in zip(head, styles, strict=True)))))
    body = []
    for row in rows:
        if isinstance(row, str):
            body.append(tag("tr", tag("th", row, scope="colgroup", colspan=str(len(head))), class_="group"))
            continue
        first = tag("th", _breakable(row[0]), scope="row")
        body.append(tag("tr", first, *(tag("td", one, class_=c) for one, c in zip(row[1:], styles[1:], strict=True))))
    return scrolled(caption, tag("table", *lines, tag("tbody", *body)))


def _breakable(content: Content) -> Markup:
    """Returns a name that a narrow screen may break after its parts."""
    return Markup(shown(content).replace("_", "_<wbr>").replace(":", ":<wbr>"))


def section(anchor: str, heading: str, *content: Content) -> Markup:
    """Returns a part of the page."""
    return tag("section", tag("h2", heading, id=anchor), *content, aria_labelledby=anchor)


class Viewer:
    """Makes links to the pages of episodes that `ec2-env view RUN --static DIR` writes.

    Args:
        base: Address of the viewer, relative to the page or whole; None for none. Episodes are then named by their line.
        folders: Names of the run folders.
    """

    def __init__(self, base: str | None, folders: Sequence[str]) -> None:
        self.base = base.rstrip("/") if base is not None else None
        self.folders = folders

    def link(self, place: Place | None) -> Content:
        """Returns a link to an episode, or its place in the run folder."""
        if place is None:
            return "-"
        folder = self.folders[place.folder]
        words = f"{folder + ' ' if folder else ''}{place.line}"
        if self.base is None:
            return f"line {words}"
        page = self.base if self.base.endswith(".html") else f"{self.base}/{folder + '/' if folder else ''}index.html"
        return tag("a", f"episode {words}", href=f"{page}#episode={place.line}")
