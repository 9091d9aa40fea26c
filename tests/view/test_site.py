"""The page as files: complete, the same every time, without a way out of it, and served to this machine only."""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from ec2_env import cli
from ec2_env.bench.records import EpisodeRecord
from ec2_env.errors import ConfigurationError
from ec2_env.trace import ToolRan, Trajectory
from ec2_env.view.runs import Run, open_run
from ec2_env.view.server import Server
from ec2_env.view.site import Site, as_script

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'> ' \" `${1}` \u2028 <!-- 中文"


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_written_page_is_the_same_bytes_every_time(folder: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        Site((open_run(folder),)).write(tmp_path / name)
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert len(content(tmp_path / "one")) == len(open_run(folder).records) + 1


def test_page_loads_nothing_from_outside(small: Run) -> None:
    page = Site((small,)).index.decode()
    assert not re.findall(r"https?://(?!www\.w3\.org)", page)
    assert not re.findall(r"<(?:link|img|iframe|script src)", page)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None and "default-src 'none'" in policy[1] and "unsafe" not in policy[1]


def test_data_of_an_episode_is_ascii_that_no_text_can_leave(changed: Callable[..., Path]) -> None:
    def poison(record: EpisodeRecord, trajectory: Trajectory) -> tuple[EpisodeRecord, Trajectory]:
        events = (ToolRan(0, "edge", HOSTILE, {HOSTILE: [HOSTILE]}, False, HOSTILE), *trajectory.events)
        poisoned = msgspec.structs.replace(trajectory, instruction=HOSTILE, events=events)
        return msgspec.structs.replace(record, strategy=HOSTILE), poisoned

    site = Site((open_run(changed(poison)),))
    data = site.file("episodes/1.js")
    assert data is not None and data.isascii() and b"<" not in data and b"&" not in data
    shown = json.loads(data.decode().removeprefix('receiveEpisode("1", ').removesuffix(");\n"))
    assert shown["instruction"] == HOSTILE and shown["strategy"] == HOSTILE
    assert site.index.decode().count("</script>") == 1


def test_script_literal_is_what_it_was() -> None:
    assert json.loads(as_script({"a": HOSTILE, "b": [1.5, None, True]})) == {"a": HOSTILE, "b": [1.5, None, True]}


@pytest.mark.parametrize(
    "name", ["episodes/0.js", "episodes/999.js", "episodes/B1.js", "episodes/../../manifest.json", "episodes/1.js/", "x"]
)
def test_there_are_no_files_but_those_of_the_page(name: str, small: Run) -> None:
    assert Site((small,)).file(name) is None


def test_second_run_has_its_own_numbers(small: Run) -> None:
    site = Site((small, small))
    assert site.file("episodes/B1.js") is not None
    assert len(site.names()) == 2 * len(small.records)


def test_folder_with_other_files_is_left_alone_and_an_old_page_is_replaced(small: Run, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"thesis\.tex"):
        Site((small,)).write(tmp_path)
    old = tmp_path / "page"
    Site((small,)).write(old)
    (old / "episodes" / "4711.js").write_text("", encoding="utf-8")
    Site((small,)).write(old)
    assert not (old / "episodes" / "4711.js").exists()


@pytest.fixture
def server(small: Run) -> Iterator[Server]:
    with Server(Site((small,))) as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def answer(server: Server, path: str, method: str = "GET", host: str | None = None) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=20)
    connection.request(method, path, headers={"Host": host} if host else {})
    response = connection.getresponse()
    found = response.status, dict(response.getheaders()), response.read()
    connection.close()
    return found


def test_server_answers_with_the_page_and_its_episodes(server: Server) -> None:
    assert server.address.startswith("http://127.0.0.1:")
    status, headers, body = answer(server, "/?x=1")
    assert (status, body) == (200, server.site.index)
    assert headers["Content-Type"].startswith("text/html") and headers["X-Content-Type-Options"] == "nosniff"
    assert answer(server, "/episodes/1.js")[2] == server.site.file("episodes/1.js")
    assert answer(server, "/", "HEAD")[2] == b""


def test_server_gives_nothing_else_and_nothing_to_other_names(server: Server) -> None:
    assert answer(server, "/../manifest.json")[0] == 404
    assert answer(server, "/episodes/%2e%2e/x.js")[0] == 404
    assert answer(server, "/", "POST")[0] == 501
    assert answer(server, "/", host="attacker.example")[0] == 421


def test_command_writes_the_page(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["view", str(folder), "--static", str(tmp_path / "page"), "--task", "forward_invoice"]) == 0
    assert "shows 6 episodes" in capsys.readouterr().out
    assert (tmp_path / "page" / "index.html").is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", "b", "c"], "3 runs; one is shown, or two are compared"),
        (["a", "--port", "70000"], "--port is 70000"),
        (["a"], "not a run folder"),
    ],
)
def test_wrong_call_is_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["view", *words]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1
