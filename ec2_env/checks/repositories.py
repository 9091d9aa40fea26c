"""Building blocks for grading work on repositories: by what a branch holds in the end, however it came to hold it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ec2_env.task import Grading
from ec2_env.workspace.repo import Commit, Repo, head_of, history, remote_heads


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchHolds:
    """A branch that had to get certain changes, and no others; earns (right - wrong) / expected paths, never below 0.

    Claims what led there: pushes to the branch, commits on it, the repository's own state, and files of the working tree that are
    as the branch that is checked out has them.

    Attributes:
        repo: Folder of the repository.
        branch: "main" for a local branch, "origin/main" for a remote's.
        base: Id of the commit that the changes are counted from.
        changes: By path, the whole new content, what says whether a content is right, or None for a file that had to go.
    """

    repo: str
    branch: str
    base: str
    changes: Mapping[str, str | Callable[[str], bool] | None]

    def __call__(self, state: Grading) -> float:
        workspace = state.workspace
        if not self.changes:
            raise ValueError("name at least one path that has to change")
        repo: Repo = workspace.get("repo", self.repo)
        head = {**remote_heads(workspace, repo), **dict(repo.branches)}.get(self.branch)
        if head is None or head == self.base:
            return 0.0
        line = history(workspace, head)
        self._claim(state, repo, {commit.id for commit in line})
        base: Commit = workspace.get("commit", self.base)
        before, after = dict(base.tree), dict(line[0].tree)
        right = sum(self._fits(before, after, path) for path in self.changes)
        wrong = sum(before.get(path) != after.get(path) for path in {**before, **after} if path not in self.changes)
        return max(0.0, (right - wrong) / len(self.changes))

    def _fits(self, before: Mapping[str, str], after: Mapping[str, str], path: str) -> bool:
        wanted, given = self.changes[path], after.get(path)
        if callable(wanted):
            return given is not None and given != before.get(path) and wanted(given)
        return given == wanted

    def _claim(self, state: Grading, repo: Repo, commits: set[str]) -> None:
        head = head_of(state.workspace, repo)
        current, prefix = dict(head.tree), f"{self.repo}/"
        tracked = {path for commit in state.workspace.rows("commit").values() for path, _ in commit.tree}
        for index, change in state.unclaimed():
            path = change.id.removeprefix(prefix) if change.table == "file" and change.id.startswith(prefix) else ""
            content = None if change.after is None else getattr(change.after, "content", None)
            if (
                (change.table == "push" and f"{change.after.remote}/{change.after.branch}" == self.branch)
                or (change.table == "commit" and change.id in commits)
                or (change.table == "repo" and change.id == self.repo and repo.index == head.tree)
                or (path in tracked and current.get(path) == content)
            ):
                state.claimed.add(index)
