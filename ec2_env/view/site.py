"""The page and its data, as the files of a folder: for a server that answers from this machine, or written to be kept."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from ec2_env.errors import ConfigurationError
from ec2_env.view.episodes import episode_data
from ec2_env.view.listing import episode_id, listing
from ec2_env.view.runs import Run

SCRIPTS = ("dom.js", "texts.js", "list.js", "episode.js", "ending.js", "start.js")
"""Parts of the page's script, in order."""
INDEX = "index.html"
EPISODES = "episodes"
_NAME = re.compile(rf"{EPISODES}/(B?)([1-9]\d{{0,8}})\.js", re.ASCII)


class Site:
    """The files of the page. Data of an episode is a script that the page loads when it is opened, so that it works from a disk.

    Args:
        runs: The run that is shown, or two that are compared.
    """

    def __init__(self, runs: tuple[Run, ...]) -> None:
        self.runs = runs

    @cached_property
    def index(self) -> bytes:
        """The page with the list of episodes. It loads nothing but the data of episodes from beside it."""
        style, script = _part("style.css"), "\n".join(_part(name) for name in SCRIPTS)
        data = f"const LISTING = {as_script(listing(self.runs))};\n"
        policy = (
            f"default-src 'none'; script-src 'self' file: '{_digest(data + script)}'; style-src '{_digest(style)}'; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        )
        page = _part("page.html")
        for mark, text in (("POLICY", policy), ("STYLE", style), ("SCRIPT", data + script)):
            page = page.replace(f"@{mark}@", text, 1)
        return page.encode()

    def names(self) -> list[str]:
        """Returns the names of all files of episodes."""
        return [f"{EPISODES}/{episode_id(index, number)}.js" for index, run in enumerate(self.runs) for number in run.records]

    def file(self, name: str) -> bytes | None:
        """Returns the content of a file by its path below the page's folder, or None if there is none."""
        if name in ("", INDEX):
            return self.index
        match = _NAME.fullmatch(name)
        index = int(match is not None and match[1] == "B")
        if match is None or index >= len(self.runs) or int(match[2]) not in self.runs[index].records:
            return None
        data = episode_data(self.runs[index], int(match[2]))
        return f'receiveEpisode("{match[1]}{match[2]}", {as_script(data)});\n'.encode()

    def write(self, folder: Path) -> int:
        """Writes all files into a folder, the same bytes for the same runs, and returns how many episodes it holds.

        Raises:
            ConfigurationError: if the folder holds anything but such files.
        """
        other = sorted(entry.name for entry in folder.iterdir() if entry.name not in (INDEX, EPISODES)) if folder.exists() else []
        if other:
            raise ConfigurationError(f"{folder} holds {other[0]!r}; name an empty folder, or one that an earlier page is in")
        (folder / EPISODES).mkdir(parents=True, exist_ok=True)
        names = self.names()
        for stale in sorted((folder / EPISODES).glob("*.js")):
            if f"{EPISODES}/{stale.name}" not in names:
                stale.unlink()
        for name in names:
            (folder / name).write_bytes(self.file(name) or b"")
        (folder / INDEX).write_bytes(self.index)
        return len(names)


def as_script(value: Any) -> str:
    """Returns plain data as a JavaScript literal in ASCII, which neither ends a script element nor opens a comment in one."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _part(name: str) -> str:
    return (resources.files("ec2_env.view") / "page" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
