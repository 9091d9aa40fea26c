"""The commands of git that look: status, diff, log, show, ls-files, remote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ec2_env.errors import ToolError
from ec2_env.workspace import repo as store
from ec2_env.workspace.commandline import Failed, Options, Shell, joined, options
from ec2_env.workspace.linediff import edits, lines_of, unified
from ec2_env.workspace.repo import Commit, Repo


def inside_of(shell: Shell, repo: Repo, path: str) -> str:
    """Returns a path relative to the repository; "" is all of it."""
    full = shell.locate(path)
    if full != repo.id and not full.startswith(f"{repo.id}/"):
        raise Failed(f"git: {path[:120]!r} is outside of the repository {repo.id}")
    return full.removeprefix(repo.id).removeprefix("/")


def is_below(path: str, folders: Iterable[str]) -> bool:
    return any(not folder or path == folder or path.startswith(f"{folder}/") for folder in folders)


def revisions_and_paths(shell: Shell, repo: Repo, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns revisions and paths: what follows `--`, and before it what is no revision but a path."""
    if "--" in words:
        at = list(words).index("--")
        return list(words[:at]), [inside_of(shell, repo, word) for word in words[at + 1 :]]
    revisions: list[str] = []
    paths: list[str] = []
    for word in words:
        try:
            for part in word.split(".."):
                store.resolve(shell.workspace, repo, part or "HEAD")
            revisions.append(word)
        except ToolError:
            path = inside_of(shell, repo, word)
            known = {**dict(repo.index), **store.working_tree(shell.workspace, repo)}
            if not any(is_below(one, [path]) for one in known):
                raise
            paths.append(path)
    return revisions, paths


def status(shell: Shell, repo: Repo, words: list[str]) -> str:
    given = options("git status", words, flags="sb", long={"short": "s", "porcelain": "s", "branch": "b"})
    files = store.working_tree(shell.workspace, repo)
    staged = changes(dict(store.head_of(shell.workspace, repo).tree), dict(repo.index))
    tracked = dict(repo.index)
    unstaged = changes(tracked, {path: text for path, text in files.items() if path in tracked})
    new = store.untracked(repo, files)
    if "s" in given.flags:
        rows = {**{path: f"{kind} " for path, kind in staged.items()}}
        for path, kind in unstaged.items():
            rows[path] = f"{rows.get(path, '  ')[0]}{kind}"
        lines = [f"{rows[path]} {path}" for path in sorted(rows)] + [f"?? {path}" for path in new]
        return joined([*([f"## {repo.branch}"] if "b" in given.flags else []), *lines])
    names = {"A": "new file", "M": "modified", "D": "deleted"}
    lines = [f"On branch {repo.branch}", *_ahead(shell, repo)]
    for title, part in (("Changes to be committed:", staged), ("Changes not staged for commit:", unstaged)):
        lines += [title, *(f"  {names[kind]}: {path}" for path, kind in sorted(part.items()))] if part else []
    lines += ["Untracked files:", *(f"  {path}" for path in new)] if new else []
    if not (staged or unstaged or new):
        lines.append("nothing to commit, working tree clean")
    return joined(lines)


