"""The page as a file: complete, the same every time, safe, and without anything from elsewhere."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ec2_env import cli
from ec2_env.bench.grid import Cell
from ec2_env.cloud.ledger import units_of
from ec2_env.errors import ConfigurationError
from ec2_env.report import pictures, writing
from ec2_env.report.headline import command_of
from ec2_env.report.run import read_run
from ec2_env.report.writing import write_report
from ec2_env.trace import from_json

Made = Callable[..., Path]
VOID = {"meta", "wbr", "br"}
HOSTILE = "x:</script><script>alert(1)</script><img src=http://evil.example/>"


class Reader(HTMLParser):
    """Collects elements, and finds those that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


def text_of(run: Path, **options: str) -> str:
    return write_report(run, **options).page.read_text(encoding="utf-8")  # type: ignore[arg-type]


def test_page_holds_every_part_and_is_well_formed(folder: Path, tmp_path: Path) -> None:
    reader = Reader(write_report(folder, tmp_path / "out").page.read_text(encoding="utf-8"))
    assert not reader.open
    anchors = {one["id"] for one in reader.all("h2")}
    assert anchors == {"glance", "table", "pareto", "categories", "languages", "leaks", "failures", "endings"}
    assert {str(one.get("href")) for one in reader.all("a")} == {f"#{anchor}" for anchor in anchors}
    assert len(reader.all("svg")) == 5
    assert len(reader.all("caption")) == len(reader.all("table")) >= 10


def test_page_can_be_read_out(folder: Path, tmp_path: Path) -> None:
    reader = Reader(write_report(folder, tmp_path / "out").page.read_text(encoding="utf-8"))
    ids = [one["id"] for _, one in reader.tags if "id" in one]
    assert len(ids) == len(set(ids))
    for plot in reader.all("svg"):
        assert plot["role"] == "img" and set(str(plot["aria-labelledby"]).split()) <= set(ids)
    assert all(one.get("scope") for one in reader.all("th"))
    wide = [one for one in reader.all("div") if one["class"] == "wide"]
    assert len(wide) > 10 and all(one.get("aria-label") and one.get("tabindex") == "0" for one in wide)
    levels = [int(tag[1]) for tag, _ in reader.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_page_takes_nothing_from_elsewhere_and_runs_nothing(folder: Path, tmp_path: Path) -> None:
    text = write_report(folder, tmp_path / "out").page.read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\s\"']+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<script|<link|<iframe|@import|url\(| src=| on\w+=", text)
    assert "default-src &#x27;none&#x27;" in text


def test_same_run_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    one, other = (write_report(folder, tmp_path / name) for name in ("one", "other"))
    assert [file.name for file in one.pictures] == [file.name for file in other.pictures]
    for file, twin in zip((one.page, *one.pictures), (other.page, *other.pictures), strict=True):
        assert file.read_bytes() == twin.read_bytes(), file.name


def test_sensitive_values_are_named_by_id_only(folder: Path, tmp_path: Path) -> None:
    text = write_report(folder, tmp_path / "out").page.read_text(encoding="utf-8")
    lines = (folder / "trajectories.jsonl").read_bytes().splitlines()
    values = {unit.value for line in lines for unit in units_of(from_json(line))}
    assert len(values) > 5 and not [value for value in values if len(value) > 3 and value in text]
    assert re.search(r"\biban-\d", text)


def test_names_from_a_run_are_no_markup(made: Made) -> None:
    cells = [Cell("cloud_only", None, "sim:big"), Cell(HOSTILE, "sim:<b>small", "sim:big")]
    text = text_of(made(cells=cells))
    reader = Reader(text)
    assert not reader.open and not reader.all("script") and not reader.all("img") and not reader.all("b")
    assert "&lt;script&gt;alert(1)" in text


def test_simulated_and_real_models_are_told_apart(made: Made) -> None:
    assert "no measurements of the real models" in text_of(made("one"))
    real = {"name": "big", "simulated": False}
    mixed = text_of(made("two", manifest={"models": {"sim:big": real, "sim:small": {"name": "small", "simulated": True}}}))
    assert "simulated and real models" in mixed and "Real: big." in mixed
    only = text_of(made("three", manifest={"models": {"sim:big": real, "sim:small": {**real, "name": "small"}}}))
    assert ">real models<" in only and "no measurements" not in only


def test_partial_run_says_so(made: Made) -> None:
    path = made()
    lines = (path / "results.jsonl").read_bytes().splitlines(keepends=True)
    (path / "results.jsonl").write_bytes(b"".join(lines[:-2]))
    assert "Partial: 2 of 18 episodes are not there" in text_of(path)


