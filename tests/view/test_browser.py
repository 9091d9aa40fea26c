"""The page as a reader meets it, in a headless Chromium of this system. Skipped where there is none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from ec2_env.bench.records import EpisodeRecord
from ec2_env.trace import ToolRan, Trajectory
from ec2_env.view.runs import Run, open_run
from ec2_env.view.server import Server
from ec2_env.view.site import Site

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PHONE, DESK = (390, 844), (1280, 900)
HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
HUGE = "长文本 and more 😀 " * 20_000


@pytest.fixture(scope="module")
def written(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns the address of a page that was written to the disk: the run beside itself."""
    path = tmp_path_factory.mktemp("page")
    run = open_run(folder)
    Site((run, run)).write(path)
    return (path / "index.html").as_uri()


Opened = Callable[..., "Page"]


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    """Returns a function that opens an address; at the end, nothing may have been complained of in the console."""
    complaints: list[str] = []
    pages: list[Page] = []

    def open_page(address: str, size: tuple[int, int] = DESK, scheme: str = "light") -> Page:
        page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)  # type: ignore[arg-type]
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert complaints == []


def number_of(run: Run, strategy: str, task: str = "forward_invoice", language: str = "en") -> int:
    return next(n for n, r in run.records.items() if (r.strategy, r.task, r.language) == (strategy, task, language))


def shown_rows(page: Page) -> list[str]:
    return [str(row.get_attribute("data-id")) for row in page.locator("#rows a").all()]


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_episode_shows_what_crossed_checks_and_changes(opened: Opened, written: str, small: Run) -> None:
    number = number_of(small, "cloud_only")
    page = opened(f"{written}#episode={number}")
    page.wait_for_selector("h2")
    marks = page.locator(".event.cloud mark.full.new")
    assert marks.count() > 0 and marks.first.is_visible()
    assert "newly crossed here" in str(marks.first.get_attribute("title"))
    assert page.locator('[data-key="checks"] .check').count() == len(small.records[number].result["checks"])
    assert page.locator('[data-key="changes"] .change').count() > 0
    assert (
        page.locator(".reward tfoot").inner_text().split()[-1][1:]
        == f"{abs(small.records[number_of(small, 'cloud_only')].total):.3f}"
    )


def test_filters_narrow_the_list_and_stand_in_the_address(opened: Opened, written: str, small: Run) -> None:
    page = opened(written)
    assert len(shown_rows(page)) == 2 * len(small.records)
    page.get_by_role("combobox", name="Task", exact=True).select_option("forward_invoice")
    page.get_by_role("combobox", name="Leak", exact=True).select_option("yes")
    page.get_by_role("combobox", name="Strategy", exact=True).select_option("cloud_only")
    page.get_by_role("combobox", name="Run", exact=True).select_option("A")
    leaking = [
        n for n, r in small.records.items() if r.task == "forward_invoice" and r.strategy == "cloud_only" and r.result["any_leak"]
    ]
    assert sorted(map(int, shown_rows(page))) == leaking
    assert "leak=yes" in page.url and "task=forward_invoice" in page.url
    page.get_by_role("button", name="Clear").click()
    page.get_by_label("Completion from, %").fill("100")
    full = [n for n, r in small.records.items() if r.result["completion"] == 1]
    page.wait_for_function(f"document.querySelectorAll('#rows a').length === {2 * len(full)}")
    page.get_by_label("Search").fill("no such task")
    assert shown_rows(page) == [] and page.get_by_role("status").inner_text().startswith("0 of")


def test_keyboard_alone_is_enough(opened: Opened, written: str) -> None:
    page = opened(written)
    rows = shown_rows(page)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.id") == rows[1]
    page.keyboard.press("Enter")
    page.wait_for_selector("h2")
    assert f"episode={rows[1]}" in page.url
    for key, place in (("j", 2), ("ArrowRight", 3), ("k", 2), ("ArrowLeft", 1)):
        page.keyboard.press(key)
        page.wait_for_url(f"**episode={rows[place]}")
        page.wait_for_selector("h2")
    page.keyboard.press("n")
    assert page.evaluate("document.activeElement.dataset.step") is not None
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid", "one sees where one is"
    page.keyboard.press("e")
    assert page.evaluate("document.activeElement.dataset.key") == "checks"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "q"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.get_by_role("dialog", name="Keys").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: "episode" not in url)


