"""Submissions and leaderboards: whole, honest ones are taken, and everything else is refused with its reason."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ec2_env import cli
from ec2_env.bench import submission
from ec2_env.bench.grid import BenchConfig
from ec2_env.bench.leaderboard import as_json, as_markdown, as_terminal, leaderboard
from ec2_env.bench.pins import Pins
from ec2_env.bench.progress import Quiet
from ec2_env.bench.runner import run
from ec2_env.bench.store import read_manifest
from ec2_env.bench.strict import LARGEST_LINE, Refused, read_lines, read_object
from ec2_env.bench.submission import CALIBRATION, HEAD, RECORDS, read_submission, submit
from ec2_env.bench.suites import load_suite
from ec2_env.errors import ConfigurationError, UnknownName

Held = dict[str, Any]
Change = Callable[[Held], None]


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a run folder with the three episodes of the smallest suite that ships."""
    suite = load_suite("email-smoke")
    config = BenchConfig(name="email-smoke", suite=suite, strategies=suite.strategies, edges=suite.edges, cloud=suite.cloud)
    path = tmp_path_factory.mktemp("smoke") / "run"
    run(config, path, workers=1, watch=Quiet(silent=True))
    return path


@pytest.fixture
def board(smoke: Path, tmp_path: Path) -> Path:
    """Returns a folder with one submission, `mine`."""
    submit(smoke, tmp_path / "board" / "mine", "mine")
    return tmp_path / "board"


def head(path: Path, how: Change) -> None:
    """Changes `submission.json`."""
    held = json.loads((path / HEAD).read_text(encoding="utf-8"))
    how(held)
    (path / HEAD).write_text(json.dumps(held), encoding="utf-8")


def lines(path: Path, file: str = RECORDS) -> list[Held]:
    return [json.loads(line) for line in gzip.decompress((path / file).read_bytes()).splitlines()]


def put(path: Path, records: list[Held], file: str = RECORDS) -> None:
    text = b"".join(msgspec.json.encode(record) + b"\n" for record in records)
    (path / file).write_bytes(gzip.compress(text, mtime=0))


def record(path: Path, how: Change, number: int = 0) -> None:
    """Changes one record."""
    held = lines(path)
    how(held[number])
    put(path, held)


def reason(path: Path) -> str:
    with pytest.raises(Refused) as found:
        read_submission(path)
    return str(found.value)


def test_a_submission_is_two_plain_files_with_the_same_bytes_each_time(smoke: Path, board: Path, tmp_path: Path) -> None:
    assert sorted(file.name for file in (board / "mine").iterdir()) == [RECORDS, HEAD]
    submit(smoke, tmp_path / "again", "mine")
    submit(smoke, tmp_path / "again", "mine")
    for name in (HEAD, RECORDS):
        assert (tmp_path / "again" / name).read_bytes() == (board / "mine" / name).read_bytes()
    assert len(lines(board / "mine")) == 3


def test_figures_of_a_submission_are_those_of_the_run(board: Path) -> None:
    found = read_submission(board / "mine")
    stated = json.loads((board / "mine" / HEAD).read_text(encoding="utf-8"))["figures"]
    assert [row["figures"]["return"] for row in stated] == [row.figures["return"].mean for row in found.rows]
    assert all(row.simulated and row.episodes == 1 and not row.errors for row in found.rows)