def _ahead(shell: Shell, repo: Repo) -> list[str]:
    heads = store.remote_heads(shell.workspace, repo)
    names = [f"{remote}/{repo.branch}" for remote, _ in repo.remotes if f"{remote}/{repo.branch}" in heads]
    if not names:
        return []
    ours = [commit.id for commit in store.history(shell.workspace, dict(repo.branches)[repo.branch])]
    theirs = [commit.id for commit in store.history(shell.workspace, heads[names[0]])]
    ahead, behind = len(set(ours) - set(theirs)), len(set(theirs) - set(ours))
    if not ahead and not behind:
        return [f"Your branch is up to date with '{names[0]}'."]
    return [f"Your branch is ahead of '{names[0]}' by {ahead} and behind it by {behind} commits."]


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Returns A, M or D by path."""
    found = {path: "D" for path in before if path not in after}
    for path, text in after.items():
        if before.get(path) != text:
            found[path] = "M" if path in before else "A"
    return dict(sorted(found.items()))


def diff(shell: Shell, repo: Repo, words: list[str]) -> str:
    given = options("git diff", [word for word in words if word != "--"], flags="", long=SHOWN | {"staged": "S", "cached": "S"})
    revisions, paths = revisions_and_paths(shell, repo, _kept(words, given))
    if len(revisions) == 1 and ".." in revisions[0]:
        first, _, second = revisions[0].replace("...", "..").partition("..")
        revisions = [first or "HEAD", second or "HEAD"]
    trees = [dict(store.resolve(shell.workspace, repo, name).tree) for name in revisions]
    index = dict(repo.index)
    if len(trees) > 2:
        raise Failed("git diff: give at most two revisions")
    if "S" in given.flags:
        before, after = (trees or [dict(store.head_of(shell.workspace, repo).tree)])[0], index
    elif len(trees) == 2:
        before, after = trees
    else:
        files = store.working_tree(shell.workspace, repo)
        before = trees[0] if trees else index
        after = {path: text for path, text in files.items() if path in index or path in before}
    return patch(before, after, paths, given.flags)


SHOWN = {"stat": "s", "name-only": "o", "name-status": "t"}


def _kept(words: Sequence[str], given: Options) -> list[str]:
    """Returns the words that are no options, with `--` where it was."""
    if "--" not in words:
        return given.rest
    after = len(words) - list(words).index("--") - 1
    return [*given.rest[: len(given.rest) - after], "--", *given.rest[len(given.rest) - after :]]


def patch(before: Mapping[str, str], after: Mapping[str, str], paths: Sequence[str], flags: frozenset[str]) -> str:
    changed = {path: kind for path, kind in changes(before, after).items() if not paths or is_below(path, paths)}
    if "o" in flags:
        return joined(list(changed))
    if "t" in flags:
        return joined([f"{kind}\t{path}" for path, kind in changed.items()])
    lines: list[str] = []
    for path in changed:
        old, new = before.get(path, ""), after.get(path, "")
        if "s" in flags:
            parts = edits(lines_of(old), lines_of(new))
            lines.append(f" {path} | +{sum(e.new_stop - e.new_start for e in parts)} -{sum(e.stop - e.start for e in parts)}")
        else:
            names = [f"a/{path}" if path in before else "/dev/null", f"b/{path}" if path in after else "/dev/null"]
            lines += [f"diff --git a/{path} b/{path}", f"--- {names[0]}", f"+++ {names[1]}", *unified(old, new)]
    return joined(lines)


def log(shell: Shell, repo: Repo, words: list[str]) -> str:
    given = options(
        "git log",
        [w for w in words if w != "--"],
        flags="p",
        valued="n",
        long={"oneline": "1", "all": "a", "patch": "p", **SHOWN},
    )
    revisions, paths = revisions_and_paths(shell, repo, _kept(words, given))
    hidden: set[str] = set()
    heads = [store.head_of(shell.workspace, repo).id]
    if "a" in given.flags:
        heads = [*dict(repo.branches).values(), *store.remote_heads(shell.workspace, repo).values()]
    elif revisions:
        first, dots, second = revisions[0].replace("...", "..").partition("..")
        if dots:
            base = store.resolve(shell.workspace, repo, first or "HEAD").id
            hidden = {commit.id for commit in store.history(shell.workspace, base)}
        heads = [store.resolve(shell.workspace, repo, (second or "HEAD") if dots else first).id]
    found = {commit.id: commit for head in heads for commit in store.history(shell.workspace, head) if commit.id not in hidden}
    commits = sorted(found.values(), key=lambda commit: commit.date, reverse=True) if "a" in given.flags else list(found.values())
    if paths:
        commits = [c for c in commits if any(is_below(path, paths) for path in _changed_by(shell, c))]
    shown = [_entry(shell, repo, commit, given.flags).rstrip("\n") for commit in commits[: given.number("n", 60)]]
    return ("\n" if "1" in given.flags else "\n\n").join(shown) + ("\n" if shown else "")


def _changed_by(shell: Shell, commit: Commit) -> dict[str, str]:
    return changes(store.parent_tree(shell.workspace, commit), dict(commit.tree))


def _entry(shell: Shell, repo: Repo, commit: Commit, flags: frozenset[str]) -> str:
    heads = {
        **{f"HEAD -> {n}" if n == repo.branch else n: h for n, h in repo.branches},
        **store.remote_heads(shell.workspace, repo),
    }
    names = ", ".join(name for name, head in heads.items() if head == commit.id)
    mark = f" ({names})" if names else ""
    subject, _, rest = commit.message.partition("\n")
    if "1" in flags:
        text = f"{commit.id}{mark} {subject}"
    else:
        body = "".join(f"\n    {line}" for line in (subject, *lines_of(rest)))
        text = f"commit {commit.id}{mark}\nAuthor: {commit.author}\nDate:   {commit.date}\n{body}\n"
    if flags.isdisjoint("psot"):
        return text
    return f"{text}\n{patch(store.parent_tree(shell.workspace, commit), dict(commit.tree), (), flags)}"


def show(shell: Shell, repo: Repo, words: list[str]) -> str:
    given = options("git show", words, flags="q", long={**SHOWN, "oneline": "1", "quiet": "q"})
    output: list[str] = []
    for name in given.rest or ["HEAD"]:
        revision, colon, path = name.partition(":")
        commit = store.resolve(shell.workspace, repo, revision or "HEAD")
        if colon:
            found = dict(commit.tree).get(path.removeprefix("./"))
            if found is None:
                raise Failed(
                    f"git show: {path[:120]!r} is not in {commit.id}; it has {', '.join(p for p, _ in commit.tree[:40])}", 128
                )
            output.append(found)
        else:
            output.append(_entry(shell, repo, commit, given.flags | (frozenset() if "q" in given.flags else frozenset("p"))))
    return "\n".join(output)


def ls_files(shell: Shell, repo: Repo, words: list[str]) -> str:
    paths = [inside_of(shell, repo, path) for path in options("git ls-files", words).rest]
    return joined([path for path, _ in repo.index if not paths or is_below(path, paths)])


def remote(shell: Shell, repo: Repo, words: list[str]) -> str:
    given = options("git remote", words, flags="v")
    if given.rest:
        raise Failed("git remote: the remotes cannot be changed here; -v shows their hosts")
    return joined([f"{name}\t{host}/{repo.id}.git" if "v" in given.flags else name for name, host in repo.remotes])
