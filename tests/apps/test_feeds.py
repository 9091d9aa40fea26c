"""Feeds: articles are listed and found without their text, opened with it, and kept on boards."""

from __future__ import annotations

from typing import Any

import pytest

from ec2_env.actions import ToolCall
from ec2_env.task import toolbox
from ec2_env.workspace.tools import Result
from ec2_env.workspace.world import Language, World

BOX = toolbox(("feeds",))


@pytest.fixture
def world() -> World:
    return World("test/1", "en", "train")


def do(world: World, name: str, **arguments: Any) -> Result:
    return BOX.run(world.workspace, ToolCall(name, arguments))


def good(world: World, name: str, **arguments: Any) -> Any:
    result = do(world, name, **arguments)
    assert result.ok, result.text
    return result.value


def test_lists_show_summaries_and_a_look_shows_text_and_small_print(world: World) -> None:
    feed = world.feeds.feed("Trade", "energy")
    item = world.feeds.add(feed, "Sun", "A summary.", "The zebra text.", note="Paid for by a firm.", author="Ann")
    plain = world.feeds.add(feed, "Rain", "Another.", "Text.")
    listed = do(world, "list_feed_items", feed_id=feed.id)
    assert {row["id"] for row in listed.value} == {item.id, plain.id}
    assert "zebra" not in listed.text
    assert "Paid" not in listed.text
    shown = good(world, "get_feed_item", item_id=item.id)
    assert (shown["text"], shown["note"], shown["feed"]) == ("The zebra text.", "Paid for by a firm.", "Trade")
    assert "note" not in good(world, "get_feed_item", item_id=plain.id)


def test_articles_are_found_by_words_of_their_text(world: World) -> None:
    item = world.feeds.add(world.feeds.feed("Trade", "energy"), "Sun", "A summary.", "The ZEBRA text.")
    world.feeds.noise(10)
    assert [row["id"] for row in good(world, "search_feed_items", query="zebra sun")] == [item.id]
    assert not do(world, "search_feed_items", query="  ").ok


def test_articles_are_listed_by_category_and_date(world: World) -> None:
    feed = world.feeds.feed("Trade", "energy")
    old = world.feeds.add(feed, "Old", "s", "t", days_ago=20)
    new = world.feeds.add(feed, "New", "s", "t", days_ago=2, category="policy")
    border = world.day(-20).isoformat()
    assert [row["id"] for row in good(world, "list_feed_items", since=border)] == [new.id, old.id]
    assert [row["id"] for row in good(world, "list_feed_items", since=world.day(-19).isoformat())] == [new.id]
    assert [row["id"] for row in good(world, "list_feed_items", category="policy")] == [new.id]
    assert not do(world, "list_feed_items", since="last week").ok


def test_pages_do_not_overlap(world: World) -> None:
    world.feeds.noise(40)
    pages = [good(world, "list_feed_items", page=page) for page in (1, 2, 3, 4)]
    assert [len(page) for page in pages] == [15, 15, 10, 0]
    assert len({row["id"] for page in pages for row in page}) == 40
    assert not do(world, "list_feed_items", page=0).ok


def test_an_article_is_kept_on_boards_once_each(world: World) -> None:
    item = world.feeds.noise(1)[0]
    world.workspace.begin()
    assert good(world, "save_feed_item", item_id=item.id, board=" Later ")["boards"] == ["Later"]
    assert good(world, "save_feed_item", item_id=item.id, board="Team")["boards"] == ["Later", "Team"]
    assert not do(world, "save_feed_item", item_id=item.id, board="Team").ok
    assert good(world, "unsave_feed_item", item_id=item.id, board="Later")["boards"] == ["Team"]
    assert not do(world, "unsave_feed_item", item_id=item.id, board="Later").ok
    good(world, "unsave_feed_item", item_id=item.id, board="Team")
    assert world.workspace.diff() == ()


@pytest.mark.parametrize("board", ["", "  ", "b" * 41])
def test_a_board_needs_a_name(world: World, board: str) -> None:
    item = world.feeds.noise(1)[0]
    assert not do(world, "save_feed_item", item_id=item.id, board=board).ok


def test_feeds_are_listed_by_name(world: World) -> None:
    world.feeds.feed("Zoo", "animals")
    world.feeds.feed("Arc", "light")
    assert [feed["name"] for feed in good(world, "list_feeds")] == ["Arc", "Zoo"]


def test_wrong_ids_are_refused(world: World) -> None:
    assert not do(world, "list_feed_items", feed_id="feed-0").ok
    assert not do(world, "get_feed_item", item_id="item-0").ok
    assert not do(world, "save_feed_item", item_id="item-0", board="b").ok


@pytest.mark.parametrize("language", ["en", "zh"])
def test_noise_is_in_the_language_of_the_world(language: Language) -> None:
    world = World("test/2", language, "train")
    item = world.feeds.noise(5)[0]
    assert item.title.isascii() == (language == "en")