def test_an_honest_submission_is_played_again_and_ranked(board: Path) -> None:
    found = leaderboard(board, replay=2)
    assert not found.refused
    ((heading, rows),) = found.sections
    assert "email-smoke" in heading and "simulated" in heading
    returns = [one.row.figures["return"].mean for one in rows]
    assert returns == sorted(returns, key=lambda value: -(value or 0.0)) and {one.replayed for one in rows} == {2}
    costs = [one.row.figures["cloud_usd"].mean for one in leaderboard(board, figure="cloud_usd").sections[0][1]]
    assert costs == sorted(costs, key=lambda value: value or 0.0)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (lambda held: held["figures"][0]["figures"].update(completion=0.99), "completion is stated as 0.99"),
        (lambda held: held["figures"][0]["figures"].update({"return": True}), "return is stated as True"),
        (lambda held: held["figures"].pop(), "figures must be given for the 3 rows"),
        (lambda held: held["figures"][0].update(strategy="better"), "stated rows are not those"),
        (lambda held: held["manifest"].update(suite_digest="0" * 64), "suite digest"),
        (lambda held: held["manifest"].update(suite="mine.toml:easy"), "is not one that ships"),
        (lambda held: held["manifest"].update(seeds=2), "seeds of the manifest"),
        (lambda held: held["manifest"].update(trials=True), "trials of the manifest"),
        (lambda held: held["manifest"].update(weights={"task": 1, "cost": 0, "privacy": 0}), "weights of the manifest"),
        (lambda held: held["manifest"].update(files={"adapter": "0"}), "file of the submitter"),
        (lambda held: held["manifest"].update(source="imported"), "not that of a run"),
        (lambda held: held["manifest"].update(strategies="edge_only"), "must be a list of names"),
        (lambda held: held["manifest"]["strategies"].append("random"), "was not played"),
        (lambda held: held["manifest"]["strategies"].append("edge_only"), "repeat a name"),
        (lambda held: held["manifest"]["strategies"].append("x\x1b[2J"), "printable"),
        (lambda held: held["manifest"].update(edges=["sim:/etc/passwd"]), "must describe each model"),
        (
            lambda held: held["manifest"]["models"]["sim:gpt-5.4"].update(price="deepseek-v4-flash"),
            "is not what the manifest says",
        ),
        (lambda held: held["manifest"]["models"]["sim:gpt-5.4"].update(simulated=False), "simulated models are named"),
        (lambda held: held["manifest"]["models"].update({"sim:gpt-5.4": 3}), "of the manifest: Expected"),
        (lambda held: held["manifest"]["prices"].update(input="0"), "prices of the manifest"),
        (lambda held: held.update(name="two\nlines"), "name must be one line"),
        (lambda held: held.update(name="x" * 81), "name must be one line"),
        (lambda held: held.update(contact=["a"]), "contact must be one line"),
        (lambda held: held.update(extra=1), "nothing else"),
        (lambda held: held.update(format=2), "must hold format 1"),
    ],
)
def test_a_head_that_breaks_a_rule_is_refused(board: Path, how: Change, expected: str) -> None:
    head(board / "mine", how)
    assert expected in reason(board / "mine")


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (lambda held: held["result"].update(completion=0.85, status="pass"), "completion does not follow from the checks"),
        (lambda held: held["result"]["checks"].update(own_check=1.0), "checks are not those of the task"),
        (lambda held: held["result"].update(status="pass" if held["result"]["completion"] < 0.7 else "fail"), "do not agree"),
        (lambda held: held["result"].update(privacy=0.5), "privacy does not follow"),
        (lambda held: held["result"].update(any_leak="no"), "any_leak does not follow"),
        (lambda held: held["result"]["exposed"].append({"unit": "no-such-unit", "level": 1.0}), "exposed names other values"),
        (lambda held: held["result"]["exposed"].append({"unit": [], "level": 1.0}), "exposed names other values"),
        (lambda held: held["result"].update(touched=[[]]), "touched names other values"),
        (lambda held: held["result"].update(cloud_usd=held["result"]["cloud_usd"] + 1), "not what its tokens cost"),
        (lambda held: held["result"].update(tokens_raw=-1), "a count is no whole number"),
        (lambda held: held["result"].update(steps=1.5), "a count is no whole number"),
        (lambda held: held["result"].update(latency_s="long"), "an amount no number"),
        (lambda held: held["result"].update(usage_gap={}), "usage_gap has another form"),
        (lambda held: held["result"].update(extra="x"), "other fields than a record"),
        (lambda held: held.update(total=99.0), "reward does not follow"),
        (lambda held: held["reward"].update(cost=0.123), "reward does not follow"),
        (lambda held: held.update(seed=5), "split or seed"),
        (lambda held: held.update(task="data_request"), "task or language is not in the manifest"),
        (lambda held: held.update(strategy="random"), "strategy or cloud model is not in the manifest"),
        (lambda held: held.update(trial=3), "not part of this run"),
        (lambda held: held.update(trial="0"), "is no record"),
        (lambda held: held.update(extra=1), "other fields than a record"),
        (lambda held: held.pop("sha256"), "other fields than a record"),
    ],
)
def test_a_record_that_contradicts_itself_or_its_episode_is_refused(board: Path, how: Change, expected: str) -> None:
    record(board / "mine", how)
    assert expected in reason(board / "mine")


