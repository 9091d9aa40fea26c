"""Writes SVG: elements as text, with numbers in their shortest form, so that equal figures give equal bytes.

Colors are the page's CSS variables. A plot in the page follows its light or dark theme; a file of its own has the light colors
put in their places, and a background.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

from ec2_env.report.palette import FONTS, LIGHT

_WIDE = re.compile("[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]")
_NARROW = set("iljtfrI.,:;'|!()[] -")
_BROAD = set("mwMW@%_ABCDEGHKNOPQRUVXYZ0123456789")


def number(value: float) -> str:
    """Returns a coordinate with at most one decimal."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def element(name: str, attributes: Mapping[str, object], *content: str) -> str:
    """Returns one element.

    Args:
        name: Its name.
        attributes: Floats are rounded; "_" stands for "-" in names.
        content: Elements or escaped text.
    """
    parts = [f"<{name}"]
    for key, value in attributes.items():
        shown = number(value) if isinstance(value, float) else escape(str(value), quote=True)
        parts.append(f' {key.replace("_", "-")}="{shown}"')
    return "".join([*parts, ">", *content, f"</{name}>"]) if content else "".join([*parts, "/>"])


def text(x: float, y: float, words: str, **attributes: object) -> str:
    """Returns a text at its baseline."""
    return element("text", {"x": float(x), "y": float(y), "fill": "var(--ink)", **attributes}, escape(words))


def line(x1: float, y1: float, x2: float, y2: float, stroke: str = "var(--rule)", **attributes: object) -> str:
    """Returns a straight line."""
    ends = {"x1": float(x1), "y1": float(y1), "x2": float(x2), "y2": float(y2)}
    return element("line", {**ends, "stroke": stroke, **attributes})


def hint(words: str) -> str:
    """Returns what is shown when the pointer rests on the element around it."""
    return element("title", {}, escape(words))


def width_of(words: str, size: float) -> float:
    """Returns about how wide a text is in a sans-serif font, rather too much than too little."""
    units = sum(
        1.0 if _WIDE.match(letter) else 0.34 if letter in _NARROW else 0.7 if letter in _BROAD else 0.6 for letter in words
    )
    return units * size


def drawing(name: str, title: str, about: str, width: float, height: float, body: str) -> str:
    """Returns a plot for a page.

    Args:
        name: Unique in the page.
        title: What it shows; read out.
        about: What can be seen in it, in words; read out.
        width: In units of the plot; so the height.
        height: See `width`.
        body: Elements.
    """
    label = element("title", {"id": f"{name}-title"}, escape(title)) + element("desc", {"id": f"{name}-about"}, escape(about))
    attributes = {
        "xmlns": "http://www.w3.org/2000/svg",
        "viewBox": f"0 0 {number(width)} {number(height)}",
        "width": number(width),
        "height": number(height),
        "role": "img",
        "aria-labelledby": f"{name}-title {name}-about",
        "font-family": FONTS,
        "font-size": 12,
    }
    return element("svg", attributes, label, body)


def standalone(plot: str) -> str:
    """Returns a plot of a page as a file of its own: light colors, and a background."""
    head, end, rest = plot.partition("</desc>")
    plain = f'{head}{end}<rect width="100%" height="100%" fill="{LIGHT["paper"]}"/>{rest}'
    return re.sub(r"var\(--([a-z0-9]+)\)", lambda found: LIGHT[found[1]], plain) + "\n"
