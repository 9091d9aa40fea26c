"""The files of plots beside the page: SVG always, PNG where the renderer of the `plots` extra is installed."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ec2_env.registry import require
from ec2_env.report.figures import Plot
from ec2_env.report.svg import standalone

ZOOM = 2
"""Pixels of a PNG for each unit of the plot."""
CJK_NAME = re.compile(
    r"(?i)(cjk|sourcehan|notosanssc|notosanstc|pingfang|hiragino|heiti|songti|msyh|simsun|simhei|deng\.ttf|wqy|droidsansfallback|"
    r"unifont|arphic|uming|ukai|lxgw)"
)
CJK = re.compile("[\u2e80-\u9fff\uf900-\ufaff]")
_SUFFIXES = (".ttf", ".ttc", ".otf")


def can_draw_png() -> bool:
    """Says whether the renderer is installed."""
    return importlib.util.find_spec("resvg_py") is not None


def png(svg: str) -> bytes:
    """Returns a plot as PNG, drawn from its SVG with the fonts of the system.

    Raises:
        MissingExtra: if the renderer is not installed.
    """
    found: bytes = require("resvg_py", extra="plots").svg_to_bytes(svg_string=svg, zoom=ZOOM, sans_serif_family="DejaVu Sans")
    return bytes(found)


def write_pictures(plots: Sequence[Plot], folder: Path) -> list[Path]:
    """Writes each plot as SVG and, if it can be drawn, as PNG; returns the files."""
    files = []
    for plot in plots:
        svg = standalone(plot.svg)
        file = folder / f"{plot.name}.svg"
        file.write_bytes(svg.encode())
        files.append(file)
        if can_draw_png():
            picture = file.with_suffix(".png")
            picture.write_bytes(png(svg))
            files.append(picture)
    return files


def has_chinese(plots: Iterable[Plot]) -> bool:
    """Says whether any plot has Chinese text, such as the name of a model."""
    return any(CJK.search(plot.svg) for plot in plots)


def cjk_font(folders: Sequence[Path] | None = None) -> Path | None:
    """Returns a font of this system that holds Chinese characters, by its file name; None if none is found."""
    for folder in _font_folders() if folders is None else folders:
        if folder.is_dir():
            fonts = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _SUFFIXES and CJK_NAME.search(path.name))
            if fonts:
                return fonts[0]
    return None


def _font_folders() -> list[Path]:
    home = Path.home()
    if sys.platform == "win32":
        return [Path(os.environ.get("WINDIR", "C:/Windows")) / "Fonts", home / "AppData/Local/Microsoft/Windows/Fonts"]
    if sys.platform == "darwin":
        return [Path("/System/Library/Fonts"), Path("/Library/Fonts"), home / "Library/Fonts"]
    return [home / ".fonts", home / ".local/share/fonts", Path("/usr/local/share/fonts"), Path("/usr/share/fonts")]