def test_missing_and_doubled_episodes_are_refused(board: Path) -> None:
    held = lines(board / "mine")
    put(board / "mine", held[:-1])
    assert "was not played, or not with every edge model" in reason(board / "mine")
    put(board / "mine", [*held, held[0]])
    assert "recorded twice" in reason(board / "mine")
    put(board / "mine", [])
    assert "there are no records" in reason(board / "mine")


def test_an_error_counts_as_a_failure(board: Path) -> None:
    before = {row.cell.strategy: row for row in read_submission(board / "mine").rows}
    held = lines(board / "mine")
    number = next(i for i, one in enumerate(held) if one["result"]["completion"] > 0)
    record(board / "mine", lambda one: one["result"].update(status="error"), number)
    assert "is stated as" in reason(board / "mine") or "stated rows" in reason(board / "mine")
    name = held[number]["strategy"]

    def state(one: Held) -> None:
        row = next(row for row in one["figures"] if row["strategy"] == name)
        gained = row["figures"]["completion"]
        row["errors"] = 1
        row["figures"].update(completion=0.0, passed=0.0)
        row["figures"]["return"] = before[name].figures["return"].mean - gained  # type: ignore[operator]

    head(board / "mine", state)
    row = next(row for row in read_submission(board / "mine").rows if row.cell.strategy == name)
    assert (row.errors, row.figures["completion"].mean) == (1, 0.0)


def test_a_record_that_is_consistent_and_false_is_found_by_playing_again(board: Path) -> None:
    record(board / "mine", lambda held: held["result"].update(latency_s=0.001))

    def state(held: Held) -> None:
        strategy = lines(board / "mine")[0]["strategy"]
        next(row for row in held["figures"] if row["strategy"] == strategy)["figures"]["latency_s"] = 0.001

    head(board / "mine", state)
    assert not leaderboard(board).refused
    ((name, why),) = leaderboard(board, replay=3).refused
    assert name == "mine" and "comes out otherwise when it is played again" in why and "result.latency_s" in why


def test_copies_of_a_submission_are_refused(board: Path) -> None:
    shutil.copytree(board / "mine", board / "other")
    head(board / "other", lambda held: held.update(name="other"))
    assert leaderboard(board).refused == (("other", "it holds the same records as mine"),)


def test_files_that_are_no_plain_small_ones_are_refused(board: Path, tmp_path: Path) -> None:
    mine = board / "mine"
    packed = (mine / RECORDS).read_bytes()
    (mine / RECORDS).write_bytes(packed[:-12])
    assert "cut off" in reason(mine)
    (mine / RECORDS).write_bytes(packed + packed)
    assert "more than one stream" in reason(mine)
    (mine / RECORDS).write_bytes(b"no archive")
    assert "not compressed with gzip" in reason(mine)
    (mine / RECORDS).write_bytes(gzip.compress(b"x" * (LARGEST_LINE * 3)))
    assert "a line of" in reason(mine)
    (mine / RECORDS).write_bytes(gzip.compress(b"{}"))
    assert "does not end with a line break" in reason(mine)
    (mine / RECORDS).unlink()
    assert "is missing" in reason(mine)
    os.symlink(tmp_path / "elsewhere", mine / RECORDS)
    assert "no plain file" in reason(mine)
    (mine / HEAD).write_bytes(b" " * ((1 << 20) + 1))
    assert "at most 1,048,576 are read" in reason(mine)


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ec2_env.bench.strict.LARGEST_TEXT", 1 << 20)
    file = tmp_path / "bomb.gz"
    file.write_bytes(gzip.compress(b"\n" * (8 << 20)))
    read = 0
    with pytest.raises(Refused, match="unpacks to more"):
        for _ in read_lines(file):
            read += 1
    assert read <= (1 << 20) + LARGEST_LINE


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": 1, "a": 2}',
        b'{"a": {"b": 1, "b": 1}}',
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": 1e999}',
        b"[" * 200_000,
        b'{"a": ' * 200_000,
        b"[1]",
        b"",
        b"\xff\xfe",
        b'{"a": ' + b"9" * 60_000 + b",}",
    ],
)
def test_json_is_read_strictly(text: bytes) -> None:
    with pytest.raises(Refused):
        read_object(text, "it")


