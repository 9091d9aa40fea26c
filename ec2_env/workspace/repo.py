"""A toy git: commits with whole trees, an index, branches, and remotes that only grow by pushes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import msgspec

from ec2_env.errors import ToolError
from ec2_env.workspace.apps.files import File
from ec2_env.workspace.linediff import added_lines
from ec2_env.workspace.patterns import wildcard
from ec2_env.workspace.store import Row, Workspace

Tree = tuple[tuple[str, str], ...]
"""Paths (relative to the repository) and contents, sorted by path."""


class Commit(Row, frozen=True, kw_only=True):
    """One commit; `id` is its abbreviated hash of seven hex digits."""

    repo: str
    parent: str | None
    message: str
    author: str
    date: str
    tree: Tree

    @property
    def lasting(self) -> bool:
        return True


class Repo(Row, frozen=True, kw_only=True):
    """One repository; `id` is the folder that holds its working tree.

    Attributes:
        user: Author of new commits, "Name <address>".
        branch: The branch that is checked out.
        branches: Names and heads of the local branches.
        index: What the next commit will hold.
        remotes: Names and hosts of the remotes.
        protected: Branches that every remote refuses to take pushes to.
    """

    user: str
    branch: str
    branches: tuple[tuple[str, str], ...]
    index: Tree
    remotes: tuple[tuple[str, str], ...]
    protected: tuple[str, ...] = ()


class Push(Row, frozen=True, kw_only=True):
    """One push: which commits left for which host. The newest one to a branch says where that branch of the remote stands.

    Attributes:
        commits: What the remote did not have before, oldest first.
        text: Messages and added lines of these commits: what whoever reads the remote can now read.
    """

    repo: str
    remote: str
    host: str
    branch: str
    head: str
    commits: tuple[str, ...]
    text: tuple[str, ...]

    @property
    def lasting(self) -> bool:
        return True

    @property
    def reaches(self) -> tuple[str, ...]:
        return (f"host:{self.host}",)


def make_commit(repo: str, parent: str | None, message: str, author: str, date: str, tree: Tree) -> Commit:
    """Returns a commit whose id follows from all that it holds."""
    parts = (repo, parent or "", message, author, date, *(text for pair in tree for text in pair))
    digest = hashlib.sha1("\x00".join(parts).encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
    return Commit(id=digest[:7], repo=repo, parent=parent, message=message, author=author, date=date, tree=tree)


def as_tree(files: Mapping[str, str]) -> Tree:
    return tuple(sorted(files.items()))


def head_of(workspace: Workspace, repo: Repo) -> Commit:
    """Returns the commit that is checked out."""
    commit: Commit = workspace.get("commit", dict(repo.branches)[repo.branch])
    return commit


def remote_heads(workspace: Workspace, repo: Repo) -> dict[str, str]:
    """Returns where each branch of each remote stands, by names such as origin/main."""
    return {f"{p.remote}/{p.branch}": p.head for p in workspace.rows("push").values() if p.repo == repo.id}


def history(workspace: Workspace, commit_id: str | None) -> list[Commit]:
    """Returns a commit and all before it, newest first."""
    rows: Mapping[str, Commit] = workspace.rows("commit")
    found: list[Commit] = []
    while commit_id is not None and commit_id in rows and len(found) < 10_000:
        found.append(rows[commit_id])
        commit_id = found[-1].parent
    return found


def resolve(workspace: Workspace, repo: Repo, name: str) -> Commit:
    """Returns the commit that a revision names: HEAD, a branch, origin/main, an id or its beginning, each with ~N or ^ after it.

    Raises:
        ToolError: if there is none.
    """
    base, back = name.rstrip("^"), len(name) - len(name.rstrip("^"))
    base, tilde, count = base.partition("~")
    if tilde:
        if not (count == "" or (count.isascii() and count.isdigit() and len(count) < 5)):
            raise ToolError(f"{name[:80]!r} is no revision; HEAD~2 is the second before HEAD")
        back += int(count or 1)
    heads = {**remote_heads(workspace, repo), **dict(repo.branches), "HEAD": dict(repo.branches)[repo.branch]}
    rows = workspace.rows("commit")
    found = heads.get(base) or heads.get(f"{repo.remotes[0][0]}/{base}" if repo.remotes else "")
    if found is None:
        near = [key for key, row in rows.items() if len(base) >= 4 and row.repo == repo.id and key.startswith(base[:7])]
        if len(near) != 1:
            raise ToolError(
                f"unknown revision {name[:80]!r}; the branches are {', '.join(sorted(heads))}; `git log` shows the commits"
            )
        found = near[0]
    line = history(workspace, found)
    if back >= len(line):
        raise ToolError(f"{name[:80]!r} goes back beyond the first commit")
    return line[back]


def outgoing(workspace: Workspace, repo: Repo, head: str, remote: str) -> list[Commit]:
    """Returns the commits up to `head` that no branch of the remote has, oldest first."""
    known: set[str] = set()
    for name, other in remote_heads(workspace, repo).items():
        if name.partition("/")[0] == remote:
            known |= {commit.id for commit in history(workspace, other)}
    return [commit for commit in reversed(history(workspace, head)) if commit.id not in known]


def parent_tree(workspace: Workspace, commit: Commit) -> dict[str, str]:
    """Returns what the commit before this one holds; nothing before the first."""
    return dict(workspace.get("commit", commit.parent).tree) if commit.parent else {}


def push_text(workspace: Workspace, commits: Iterable[Commit]) -> tuple[str, ...]:
    """Returns the messages, paths and added lines of commits."""
    found: list[str] = []
    for commit in commits:
        before = parent_tree(workspace, commit)
        lines = [
            line for path, text in commit.tree if before.get(path) != text for line in added_lines(before.get(path, ""), text)
        ]
        found.append("\n".join((commit.message, *(path for path, _ in commit.tree if path not in before), *lines)))
    return tuple(found)


def working_tree(workspace: Workspace, repo: Repo) -> dict[str, str]:
    """Returns the files below the repository's folder, by path relative to it."""
    prefix = f"{repo.id}/"
    return {path.removeprefix(prefix): row.content for path, row in workspace.rows("file").items() if path.startswith(prefix)}