def test_two_episodes_stand_side_by_side_step_by_step(opened: Opened, written: str, small: Run) -> None:
    one, other = number_of(small, "cloud_only"), number_of(small, "step_routing:redacted")
    page = opened(f"{written}#episode={one}")
    page.get_by_role("combobox", name="Compare with", exact=True).select_option(f"B{other}")
    page.wait_for_selector(".pair")
    heads = page.locator(".pair .head p b").all_inner_texts()
    assert heads == ["cloud_only", "step_routing:redacted"]
    boxes = [page.locator(f'.cell[data-side="{side}"] [data-key="step-0"]').bounding_box() for side in "12"]
    assert boxes[0] and boxes[1] and boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] < boxes[1]["x"]
    page.keyboard.press("Escape")
    page.wait_for_selector(".pair", state="detached")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_phone(scheme: str, opened: Opened, written: str, small: Run) -> None:
    page = opened(written, PHONE, scheme)
    assert fits(page) and page.locator("#rows a").first.is_visible()
    page.locator("#rows a").first.click()
    page.wait_for_selector("h2")
    assert fits(page) and not page.locator("#list").is_visible()
    page.get_by_role("button", name="List").click()
    page.wait_for_selector("#rows a", state="visible")
    page.goto(f"{written}#episode={number_of(small, 'cloud_only')}&with=B1")
    page.wait_for_selector(".pair")
    assert fits(page)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(247, 247, 245)"
    assert dark == (scheme == "dark")


def test_texts_of_models_never_become_markup_and_huge_ones_are_cut(
    opened: Opened, changed: Callable[..., Path], tmp_path: Path
) -> None:
    def poison(record: EpisodeRecord, trajectory: Trajectory) -> tuple[EpisodeRecord, Trajectory]:
        ran = ToolRan(0, "edge", HOSTILE, {HOSTILE: HOSTILE, "huge": HUGE}, False, HOSTILE + HUGE)
        poisoned = msgspec.structs.replace(trajectory, instruction=HOSTILE, events=(ran, *trajectory.events))
        return msgspec.structs.replace(record, strategy=HOSTILE), poisoned

    Site((open_run(changed(poison)),)).write(tmp_path / "page")
    page = opened(f"{(tmp_path / 'page' / 'index.html').as_uri()}#episode=1")
    page.wait_for_selector("h2")
    assert page.locator("[data-key=instruction] pre").inner_text() == HOSTILE
    assert page.locator(".head b").first.inner_text() == HOSTILE
    assert page.evaluate("document.body.innerText.length") < 100_000
    before = page.evaluate("document.body.innerText.length")
    page.get_by_role("button", name="Show 20,000 characters of").first.click()
    assert page.evaluate("document.body.innerText.length") > before + 15_000
    assert page.evaluate("window.hacked") is None and page.locator("img").count() == 0


def test_served_page_works_like_the_written_one(opened: Opened, small: Run) -> None:
    with Server(Site((small,))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            page = opened(f"{server.address}#episode=2")
            page.wait_for_selector("h2")
            assert page.locator(".step").count() == small.records[2].result["steps"]
            page.goto(f"{server.address}#episode=999")
            assert page.get_by_text("There is no episode 999 here").is_visible()
        finally:
            server.shutdown()
            thread.join()


def test_every_control_has_a_name(opened: Opened, written: str) -> None:
    page = opened(f"{written}#episode=1")
    page.wait_for_selector("h2")
    nameless = page.evaluate(
        "[...document.querySelectorAll('button, input, select, a')].filter((e) => !e.hidden && "
        "!(e.textContent.trim() || e.getAttribute('aria-label') || (e.labels && e.labels.length))).map((e) => e.outerHTML)"
    )
    assert nameless == []
    assert page.locator("html").get_attribute("lang") == "en"
