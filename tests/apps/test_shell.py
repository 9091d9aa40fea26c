"""The shell: what commands do to files and repositories, and that no line raises, hangs or reaches out of the workspace."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ec2_env.actions import ToolCall
from ec2_env.task import toolbox
from ec2_env.workspace.linediff import edits, transplant
from ec2_env.workspace.patterns import Pattern, PatternError, wildcard
from ec2_env.workspace.repo import remote_heads, working_tree
from ec2_env.workspace.store import Workspace
from ec2_env.workspace.tools import Result
from ec2_env.workspace.world import Language, World

SETTINGS = "".join(f"line {number}\n" for number in range(1, 21))
LOG = "10:00 ERROR disk full\n10:01 INFO ok\n10:02 error again\n10:03 INFO ok\n"


def office(language: Language = "en") -> Workspace:
    world = World("test/1", language, "train")
    author = world.person()
    first = {"README.md": "# App\n", "conf/app.yml": SETTINGS, ".gitignore": "*.tmp\n"}
    world.shell.repository("app", first, author=author, message="Start", protected=("stable",))
    world.shell.commit("app", {"src/main.py": "print('hi')\n"}, author=author, message="Say hi")
    world.shell.commit(
        "app", {"conf/app.yml": SETTINGS.replace("line 2\n", "line two\n")}, author=author, message="Two", branch="x"
    )
    world.files.write("logs/a.log", LOG)
    world.files.write("logs/b.log", "3 b\n10 c\n2 a\n3 b\n")
    world.workspace.begin()
    return world.workspace


@pytest.fixture
def home() -> Workspace:
    return office()


def run(workspace: Workspace, line: str) -> Result:
    return toolbox(("shell",)).run(workspace, ToolCall("run_command", {"command": line}))


def output(workspace: Workspace, line: str) -> str:
    result = run(workspace, line)
    assert result.ok, result.text
    return str(result.value["output"])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ls", "app/\nlogs/\n"),
        ("ls -a app", ".gitignore\nREADME.md\nconf/\nsrc/\n"),
        ("ls logs/*.log", "logs/a.log\nlogs/b.log\n"),
        ("cd app && ls src", "main.py\n"),
        ("find . -name '*.py'", "app/src/main.py\n"),
        ("find app -type d", "app\napp/conf\napp/src\n"),
        ("head -n 1 logs/a.log", "10:00 ERROR disk full\n"),
        ("tail -1 logs/b.log", "3 b\n"),
        ("grep -n -i error logs/a.log", "1:10:00 ERROR disk full\n3:10:02 error again\n"),
        ("grep -n -A 1 ERROR logs/a.log", "1:10:00 ERROR disk full\n2-10:01 INFO ok\n"),
        (
            "grep -h -C 0 -e again -e ERROR logs/*.log; grep -q ok logs/a.log && echo yes",
            "10:00 ERROR disk full\n10:02 error again\nyes\n",
        ),
        ("grep -rc INFO logs", "logs/a.log:2\nlogs/b.log:0\n"),
        ("grep -v INFO logs/a.log | wc -l", "2\n"),
        ("grep -l '^10:0[0-9] ERR' logs/*", "logs/a.log\n"),
        ("grep -E 'disk|again' logs/a.log | cut -d ' ' -f 1", "10:00\n10:02\n"),
        ("sort -n logs/b.log", "2 a\n3 b\n3 b\n10 c\n"),
        ("sort -u logs/b.log | head -2", "10 c\n2 a\n"),
        ("sort -k 2 -r logs/b.log | uniq -c", "      1 10 c\n      2 3 b\n      1 2 a\n"),
        ("wc -c logs/a.log logs/b.log", "68 logs/a.log\n17 logs/b.log\n85 total\n"),
        ("sed -n '2,3p' logs/b.log", "10 c\n2 a\n"),
        ("cut -c 1-2 logs/b.log | head -2", "3 \n10\n"),
        ("cat nowhere || echo none", "none\nnowhere: no such file\n"),
        ("echo 'a  b' \"c\" d\\ e", "a  b c d e\n"),
        ("printf '%s=%s\\n' a 1 b 2", "a=1\nb=2\n"),
        ("find logs -name '*.log' | xargs grep -h again", "10:02 error again\n"),
        ("pwd; cd logs; pwd", ".\nlogs\n"),
    ],
)
def test_commands_that_read_show_what_is_there_and_change_nothing(home: Workspace, line: str, expected: str) -> None:
    assert output(home, line) == expected
    assert home.journal == ()


def test_files_are_written_appended_copied_moved_and_removed(home: Workspace) -> None:
    output(home, "echo one > new/a.txt && echo two >> new/a.txt && cp new/a.txt new/b.txt && mv new/b.txt c.txt")
    assert output(home, "cat c.txt") == "one\ntwo\n"
    output(home, "cat > d.txt <<'END'\ncosts $5\n  indented\nEND")
    assert output(home, "cat d.txt") == "costs $5\n  indented\n"
    output(home, "sed -i 's/two/2/' new/a.txt && rm -r logs")
    assert output(home, "cat new/a.txt; ls") == "one\n2\napp/\nc.txt\nd.txt\nnew/\n"


def test_tee_writes_what_it_passes_on(home: Workspace) -> None:
    assert output(home, "echo a | tee t.txt | wc -l; echo b | tee -a t.txt") == "1\nb\n"
    assert output(home, "cat t.txt") == "a\nb\n"


def test_a_line_that_fails_changes_nothing_and_says_so(home: Workspace) -> None:
    result = run(home, "echo x > y.txt && cat nowhere")
    assert not result.ok
    assert "nowhere: no such file" in result.value["error"]
    assert home.diff() == ()


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("frobnicate now", "the commands are ls, find"),
        ("ls -Z", "the options are -l"),
        ("git frobnicate", "the commands are status"),
        ("git status", "the repositories are: app"),
        ("cd app && git checkout nowhere", "the branches are main"),
        ("cd app && git push backup", "the remotes are origin"),
        ("cd app && git push --force", "neither forced pushes"),
        ("cd app && git commit -m x", "nothing is staged"),
        ("cat /etc/passwd", "leads out of the workspace"),
        ("cat ../../x", "leads out of the workspace"),
        ("echo x > /tmp/y", "leads out of the workspace"),
        ("echo $HOME", "not supported"),
        ("echo `id`", "not supported"),
        ("echo $(id)", "not supported"),
        ("sleep 5 &", "not supported"),
        ("echo 'open", "never closed"),
        ("ls |", "another command is expected"),
        ("", "empty"),
        ("grep '[' logs/a.log", "never closed"),
        ("sed 's/[a-z]*/x/' logs/a.log", "plain text"),
        ("head -n x logs/a.log", "whole number"),
    ],
)
def test_what_is_not_there_is_refused_with_what_there_is(home: Workspace, line: str, hint: str) -> None:
    result = run(home, line)
    assert not result.ok
    assert hint in result.value["error"]
    assert home.diff() == ()


# -- git


def test_a_change_is_shown_staged_committed_and_pushed(home: Workspace) -> None:
    output(home, "cd app && echo new > n.txt && echo '# More' >> README.md && echo x > y.tmp")
    assert output(home, "git -C app status -s") == " M README.md\n?? n.txt\n"
    assert "+# More" in output(home, "git -C app diff")
    output(home, "cd app && git add README.md")
    assert output(home, "git -C app status -s") == "M  README.md\n?? n.txt\n"
    assert output(home, "git -C app diff --name-only; git -C app diff --staged --name-only") == "README.md\n"
    output(home, "cd app && git commit -m 'More text' && git push")
    push = next(change.after for change in home.diff() if change.table == "push")
    assert push.lasting
    assert push.reaches == ("host:git.office.example",)
    assert len(push.commits) == 2
    assert "# More" in push.text[-1]
    assert "line 1" not in push.text[-1]
    assert output(home, "git -C app log origin/main..HEAD --oneline") == ""
    assert output(home, "git -C app push") == "Everything up-to-date\n"


def test_branches_carry_their_own_files(home: Workspace) -> None:
    assert (
        output(home, "git -C app checkout x && git -C app ls-files")
        == "Switched to branch 'x'\n.gitignore\nREADME.md\nconf/app.yml\nsrc/main.py\n"
    )
    assert "line two" in output(home, "cat app/conf/app.yml")
    output(home, "git -C app switch main")
    assert "line two" not in output(home, "cat app/conf/app.yml")
    output(home, "cd app && echo dirt >> README.md")
    assert not run(home, "git -C app checkout x").ok
    output(home, "git -C app restore README.md && git -C app checkout -b y x")
    assert output(home, "git -C app branch") == "  main\n  x\n* y\n"


def test_a_commit_is_picked_where_it_fits_and_reverted(home: Workspace) -> None:
    output(home, "cd app && sed -i 's/line 18/line eighteen/' conf/app.yml && git commit -am Eighteen && git cherry-pick x")
    text = output(home, "cat app/conf/app.yml")
    assert "line two" in text
    assert "line eighteen" in text
    output(home, "git -C app revert --no-edit HEAD~1")
    assert "line 18\n" in output(home, "cat app/conf/app.yml")
    assert not run(home, "git -C app cherry-pick x").ok


def test_conflicts_and_refused_pushes_leave_everything_as_it_was(home: Workspace) -> None:
    output(home, "cd app && sed -i 's/line 2/line II/' conf/app.yml && git commit -am Roman")
    before = home.diff()
    assert "CONFLICT in conf/app.yml" in run(home, "git -C app cherry-pick x").value["error"]
    assert "protected" in run(home, "git -C app push origin main:stable").value["error"]
    output(home, "git -C app push origin main")
    assert "non-fast-forward" in run(home, "git -C app push origin x:main").value["error"]
    assert home.diff()[: len(before)] == before


def test_one_file_is_taken_from_an_earlier_commit(home: Workspace) -> None:
    output(home, "cd app && echo bad > README.md && git commit -am Bad && git checkout HEAD~1 -- README.md")
    assert output(home, "cat app/README.md; git -C app status -s") == "# App\nM  README.md\n"
    output(home, "cd app && git restore --staged README.md && git restore README.md")
    assert output(home, "cat app/README.md") == "bad\n"


def test_the_log_takes_ranges_paths_and_counts(home: Workspace) -> None:
    assert len(output(home, "cd app && git log --oneline").splitlines()) == 2
    assert len(output(home, "cd app && git log --oneline -n 1").splitlines()) == 1
    assert output(home, "cd app && git log --oneline main..x").split(" ", 2)[2] == "Two\n"
    assert "Say hi" in output(home, "cd app && git log --oneline -- src")
    assert "Start" not in output(home, "cd app && git log --oneline src/main.py")
    assert output(home, "cd app && git show HEAD~1:README.md") == "# App\n"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_seeder_lays_out_what_the_checked_out_branch_holds(language: Language) -> None:
    workspace = office(language)
    repo = workspace.get("repo", "app")
    assert working_tree(workspace, repo) == dict(repo.index)
    assert list(remote_heads(workspace, repo)) == ["origin/main"]
    assert output(workspace, "git -C app status").endswith("nothing to commit, working tree clean\n")


def test_long_output_is_cut_and_endless_growth_refused(home: Workspace) -> None:
    output(home, "printf '%s' " + "x" * 10_000 + " > big.txt")
    shown = run(home, "cat big.txt").value
    assert len(shown["output"]) == 6_000
    assert "4000 more" in shown["left_out"]
    refused = [not run(home, "cat big.txt big.txt > b2.txt && mv b2.txt big.txt").ok for _ in range(8)]
    assert refused[-1]
    assert not run(home, "cat big.txt big.txt big.txt big.txt big.txt big.txt | " + "cat | " * 30 + "wc").ok


# -- parts


@pytest.mark.parametrize(
    ("pattern", "extended", "line", "found"),
    [
        ("a.c", False, "xabcx", True),
        ("a+", False, "aa", False),
        ("a\\+$", False, "aa", True),
        ("^(ab|cd){2}$", True, "abcd", True),
        ("^(ab|cd){2}$", True, "ab", False),
        ("[^0-9]x", True, "1x", False),
        ("\\d\\d:[[:digit:]]+", True, "at 10:07", True),
        ("^$", True, "", True),
        ("^$", True, "x", False),
        ("x*$", True, "abc", True),
        ("错误|失败", True, "连接失败", True),
        ("\\[a\\]", False, "[a]", True),
    ],
)
def test_patterns_find_what_grep_finds(pattern: str, extended: bool, line: str, found: bool) -> None:
    assert Pattern(pattern, extended=extended).found_in(line) is found


@settings(max_examples=150, deadline=None)
@given(
    pattern=st.text(alphabet="ab.*+?|(){}[]^$\\,1-", max_size=25),
    line=st.text(alphabet="ab1", max_size=200),
    extended=st.booleans(),
)
def test_no_pattern_raises_anything_else_or_hangs(pattern: str, line: str, extended: bool) -> None:
    try:
        assert Pattern(pattern, extended=extended, ignore_case=True).found_in(line) in (True, False)
    except PatternError as error:
        assert str(error)


def test_wildcards_and_nested_repeats_take_no_time() -> None:
    assert not wildcard("*a" * 60 + "b", "a" * 120)
    assert wildcard("*.l?g", "a.b.log")
    assert not Pattern("(a*)*b", extended=True).found_in("a" * 5_000)
    with pytest.raises(PatternError, match="too large"):
        Pattern("((a{30}){30}){30}", extended=True)


@settings(max_examples=100, deadline=None)
@given(*(st.lists(st.sampled_from("abc"), max_size=12) for _ in range(2)))
def test_edits_turn_the_old_lines_into_the_new_ones(old: list[str], new: list[str]) -> None:
    made = list(old)
    for edit in reversed(edits(old, new)):
        made[edit.start : edit.stop] = new[edit.new_start : edit.new_stop]
    assert made == new
    before, after = "".join(f"{x}\n" for x in old), "".join(f"{x}\n" for x in new)
    assert transplant(before, after, before) == after


WORDS = (
    "ls cat grep -r -n -v sort -k wc sed find -name git status add -A commit -m push checkout -b restore revert diff log show "
    "cd app logs/a.log README.md . .. / * ? ' \" \\ | || && ; > >> < << END $ ` # HEAD HEAD~9 x main origin/main a..b -- - "
    "--stat 2>&1 2>/dev/null rm -rf mv cp xargs head -5 tail uniq cut -d, -f1 printf %s echo -e s/a/b/g help 中文 \x00 \ud7ff"
)


@settings(max_examples=400, deadline=None)
@given(
    lines=st.lists(
        st.lists(st.sampled_from(WORDS.split(" ")), max_size=12).map(" ".join) | st.text(max_size=60), min_size=1, max_size=4
    )
)
def test_no_line_raises_or_breaks_the_repository(lines: list[str]) -> None:
    workspace = office()
    for line in lines:
        result = run(workspace, line)
        assert isinstance(result.text, str)
    repo: Any = workspace.rows("repo")["app"]
    assert dict(repo.branches)[repo.branch] in workspace.rows("commit")
