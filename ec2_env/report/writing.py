"""Makes a report: reads a run folder, writes the page and its plots."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ec2_env.bench.store import PART
from ec2_env.errors import ConfigurationError
from ec2_env.report.figures import plots
from ec2_env.report.markup import Viewer
from ec2_env.report.naming import Naming
from ec2_env.report.page import page
from ec2_env.report.pictures import can_draw_png, cjk_font, has_chinese, write_pictures
from ec2_env.report.run import read_run

PAGE = "index.html"
NO_PNG = "No PNG files: pip install 'ec2-env[plots]' brings the renderer."
NO_FONT = "No font with Chinese characters was found on this system; in PNG files they may be missing."


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a report came to.

    Attributes:
        page: The page.
        size: Its bytes.
        pictures: Files of plots.
        remarks: What could not be made, and why.
    """

    page: Path
    size: int
    pictures: tuple[Path, ...]
    remarks: tuple[str, ...]


def write_report(run: Path, out: Path | None = None, viewer: str | None = None) -> Written:
    """Writes the report of a run. The same folder gives the same bytes.

    Args:
        run: A run folder, or a folder of run folders.
        out: Folder of the page and its plots; `report` in the run folder if None.
        viewer: Folder, or address, of what `ec2-env view RUN --static` wrote; None for no links.

    Raises:
        ConfigurationError: if `run` is no run folder or is damaged, `out` cannot be written, or the viewer is not there.
    """
    folder = run / "report" if out is None else out
    address = _address(viewer, folder)
    found = read_run(run)
    naming = Naming(found)
    drawn = plots(found, naming)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        pictures = write_pictures(drawn, folder)
        text = page(found, naming, drawn, Viewer(address, found.folders)).encode()
        draft = folder / f"{PAGE}{PART}"
        draft.write_bytes(text)
        os.replace(draft, folder / PAGE)
    except OSError as error:
        raise ConfigurationError(
            f"the report cannot be written into {folder}: {error}; name another folder with --out"
        ) from error
    remarks = [*([] if can_draw_png() else [NO_PNG]), *_font_remarks(has_chinese(drawn))]
    return Written(page=folder / PAGE, size=len(text), pictures=tuple(pictures), remarks=tuple(remarks))


def _font_remarks(needed: bool) -> list[str]:
    """Returns what has to be said of fonts; without Chinese text in the plots, nothing."""
    return [NO_FONT] if needed and can_draw_png() and cjk_font() is None else []


def _address(viewer: str | None, folder: Path) -> str | None:
    """Returns the address of the viewer as the page links to it: a folder relative to the page, a web address as it is.

    Raises:
        ConfigurationError: if it is neither.
    """
    if viewer is None or viewer.startswith(("http://", "https://")):
        return viewer
    if not Path(viewer).exists():
        raise ConfigurationError(
            f"there is no folder {viewer}: make it with `ec2-env view RUN --static {viewer}`, or name an address that begins "
            "with http"
        )
    try:
        return Path(os.path.relpath(viewer, folder)).as_posix()
    except ValueError:
        return Path(viewer).resolve().as_uri()
