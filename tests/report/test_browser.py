"""The page in a headless Chromium of this system. Skipped where there is none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ec2_env.report.writing import write_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

OUTSIDE = """() => [...document.querySelectorAll('body *')].filter(e => !e.closest('.wide') && !e.closest('.skip')
    && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(e => e.outerHTML.slice(0, 80))"""
OVERLAPS = """() => [...document.querySelectorAll('#utility-privacy-title, #utility-cost-title')].map(t => {
    const boxes = [...t.parentNode.querySelectorAll('text')].map(e => e.getBoundingClientRect());
    let found = 0;
    boxes.forEach((a, i) => boxes.slice(i + 1).forEach(b => {
        if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3) found++; }));
    return found; })"""


@pytest.fixture(scope="module")
def address(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_report(folder, tmp_path_factory.mktemp("page")).page.as_uri()


def opened(browser: Browser, address: str, width: int = 1280, **options: Any) -> tuple[Page, list[str]]:
    """Opens the page; returns it with what it asked for beside itself or complained of."""
    page = browser.new_page(viewport={"width": width, "height": 844}, **options)
    found: list[str] = []
    page.on("console", lambda message: found.append(message.text))
    page.on("request", lambda request: found.append(request.url) if request.url != address else None)
    page.goto(address)
    return page, found


@pytest.mark.parametrize("width", [390, 1280])
def test_page_fits_the_screen_and_asks_for_nothing(browser: Browser, address: str, width: int) -> None:
    page, found = opened(browser, address, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(OUTSIDE) == []
    assert found == []
    page.close()


def test_texts_of_the_pareto_plots_do_not_overlap(browser: Browser, address: str) -> None:
    page, _ = opened(browser, address)
    assert page.evaluate(OVERLAPS) == [0, 0]
    page.close()


def test_page_follows_the_theme_of_its_reader(browser: Browser, address: str) -> None:
    colors = []
    for scheme in ("light", "dark"):
        page, _ = opened(browser, address, color_scheme=scheme)
        colors.append(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
        page.close()
    assert colors == ["rgb(255, 255, 255)", "rgb(20, 23, 27)"]