def test_offline_routers_are_submitted_with_their_calibration_and_played_again(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = read_manifest(stored / "manifest.json")
    shipped = load_suite("email")
    tiny = msgspec.structs.replace(
        shipped, domains=(), tasks=("data_request", "forward_invoice"), languages=("en",), seeds=1, trials=1, calibration_seeds=1
    )
    monkeypatch.setattr(submission, "pinned", lambda: Pins({}, {"email": settings["suite_digest"]}))
    monkeypatch.setattr(submission, "load_suite", lambda name: tiny)
    mine = tmp_path / "board" / "mine"
    submit(stored, mine, "mine")
    assert len(lines(mine, CALIBRATION)) == 4
    found = leaderboard(tmp_path / "board", replay=14)
    assert not found.refused and {one.replayed for one in found.sections[0][1]} == {18}
    records = lines(mine)
    put(mine, records[1:])
    assert reason(mine) == "1 of 14 episodes are missing"
    put(mine, records)
    held = lines(mine, CALIBRATION)
    put(mine, held[:-1], CALIBRATION)
    assert "does not hold every episode" in leaderboard(tmp_path / "board", replay=1).refused[0][1]
    held[0]["result"]["completion"] = 0.111
    put(mine, held, CALIBRATION)
    assert "otherwise when it is played again" in leaderboard(tmp_path / "board", replay=14).refused[0][1]


def test_names_that_would_load_a_file_are_not_played(board: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for spec in ("learned:../adapter", "no_such_strategy"):
        held = lines(board / "mine")
        old = held[0]["strategy"]
        held[0]["strategy"] = spec
        put(board / "mine", held)

        def rename(one: Held, old: str = old, spec: str = spec) -> None:
            one["manifest"]["strategies"] = [spec if name == old else name for name in one["manifest"]["strategies"]]
            next(row for row in one["figures"] if row["strategy"] == old)["strategy"] = spec

        head(board / "mine", rename)
        assert not leaderboard(board).refused
        assert "does not ship with the package" in leaderboard(board, replay=1).refused[0][1]


def test_what_submitters_wrote_cannot_become_markup(smoke: Path, tmp_path: Path) -> None:
    name = "<b>x</b> | [a](http://b.example) @you `c`"
    submit(smoke, tmp_path / "board" / "mine", name, "me@mail.example")
    found = leaderboard(tmp_path / "board")
    page = as_markdown(found)
    assert not any(letter in page for letter in "<>@`[") and "://" not in page
    assert all(line.count("|") == 14 for line in page.splitlines() if line.startswith("| "))
    assert name in as_terminal(found)
    assert json.loads(as_json(found))["sections"][0]["rows"][0]["name"] == name


def test_a_run_that_cannot_be_submitted_writes_nothing(smoke: Path, stored: Path, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="suite digest"):
        submit(stored, tmp_path / "out", "mine")
    assert not (tmp_path / "out").exists()
    with pytest.raises(Refused, match="name must be"):
        submit(smoke, tmp_path / "out", "")
    assert not list((tmp_path / "out").iterdir())
    part = Path(shutil.copytree(smoke, tmp_path / "part"))
    text = (part / "results.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (part / "results.jsonl").write_text("".join(text[:-1]), encoding="utf-8")
    with pytest.raises(Refused, match="not played"):
        submit(part, tmp_path / "out", "mine")
    with pytest.raises(ConfigurationError, match="no part of a submission"):
        submit(smoke, part, "mine")


def test_commands_submit_and_rank(smoke: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "board" / "mine"
    assert cli.main(["submit", str(smoke), "--name", "A name", "--out", str(mine)]) == 0
    assert "3 rows, 3 episodes" in capsys.readouterr().out
    assert cli.main(["leaderboard", str(tmp_path / "board"), "--replay", "1", "--sort", "privacy"]) == 0
    assert "A name" in capsys.readouterr().out
    head(mine, lambda held: held.update(format=9))
    assert cli.main(["leaderboard", str(tmp_path / "board"), "--format", "markdown"]) == 1
    assert "REFUSED mine: submission.json must hold format 1" in capsys.readouterr().out
    assert cli.main(["leaderboard", str(tmp_path / "board"), "--sort", "beauty"]) == 2
    assert "No figure named 'beauty'" in capsys.readouterr().err


def test_an_empty_folder_and_an_unknown_figure_are_errors(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="holds no submission"):
        leaderboard(tmp_path)
    with pytest.raises(UnknownName):
        leaderboard(tmp_path, figure="beauty")
