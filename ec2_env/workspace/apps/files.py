"""Files: a folder tree that lives in the workspace alone. No path leads out of it, and no tool touches the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ec2_env.errors import ToolError
from ec2_env.workspace.store import Row, Workspace
from ec2_env.workspace.tools import App, tool

if TYPE_CHECKING:
    from ec2_env.workspace.world import World

READ_CHARS = 6_000
"""Longest piece of a file shown by one read."""


class File(Row, frozen=True, kw_only=True):
    """One text file; `id` is its path, relative to the workspace, with forward slashes."""

    content: str
    modified: str


@tool(opens="read_file")
def list_files(workspace: Workspace, folder: str = "") -> list[dict[str, Any]]:
    """Lists the files below a folder, by path. At most 100 are shown.

    Args:
        folder: Path of the folder; empty for all files.
    """
    prefix = f"{inside(folder)}/" if folder.strip("/. ") else ""
    found = [listed(f) for f in workspace.rows("file").values() if f.id.startswith(prefix)]
    return sorted(found, key=lambda f: f["path"])[:100]


@tool(opens="read_file")
def search_files(workspace: Workspace, query: str) -> list[dict[str, Any]]:
    """Finds files whose path or content contains every word of the query. At most 20 are shown.

    Args:
        query: Words to look for, separated by spaces; upper and lower case are the same.
    """
    wanted = query.lower().split()
    if not wanted:
        raise ToolError("query is empty; give at least one word")
    found = [listed(f) for f in workspace.rows("file").values() if all(word in f"{f.id} {f.content}".lower() for word in wanted)]
    return sorted(found, key=lambda f: f["path"])[:20]


@tool()
def read_file(workspace: Workspace, path: str, offset: int = 0) -> dict[str, Any]:
    """Shows the text of a file, at most 6000 characters at a time.

    Args:
        path: Path of the file.
        offset: Character to start from.
    """
    file = workspace.get("file", inside(path))
    if offset < 0:
        raise ToolError("offset must be 0 or more")
    shown: dict[str, Any] = {"path": file.id, "modified": file.modified, "content": file.content[offset : offset + READ_CHARS]}
    if offset + READ_CHARS < len(file.content):
        shown["next_offset"] = offset + READ_CHARS
    return shown


@tool(write=True)
def write_file(workspace: Workspace, path: str, content: str) -> dict[str, Any]:
    """Creates a file, or replaces its whole content.

    Args:
        path: Path of the file.
        content: Its new text.
    """
    file = File(id=inside(path), content=content, modified=workspace.now.isoformat(" ", "minutes"))
    workspace.put("file", file)
    return {"path": file.id, "characters": len(content)}


@tool(write=True)
def move_file(workspace: Workspace, path: str, new_path: str) -> dict[str, Any]:
    """Moves or renames a file. Refuses to overwrite another one.

    Args:
        path: Path of the file.
        new_path: Its new path.
    """
    file, target = workspace.get("file", inside(path)), inside(new_path)
    if target in workspace.rows("file"):
        raise ToolError(f"{target[:80]!r} exists already; delete it first or choose another path")
    workspace.remove("file", file.id)
    workspace.put("file", msgspec.structs.replace(file, id=target))
    return {"path": target}


@tool(write=True)
def delete_file(workspace: Workspace, path: str) -> dict[str, Any]:
    """Deletes a file.

    Args:
        path: Path of the file.
    """
    workspace.remove("file", inside(path))
    return {"deleted": inside(path)}


def inside(path: str) -> str:
    """Returns a path in its one normal form.

    Raises:
        ToolError: if it is absolute, leads out of the workspace, or is no path at all.
    """
    text = path.strip().replace("\\", "/")
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if text.startswith(("/", "~")) or ".." in parts or ":" in text:
        raise ToolError(f"{path[:80]!r} leads out of the workspace; give a relative path such as reports/june.md")
    if not parts or len(text) > 200 or any(ord(c) < 32 for c in text):
        raise ToolError(f"{path[:80]!r} is not a usable path; give a relative path such as reports/june.md")
    return "/".join(parts)


def listed(file: File) -> dict[str, Any]:
    return {"path": file.id, "characters": len(file.content), "modified": file.modified}


class FilesSeeder:
    """Fills the folder tree while a world is built."""

    def __init__(self, world: World) -> None:
        self.world = world

    def write(self, path: str, content: str, *, days_ago: int | None = None) -> File:
        """Puts a file into the workspace and returns it."""
        rng = self.world.rng
        moment = self.world.moment(-(rng.randrange(2, 90) if days_ago is None else days_ago))
        file = File(id=inside(path), content=content, modified=moment.isoformat(" ", "minutes"))
        self.world.workspace.put("file", file)
        return file


APP = App("files", (list_files, read_file, search_files, write_file, move_file, delete_file), FilesSeeder)
