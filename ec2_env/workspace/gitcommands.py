"""The commands of git: which there are, and those that change something."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ec2_env.errors import ToolError
from ec2_env.workspace import repo as store
from ec2_env.workspace.commandline import Failed, Program, Shell, bounded, joined, options
from ec2_env.workspace.gitviews import changes, diff, inside_of, is_below, log, ls_files, patch, remote, show, status
from ec2_env.workspace.linediff import transplant
from ec2_env.workspace.repo import Push, Repo

Run = Callable[[Shell, Repo, list[str]], str]


def git(shell: Shell, words: list[str], stdin: str | None) -> str:
    words = list(words)
    folder = shell.folder
    try:
        while words[:1] == ["-C"] and len(words) > 1:
            shell.folder = shell.locate(words[1])
            words = words[2:]
        words = [word for word in words if word != "--no-pager"]
        name = words[0] if words else ""
        if name not in COMMANDS:
            raise Failed(f"git: there is no command {name[:40]!r}; the commands are {', '.join(COMMANDS)}")
        return bounded(COMMANDS[name](shell, _repository(shell), words[1:]))
    except ToolError as error:
        raise Failed(f"git {words[0]}: {error}", 128) from None
    finally:
        shell.folder = folder


def _repository(shell: Shell) -> Repo:
    rows: Mapping[str, Repo] = shell.workspace.rows("repo")
    for name, row in rows.items():
        if shell.folder == name or shell.folder.startswith(f"{name}/"):
            return row
    known = ", ".join(sorted(rows)) or "none"
    raise Failed(
        f"git: this folder is in no repository; the repositories are: {known}. Use `cd FOLDER && git ...` or `git -C FOLDER ...`",
        128,
    )


def add(shell: Shell, repo: Repo, words: list[str]) -> str:
    given = options("git add", words, flags="Aufp", long={"all": "A", "update": "u", "force": "f"})
    if "p" in given.flags:
        raise Failed("git add: -p needs a terminal; name the files")
    paths = [inside_of(shell, repo, path) for path in given.rest] or ([""] if given.flags & {"A", "u"} else [])
    if not paths:
        raise Failed("git add: give paths, or -A for all changes")
    files, index = store.working_tree(shell.workspace, repo), dict(repo.index)
    fresh = store.untracked(repo, files)
    takes = [path for path in files if path in index or ("u" not in given.flags and (path in fresh or "f" in given.flags))]
    for path in paths:
        if not any(is_below(one, [path]) for one in (*takes, *index)):
            hint = "it is named in .gitignore" if any(is_below(one, [path]) for one in files) else "there is no such file"
            raise Failed(f"git add: {path or '.'}: {hint}", 128)
    kept = {path: text for path, text in index.items() if path in files or not is_below(path, paths)}
    kept.update({path: files[path] for path in takes if is_below(path, paths)})
    shell.workspace.put("repo", msgspec.structs.replace(repo, index=store.as_tree(kept)))
    return ""


def remove(shell: Shell, repo: Repo, words: list[str]) -> str:
    given = options("git rm", words, flags="rfq", long={"cached": "c"})
    paths, index = [inside_of(shell, repo, path) for path in given.rest], dict(repo.index)
    gone = [path for path in index if is_below(path, paths)]
    if not gone:
        raise Failed("git rm: no tracked file has this path", 128)
    if "c" not in given.flags:
        store.set_files(shell.workspace, repo, {path: index[path] for path in gone}, {})
    kept = store.as_tree({path: text for path, text in index.items() if path not in gone})
    shell.workspace.put("repo", msgspec.structs.replace(repo, index=kept))
    return joined([f"rm '{path}'" for path in gone])


def restore(shell: Shell, repo: Repo, words: list[str]) -> str:
    given = options("git restore", words, flags="SW", valued="s", long={"staged": "S", "worktree": "W", "source": "s"})
    source = given.values.get("s") or ("HEAD" if "S" in given.flags else "")
    tree = dict(store.resolve(shell.workspace, repo, source).tree) if source else dict(repo.index)
    paths = [inside_of(shell, repo, path) for path in given.rest]
    _take(shell, repo, tree, paths, index="S" in given.flags, files="S" not in given.flags or "W" in given.flags)
    return ""


def _take(shell: Shell, repo: Repo, tree: Mapping[str, str], paths: Sequence[str], *, index: bool, files: bool) -> None:
    """Makes the index and the files at some paths what a tree has there."""
    tracked = {**dict(repo.index), **tree}
    chosen = [path for path in tracked if is_below(path, paths)]
    if not chosen:
        raise Failed("git: no file that is tracked has this path; give paths that `git ls-files` shows", 128)
    if files:
        goal = {path: tree[path] for path in chosen if path in tree}
        store.set_files(shell.workspace, repo, {path: tracked[path] for path in chosen}, goal)
    if index:
        kept = {path: text for path, text in repo.index if path not in chosen}
        kept.update({path: tree[path] for path in chosen if path in tree})
        shell.workspace.put("repo", msgspec.structs.replace(repo, index=store.as_tree(kept)))


def commit(shell: Shell, repo: Repo, words: list[str]) -> str:
    long = {"message": "m", "all": "a", "quiet": "q", "amend": "A", "no-edit": "N"}
    given = options("git commit", words, flags="aq", valued="m", long=long)
    if "A" in given.flags:
        raise Failed("git commit: --amend is switched off here; make another commit, or start a branch from an earlier one")
    message = given.values.get("m", "")
    if not message.strip() or given.rest:
        raise Failed('git commit: give a message with -m "..." and stage the files with git add (or use -a)')
    index = dict(repo.index)
    if "a" in given.flags:
        files = store.working_tree(shell.workspace, repo)
        index = {path: files[path] for path in index if path in files}
    tree, before = store.as_tree(index), store.head_of(shell.workspace, repo).tree
    if tree == before:
        raise Failed("git commit: nothing is staged; use git add, or commit -a for files that are tracked")
    made = store.record(shell.workspace, repo, bounded(message), tree)
    return f"[{repo.branch} {made.id}] {message.splitlines()[0]}\n" + patch(dict(before), index, (), frozenset("s"))


def branch(shell: Shell, repo: Repo, words: list[str]) -> str:
    given = options("git branch", words, flags="avrdD", long={"all": "a", "show-current": "c", "delete": "d"})
    branches, heads = dict(repo.branches), store.remote_heads(shell.workspace, repo)
    if "c" in given.flags:
        return f"{repo.branch}\n"
    if given.flags & {"d", "D"}:
        for name in given.rest:
            if name == repo.branch or name not in branches:
                raise Failed(f"git branch: {name[:80]!r} is {'checked out' if name == repo.branch else 'no local branch'}")
            del branches[name]
        shell.workspace.put("repo", msgspec.structs.replace(repo, branches=tuple(branches.items())))
        return ""
    if given.rest:
        _new_branch(shell, repo, given.rest[0], given.rest[1] if len(given.rest) > 1 else "HEAD")
        return ""
    lines = [] if "r" in given.flags else [f"{'*' if name == repo.branch else ' '} {name}" for name in sorted(branches)]
    lines += [f"  remotes/{name}" for name in sorted(heads)] if given.flags & {"a", "r"} else []
    return joined(lines)


def _new_branch(shell: Shell, repo: Repo, name: str, start: str) -> Repo:
    if name in dict(repo.branches):
        raise Failed(f"git branch: {name[:80]!r} exists already")
    if (
        not name
        or len(name) > 80
        or name.startswith(("-", "/"))
        or any(c.isspace() or c in "~^:?*[\\" or ord(c) < 32 for c in name)
    ):
        raise Failed(f"git branch: {name[:80]!r} is not a usable name; use letters, digits, - and /")
    head = store.resolve(shell.workspace, repo, start).id
    changed = msgspec.structs.replace(repo, branches=(*repo.branches, (name, head)))
    shell.workspace.put("repo", changed)
    return changed


def checkout(shell: Shell, repo: Repo, words: list[str]) -> str:
    if "--" in words:
        at = words.index("--")
        tree = dict(store.resolve(shell.workspace, repo, words[0]).tree) if at else dict(repo.index)
        _take(shell, repo, tree, [inside_of(shell, repo, path) for path in words[at + 1 :]], index=bool(at), files=True)
        return ""
    given = options("git checkout", words, flags="bqc", long={"create": "b"})
    if given.flags & {"b", "c"}:
        if not given.rest:
            raise Failed("git checkout: give the new branch a name")
        name, start = given.rest[0], given.rest[1] if len(given.rest) > 1 else "HEAD"
        repo = _new_branch(shell, repo, name, start)
        return _switch(shell, repo, name)
    if len(given.rest) != 1:
        raise Failed("git checkout: give a branch, -b NAME [START], or -- PATHS")
    name = given.rest[0]
    if name not in dict(repo.branches):
        heads = [head for head in store.remote_heads(shell.workspace, repo) if head.partition("/")[2] == name]
        if not heads:
            known = ", ".join(sorted({*dict(repo.branches), *store.remote_heads(shell.workspace, repo)}))
            raise Failed(
                f"git checkout: {name[:80]!r} is no branch; the branches are {known}; for a file write git checkout -- PATH"
            )
        repo = _new_branch(shell, repo, name, heads[0])
    return _switch(shell, repo, name)


def _switch(shell: Shell, repo: Repo, name: str) -> str:
    before, after = store.head_of(shell.workspace, repo), shell.workspace.get("commit", dict(repo.branches)[name])
    if before.tree != after.tree:
        if not store.is_clean(shell.workspace, repo):
            raise Failed("git checkout: there are changes that are not committed; commit or restore them first")
        files, old = store.working_tree(shell.workspace, repo), dict(before.tree)
        lost = [path for path, text in after.tree if path in files and path not in old and files[path] != text]
        if lost:
            raise Failed(f"git checkout: it would overwrite {lost[0]}, which is not tracked")
        store.set_files(shell.workspace, repo, old, dict(after.tree))
    index = repo.index if before.tree == after.tree else after.tree
    shell.workspace.put("repo", msgspec.structs.replace(repo, branch=name, index=index))
    return f"Switched to branch '{name}'\n"


def revert(shell: Shell, repo: Repo, words: list[str]) -> str:
    given = options("git revert", words, long={"no-edit": "N"})
    output = ""
    for name in given.rest or [""]:
        commit = store.resolve(shell.workspace, repo, name)
        before, after = dict(commit.tree), store.parent_tree(shell.workspace, commit)
        subject = commit.message.splitlines()[0]
        output += _apply(shell, repo.id, before, after, f'Revert "{subject}"\n\nThis reverts commit {commit.id}.', "git revert")
    return output


def cherry_pick(shell: Shell, repo: Repo, words: list[str]) -> str:
    given = options("git cherry-pick", words, flags="x")
    output = ""
    for name in given.rest or [""]:
        first, dots, last = name.partition("..")
        commits = [store.resolve(shell.workspace, repo, last if dots else first)]
        if dots:
            base = store.resolve(shell.workspace, repo, first).id
            known = {commit.id for commit in store.history(shell.workspace, base)}
            commits = [c for c in reversed(store.history(shell.workspace, commits[0].id)) if c.id not in known][:60]
        for commit in commits:
            before, after = store.parent_tree(shell.workspace, commit), dict(commit.tree)
            note = f"\n\n(cherry picked from commit {commit.id})" if "x" in given.flags else ""
            output += _apply(shell, repo.id, before, after, commit.message + note, "git cherry-pick")
    return output


def _apply(shell: Shell, repo_id: str, before: dict[str, str], after: dict[str, str], message: str, name: str) -> str:
    """Commits the change from one tree to another on top of what is checked out."""
    repo: Repo = shell.workspace.get("repo", repo_id)
    if not store.is_clean(shell.workspace, repo):
        raise Failed(f"{name}: there are changes that are not committed; commit or restore them first")
    current = dict(repo.index)
    goal = dict(current)
    for path, kind in changes(before, after).items():
        if kind == "D" and current.get(path) == before[path]:
            del goal[path]
        elif kind == "A" and path not in current:
            goal[path] = after[path]
        elif kind == "M" and path in current and (text := transplant(before[path], after[path], current[path])) is not None:
            goal[path] = text
        elif current.get(path) != after.get(path):
            raise Failed(f"{name}: CONFLICT in {path}: it differs from what the commit changed; edit it by hand and commit")
    if goal == current:
        raise Failed(f"{name}: the change is in {repo.branch} already")
    store.set_files(shell.workspace, repo, current, goal)
    made = store.record(shell.workspace, repo, message, store.as_tree(goal))
    return f"[{repo.branch} {made.id}] {message.splitlines()[0]}\n" + patch(current, goal, (), frozenset("s"))


def push(shell: Shell, repo: Repo, words: list[str]) -> str:
    given = options(
        "git push", words, flags="uf", long={"set-upstream": "u", "force": "f", "force-with-lease": "f", "all": "A", "tags": "A"}
    )
    if given.flags & {"f", "A"}:
        raise Failed("git push: the remote takes neither forced pushes nor all branches at once; push one branch by its name")
    if not repo.remotes:
        raise Failed("git push: this repository has no remote")
    hosts = dict(repo.remotes)
    remote = given.rest[0] if given.rest else repo.remotes[0][0]
    if remote not in hosts:
        raise Failed(f"git push: {remote[:80]!r} is no remote; the remotes are {', '.join(hosts)}", 128)
    output = ""
    for spec in given.rest[1:] or [repo.branch]:
        local, colon, name = spec.partition(":")
        name = name if colon else repo.branch if local == "HEAD" else local
        if not name or (local != "HEAD" and local not in dict(repo.branches)):
            raise Failed(f"git push: {local[:80]!r} is no local branch; the branches are {', '.join(dict(repo.branches))}")
        output += _push_one(shell, repo, remote, hosts[remote], repo.branch if local == "HEAD" else local, name)
    return output


def _push_one(shell: Shell, repo: Repo, remote: str, host: str, local: str, name: str) -> str:
    workspace, head = shell.workspace, dict(repo.branches)[local]
    there = store.remote_heads(workspace, repo).get(f"{remote}/{name}")
    if there == head:
        return "Everything up-to-date\n"
    if name in repo.protected:
        raise Failed(f"git push: {host} rejected it: the branch {name} is protected; push another branch and ask for a review")
    if there is not None and there not in {commit.id for commit in store.history(workspace, head)}:
        raise Failed(f"git push: {host} rejected it (non-fast-forward): {remote}/{name} has commits that {local} lacks")
    commits = store.outgoing(workspace, repo, head, remote)
    workspace.put(
        "push",
        Push(
            id=workspace.new_id("push"),
            repo=repo.id,
            remote=remote,
            host=host,
            branch=name,
            head=head,
            commits=tuple(commit.id for commit in commits),
            text=store.push_text(workspace, commits),
        ),
    )
    return f"To {host}/{repo.id}.git\n   {there or '[new branch]'}..{head}  {local} -> {name} ({len(commits)} commits)\n"


def fetch(shell: Shell, repo: Repo, words: list[str]) -> str:
    """What the remotes have is always known here, so there is nothing to fetch."""
    options("git fetch", words, flags="pq", long={"all": "a", "prune": "p"})
    return ""


COMMANDS: dict[str, Run] = {
    "status": status,
    "diff": diff,
    "log": log,
    "show": show,
    "ls-files": ls_files,
    "remote": remote,
    "fetch": fetch,
    "add": add,
    "rm": remove,
    "restore": restore,
    "commit": commit,
    "branch": branch,
    "checkout": checkout,
    "switch": checkout,
    "revert": revert,
    "cherry-pick": cherry_pick,
    "push": push,
}
PROGRAMS: dict[str, Program] = {"git": Program(git, f"git [-C FOLDER] {'|'.join(COMMANDS)} ...")}