def test_run_without_sensitive_values_has_no_plots_of_privacy(made: Made) -> None:
    none = {"units": 0, "touched": []}
    path = made(changes=dict.fromkeys(("cloud_only", "edge_only", "random"), none))
    written = write_report(path)
    assert {file.stem for file in written.pictures} == {"utility-cost", "category-completion"}
    assert "hold no sensitive values" in written.page.read_text(encoding="utf-8")


def test_row_that_falls_behind_is_ranked_first(made: Made) -> None:
    text = text_of(made())
    table = text[text.index("Rows that fall behind") : text.index("Hardest tasks")]
    first = table[table.index("<tbody>") :]
    assert first.index("config_<wbr>drift (en)") < first.index("edge_only") < first.index("-75") < first.index("line 11")


def test_episodes_are_linked_only_if_there_is_a_viewer(made: Made, tmp_path: Path) -> None:
    path = made()
    assert "#episode=" not in text_of(path)
    viewer = tmp_path / "my pages"
    viewer.mkdir()
    assert 'href="../../my pages/index.html#episode=11"' in text_of(path, viewer=str(viewer))
    assert 'href="https://host.example/run/index.html#episode=11"' in text_of(path, viewer="https://host.example/run/")
    assert 'href="https://host.example/a.html#episode=11"' in text_of(path, viewer="https://host.example/a.html")


@pytest.mark.parametrize("viewer", ["javascript:alert(1)", "nowhere/at/all"])
def test_viewer_that_is_neither_a_folder_nor_an_address_is_refused(made: Made, viewer: str) -> None:
    with pytest.raises(ConfigurationError, match="there is no folder"):
        write_report(made(), viewer=viewer)


def test_folders_of_runs_link_each_to_its_own_pages(made: Made) -> None:
    made("both/a")
    path = made("both/b", [Cell("random", "sim:small", "sim:other")]).parent
    text = text_of(path, viewer="https://host.example")
    assert 'href="https://host.example/a/index.html#episode=11">episode a 11<' in text
    assert "not one that can be derived" in text


def test_command_is_the_shortest_that_runs_the_same(folder: Path) -> None:
    settings = read_run(folder).settings
    assert command_of(settings) is None, "the suite of the test is not one that ships"


def test_plots_are_files_too(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "can_draw_png", lambda: False)
    monkeypatch.setattr(writing, "can_draw_png", lambda: False)
    written = write_report(folder, tmp_path / "out")
    names = ["utility-privacy", "utility-cost", "category-completion", "category-privacy", "leaks-kind"]
    assert [file.name for file in written.pictures] == [f"{name}.svg" for name in names]
    assert written.remarks == (writing.NO_PNG,)


def test_pictures_have_the_size_of_their_plots(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("resvg_py", reason="the plots extra is not installed")
    written = write_report(folder, tmp_path / "out")
    for file in written.pictures:
        if file.suffix == ".png":
            data = file.read_bytes()
            svg = file.with_suffix(".svg").read_text(encoding="utf-8")
            width = float(svg.partition('width="')[2].partition('"')[0])
            assert data.startswith(b"\x89PNG")
            assert abs(int.from_bytes(data[16:20], "big") - pictures.ZOOM * width) <= 2


def test_missing_chinese_font_is_told_where_it_matters(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("resvg_py", reason="the plots extra is not installed")
    monkeypatch.setattr(writing, "cjk_font", lambda: None)
    chinese = {"sim:big": {"name": "大模型", "simulated": True}, "sim:small": {"name": "small", "simulated": True}}
    assert write_report(made("zh", manifest={"models": chinese})).remarks == (writing.NO_FONT,)
    assert write_report(made("en")).remarks == ()


def test_chinese_font_is_found_by_its_name(tmp_path: Path) -> None:
    assert pictures.cjk_font([tmp_path, tmp_path / "none"]) is None
    (tmp_path / "DejaVuSans.ttf").touch()
    assert pictures.cjk_font([tmp_path]) is None
    (tmp_path / "noto").mkdir()
    (tmp_path / "noto" / "NotoSansCJK-Regular.ttc").touch()
    assert pictures.cjk_font([tmp_path]) == tmp_path / "noto" / "NotoSansCJK-Regular.ttc"


def test_command_writes_beside_the_run(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    path = made()
    assert cli.main(["report", str(path)]) == 0
    out = capsys.readouterr()
    assert out.out == f"{path / 'report' / 'index.html'}\n" and (path / "report" / "index.html").exists()
    assert "files of plots beside it" in out.err


def test_command_refuses_what_is_no_run_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", str(tmp_path)]) == 2
    assert "is no run folder" in capsys.readouterr().err


def test_place_that_cannot_be_written_is_told(made: Made, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_report(made(), tmp_path / "file" / "below")