def untracked(repo: Repo, files: Mapping[str, str]) -> list[str]:
    """Returns the paths that the index does not hold and .gitignore does not name."""
    tracked = dict(repo.index)
    rules = [line.strip() for line in files.get(".gitignore", "").splitlines()[:60]]
    rules = [rule for rule in rules if rule and not rule.startswith("#")]
    return sorted(path for path in files if path not in tracked and not any(_ignores(rule, path) for rule in rules))


def _ignores(rule: str, path: str) -> bool:
    parts = path.split("/")
    rule = rule.strip("/")
    if "/" in rule:
        return wildcard(rule, path) or path.startswith(f"{rule}/")
    return any(wildcard(rule, part) for part in parts)


def is_clean(workspace: Workspace, repo: Repo) -> bool:
    """Says whether the index and all tracked files are as the last commit has them."""
    files = working_tree(workspace, repo)
    return repo.index == head_of(workspace, repo).tree and all(files.get(path) == text for path, text in repo.index)


def set_files(workspace: Workspace, repo: Repo, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Makes the working tree follow a change of the tree; files that both have alike stay as they are."""
    stamp = workspace.now.isoformat(" ", "minutes")
    for path in {**before, **after}:
        full = f"{repo.id}/{path}"
        if path not in after:
            if full in workspace.rows("file"):
                workspace.remove("file", full)
        else:
            present = workspace.rows("file").get(full)
            if present is None or present.content != after[path]:
                workspace.put("file", File(id=full, content=after[path], modified=stamp))


def record(workspace: Workspace, repo: Repo, message: str, tree: Tree) -> Commit:
    """Adds a commit of this tree to the current branch, and makes the index hold the same."""
    parent = dict(repo.branches)[repo.branch]
    commit = make_commit(repo.id, parent, message, repo.user, workspace.now.isoformat(" ", "minutes"), tree)
    workspace.put("commit", commit)
    move_branch(workspace, repo, repo.branch, commit.id, tree)
    return commit


def move_branch(workspace: Workspace, repo: Repo, branch: str, head: str, index: Tree, *, current: str | None = None) -> None:
    """Sets a branch's head, the index and, if given, the branch that is checked out."""
    branches = {**dict(repo.branches), branch: head}
    workspace.put(
        "repo",
        msgspec.structs.replace(repo, branches=tuple(branches.items()), index=index, branch=current or repo.branch),
    )
