"""Shell: one tool that runs command lines over the workspace's own files and toy git repositories, and never touches the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ec2_env.errors import ToolError
from ec2_env.workspace import filecommands, gitcommands, textcommands
from ec2_env.workspace.apps.files import File
from ec2_env.workspace.commandline import Failed, Program, Shell, bounded, joined
from ec2_env.workspace.repo import Commit, Push, Repo, as_tree, make_commit, remote_heads
from ec2_env.workspace.shellwords import Command, Pipeline, parse, plain
from ec2_env.workspace.store import Workspace
from ec2_env.workspace.tools import App, tool

if TYPE_CHECKING:
    from ec2_env.workspace.world import Person, World

MAX_OUTPUT = 6_000
"""Longest output shown of one line."""


@tool(write=True)
def run_command(workspace: Workspace, command: str) -> dict[str, Any]:
    """Runs a command line on the files of the workspace. Each call starts in the top folder; a line that fails changes nothing.

    There are ls, find, cat, head, tail, grep, wc, sort, uniq, cut, sed, diff, echo, printf, cp, mv, rm, touch, mkdir, xargs, cd
    and git, joined by | && || ; with quotes, wildcards, > and >>. `help` shows how each is called.

    Args:
        command: The line, such as: cd app && git status
    """
    shell = Shell(workspace)
    status, output, problems = _run(shell, parse(command))
    if status and problems:
        shown = f"{output[-1500:]}\n" if output else ""
        raise ToolError(f"{shown}{'; '.join(problems)[:3000]} (exit status {status}; nothing was changed)")
    text = output + joined(problems)
    result: dict[str, Any] = {"exit": status, "output": text[:MAX_OUTPUT]}
    if len(text) > MAX_OUTPUT:
        result["left_out"] = f"{len(text) - MAX_OUTPUT} more characters; use head, tail, sed -n or grep"
    return result


def _run(shell: Shell, pipelines: Sequence[Pipeline]) -> tuple[int, str, list[str]]:
    """Returns the exit status of the last pipeline that ran, all output, and all error messages."""
    status, output = 0, ""
    problems: list[str] = []
    for pipeline in pipelines:
        if (pipeline.connector == "&&" and status) or (pipeline.connector == "||" and not status):
            continue
        data: str | None = None
        broken = 0
        for command in pipeline.commands:
            status, message = 0, ""
            try:
                shell.charge(len(data or ""))
                data = _simple(shell, command, data)
            except Failed as failed:
                status, message, data = failed.status, failed.message, _redirected(shell, command, failed.output)
            if message:
                broken = status
            if message and not command.quiet:
                problems.append(message)
        # As with pipefail: what an earlier command could not read does not count as done. A grep that finds nothing is fine.
        status = broken or status
        output += data or ""
    return status, output, problems


def _simple(shell: Shell, command: Command, data: str | None) -> str:
    if command.source is not None:
        data = shell.text(command.source)
    if command.here is not None:
        data = command.here
    words = [one for word in command.words for one in shell.expand(word)]
    if len(words) > 1000:
        raise Failed("the wildcards stand for too many paths")
    return _redirected(shell, command, bounded(_program(words).run(shell, words[1:], data)))


def _redirected(shell: Shell, command: Command, output: str) -> str:
    """Writes the output to the file that it is meant for, if any; returns what is left to show."""
    if command.target is None or command.target == "/dev/null":
        return output if command.target is None else ""
    try:
        before = shell.text(command.target) if command.append and _exists(shell, command.target) else ""
        shell.write(command.target, bounded(before + output))
    except Failed as failed:
        raise ToolError(failed.message) from None
    return ""


def _exists(shell: Shell, path: str) -> bool:
    return shell.locate(path) in shell.workspace.rows("file")


def _program(words: Sequence[str]) -> Program:
    found = PROGRAMS.get(words[0])
    if found is None:
        raise Failed(f"{plain(words[0])[:60]}: command not found; the commands are {', '.join(PROGRAMS)}", 127)
    return found


def _xargs(shell: Shell, words: list[str], stdin: str | None) -> str:
    if words[:1] == ["-n"] or words[:1] == ["-I"]:
        raise Failed("xargs: there are no options; it adds the words of its input to the command")
    taken = (stdin or "").split()
    if len(taken) > 300:
        raise Failed(f"xargs: {len(taken)} words are too many; at most 300 are accepted")
    inner = [*(words or ["echo"]), *taken]
    if inner[0] == "xargs":
        raise Failed("xargs: it cannot run itself")
    return _program(inner).run(shell, inner[1:], None)


def _help(shell: Shell, words: list[str], stdin: str | None) -> str:
    return joined([program.usage for name, program in PROGRAMS.items() if not words or name in words])


def _true(shell: Shell, words: list[str], stdin: str | None) -> str:
    return ""


PROGRAMS: dict[str, Program] = {
    **filecommands.PROGRAMS,
    **textcommands.PROGRAMS,
    **gitcommands.PROGRAMS,
    "xargs": Program(_xargs, "xargs COMMAND [WORD...] (adds the words of its input)"),
    "true": Program(_true, "true"),
    "help": Program(_help, "help [COMMAND...]"),
}


class ShellSeeder:
    """Fills files and repositories while a world is built. Plain files come from `world.files.write`."""

    def __init__(self, world: World) -> None:
        self.world = world

    def repository(
        self,
        folder: str,
        files: Mapping[str, str],
        *,
        author: Person,
        message: str,
        remotes: Sequence[tuple[str, str]] = (("origin", "git.office.example"),),
        protected: Sequence[str] = (),
        days_ago: int = 40,
        user: Person | None = None,
    ) -> Commit:
        """Makes a repository whose branch main holds one commit, which all remotes have; returns that commit.

        Args:
            folder: Folder of the working tree.
            files: First content by path.
            author: Who made the first commit.
            message: Its message.
            remotes: Names and hosts.
            protected: Branches that the remotes take no pushes to.
            days_ago: Age of the first commit.
            user: Who makes the agent's commits; the world's owner if not given.
        """
        workspace, tree = self.world.workspace, as_tree(files)
        commit = make_commit(folder, None, message, signature(author), self._stamp(days_ago), tree)
        workspace.put("commit", commit)
        workspace.put(
            "repo",
            Repo(
                id=folder,
                user=signature(user or self.world.me),
                branch="main",
                branches=(("main", commit.id),),
                index=tree,
                remotes=tuple(remotes),
                protected=tuple(protected),
            ),
        )
        self._lay_out(folder, {}, files, commit.date)
        for name, _ in remotes:
            self.pushed(folder, name, "main")
        return commit

    def commit(
        self,
        folder: str,
        changes: Mapping[str, str | None],
        *,
        author: Person,
        message: str,
        branch: str = "main",
        days_ago: int = 5,
    ) -> Commit:
        """Adds a commit to a local branch, which is made from main if it does not exist; returns the commit.

        Args:
            folder: The repository.
            changes: New contents by path; None takes a file out.
            author: Who made it.
            message: Its message.
            branch: Where it goes. If it is checked out, the working tree follows.
            days_ago: Its age; commits are not sorted by it.
        """
        workspace = self.world.workspace
        repo: Repo = workspace.get("repo", folder)
        branches = dict(repo.branches)
        parent: Commit = workspace.get("commit", branches.get(branch, branches["main"]))
        files = {**dict(parent.tree), **changes}
        tree = as_tree({path: text for path, text in files.items() if text is not None})
        commit = make_commit(folder, parent.id, message, signature(author), self._stamp(days_ago), tree)
        workspace.put("commit", commit)
        current = branch == repo.branch
        branches[branch] = commit.id
        index = tree if current else repo.index
        workspace.put("repo", msgspec.structs.replace(repo, branches=tuple(branches.items()), index=index))
        if current:
            self._lay_out(folder, dict(parent.tree), dict(tree), commit.date)
        return commit

    def check_out(self, folder: str, branch: str) -> None:
        """Makes a local branch the one that is checked out, with its files in the working tree."""
        workspace = self.world.workspace
        repo: Repo = workspace.get("repo", folder)
        before, after = dict(repo.index), workspace.get("commit", dict(repo.branches)[branch])
        workspace.put("repo", msgspec.structs.replace(repo, branch=branch, index=after.tree))
        self._lay_out(folder, before, dict(after.tree), after.date)

    def pushed(self, folder: str, remote: str = "origin", branch: str = "main", commit: Commit | None = None) -> None:
        """Lets a remote's branch stand where the local one does, or at a given commit."""
        workspace = self.world.workspace
        repo: Repo = workspace.get("repo", folder)
        head = commit.id if commit else dict(repo.branches)[branch]
        name = f"push-{len(workspace.rows('push')) + 1}"
        host = dict(repo.remotes)[remote]
        workspace.put("push", Push(id=name, repo=folder, remote=remote, host=host, branch=branch, head=head, commits=(), text=()))

    def remote_heads(self, folder: str) -> dict[str, str]:
        """Returns where the branches of the remotes stand, by names such as origin/main."""
        return remote_heads(self.world.workspace, self.world.workspace.get("repo", folder))

    def _lay_out(self, folder: str, before: Mapping[str, str], after: Mapping[str, str], stamp: str) -> None:
        workspace = self.world.workspace
        for path in [path for path in before if path not in after]:
            workspace.remove("file", f"{folder}/{path}")
        for path, text in after.items():
            if before.get(path) != text:
                workspace.put("file", File(id=f"{folder}/{path}", content=text, modified=stamp))

    def _stamp(self, days_ago: int) -> str:
        return self.world.moment(-days_ago).isoformat(" ", "minutes")


def signature(person: Person) -> str:
    """Returns an author as commits name them."""
    return f"{person.name} <{person.email}>"


APP = App("shell", (run_command,), ShellSeeder)
