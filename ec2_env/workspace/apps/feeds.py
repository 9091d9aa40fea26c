"""Feeds: articles from subscribed sources. Lists show titles and summaries; opening an item shows its text and small print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import msgspec

from ec2_env.errors import ToolError
from ec2_env.workspace.store import Row, Workspace
from ec2_env.workspace.tools import App, tool

if TYPE_CHECKING:
    from ec2_env.workspace.world import World

PAGE = 15
"""Items on one page of a list."""


class Feed(Row, frozen=True, kw_only=True):
    """One subscribed source."""

    name: str
    category: str
    url: str


class FeedItem(Row, frozen=True, kw_only=True):
    """One article, published at "YYYY-MM-DD HH:MM".

    Attributes:
        note: Small print that only the opened article shows, such as that somebody paid for it.
    """

    feed_id: str
    title: str
    category: str
    published: str
    author: str
    summary: str
    text: str
    note: str = ""
    boards: tuple[str, ...] = ()


@tool(opens="get_feed_item")
def list_feed_items(
    workspace: Workspace,
    feed_id: str | None = None,
    category: str | None = None,
    since: str | None = None,
    page: int = 1,
) -> list[dict[str, Any]]:
    """Lists articles, newest first, with their summaries but without their text.

    Args:
        feed_id: Show only the articles of this feed.
        category: Show only articles of this category.
        since: Show only articles published on this date or later, YYYY-MM-DD.
        page: Page number, from 1; a page has 15 articles.
    """
    if feed_id is not None:
        workspace.get("feed", feed_id)
    first = "" if since is None else day_of(since)
    return headers(
        workspace,
        (
            item
            for item in workspace.rows("feed_item").values()
            if (feed_id is None or item.feed_id == feed_id)
            and (category is None or item.category == category)
            and item.published >= first
        ),
        page,
    )


@tool(opens="get_feed_item")
def search_feed_items(workspace: Workspace, query: str, page: int = 1) -> list[dict[str, Any]]:
    """Finds articles whose title, summary or text contain every word of the query, newest first.

    Args:
        query: Words to look for, separated by spaces; upper and lower case are the same.
        page: Page number, from 1; a page has 15 articles.
    """
    wanted = query.lower().split()
    if not wanted:
        raise ToolError("query is empty; give at least one word")
    return headers(workspace, (item for item in workspace.rows("feed_item").values() if contains(item, wanted)), page)


@tool()
def get_feed_item(workspace: Workspace, item_id: str) -> dict[str, Any]:
    """Shows one article in full.

    Args:
        item_id: Id of the article, as shown by list_feed_items or search_feed_items.
    """
    item = workspace.get("feed_item", item_id)
    shown = {**header(workspace, item), "author": item.author, "text": item.text, "boards": list(item.boards)}
    return {**shown, "note": item.note} if item.note else shown


@tool()
def list_feeds(workspace: Workspace) -> list[dict[str, Any]]:
    """Lists the subscribed feeds by name. At most 50 are shown."""
    feeds = sorted(workspace.rows("feed").values(), key=lambda feed: (feed.name, feed.id))
    return [{"id": feed.id, "name": feed.name, "category": feed.category, "url": feed.url} for feed in feeds[:50]]


@tool(write=True)
def save_feed_item(workspace: Workspace, item_id: str, board: str) -> dict[str, Any]:
    """Saves an article to one of the user's boards; a new name makes a new board.

    Args:
        item_id: Id of the article.
        board: Name of the board.
    """
    item = workspace.get("feed_item", item_id)
    name = board.strip()
    if not name or len(name) > 40:
        raise ToolError("board must have 1 to 40 characters")
    if name in item.boards:
        raise ToolError(f"{item_id} is on the board {name!r} already")
    boards = (*item.boards, name)
    workspace.put("feed_item", msgspec.structs.replace(item, boards=boards))
    return {"id": item_id, "boards": list(boards)}


@tool(write=True)
def unsave_feed_item(workspace: Workspace, item_id: str, board: str) -> dict[str, Any]:
    """Takes an article off one of the user's boards.

    Args:
        item_id: Id of the article.
        board: Name of the board.
    """
    item = workspace.get("feed_item", item_id)
    name = board.strip()
    if name not in item.boards:
        raise ToolError(f"{item_id} is not on the board {name[:60]!r}; it is on {', '.join(item.boards) or 'none'}")
    boards = tuple(other for other in item.boards if other != name)
    workspace.put("feed_item", msgspec.structs.replace(item, boards=boards))
    return {"id": item_id, "boards": list(boards)}


def day_of(text: str) -> str:
    """Returns a date in ISO form.

    Raises:
        ToolError: if it is none.
    """
    try:
        return date.fromisoformat(text.strip()).isoformat()
    except ValueError:
        raise ToolError(f"since: {text[:40]!r} is not a date; expected YYYY-MM-DD") from None


def contains(item: FeedItem, wanted: Sequence[str]) -> bool:
    text = f"{item.title} {item.summary} {item.text}".lower()
    return all(word in text for word in wanted)


def header(workspace: Workspace, item: FeedItem) -> dict[str, Any]:
    feed = workspace.rows("feed").get(item.feed_id)
    return {
        "id": item.id,
        "feed": feed.name if feed is not None else item.feed_id,
        "title": item.title,
        "category": item.category,
        "published": item.published,
        "summary": item.summary,
    }


def headers(workspace: Workspace, items: Iterable[FeedItem], page: int) -> list[dict[str, Any]]:
    """Returns one page of headers, newest first."""
    if page < 1:
        raise ToolError("page must be 1 or more")
    ordered = sorted(items, key=lambda item: (item.published, item.id), reverse=True)
    return [header(workspace, item) for item in ordered[(page - 1) * PAGE : page * PAGE]]


class FeedsSeeder:
    """Fills the feed reader while a world is built."""

    def __init__(self, world: World) -> None:
        self.world = world

    def feed(self, name: str, category: str) -> Feed:
        """Subscribes to a source and returns it."""
        key = self.world.new_id("feed")
        feed = Feed(id=key, name=name, category=category, url=f"https://feeds.example/{key}.xml")
        self.world.workspace.put("feed", feed)
        return feed

    def add(
        self,
        feed: Feed,
        title: str,
        summary: str,
        text: str,
        *,
        days_ago: int | None = None,
        category: str = "",
        author: str = "",
        note: str = "",
        boards: Sequence[str] = (),
    ) -> FeedItem:
        """Adds an article and returns it; it is at most four weeks old if `days_ago` is not given."""
        world = self.world
        at = world.moment(-(world.rng.randrange(1, 28) if days_ago is None else days_ago))
        item = FeedItem(
            id=world.new_id("item"),
            feed_id=feed.id,
            title=title,
            category=category or feed.category,
            published=at.isoformat(" ", "minutes"),
            author=author,
            summary=summary,
            text=text,
            note=note,
            boards=tuple(boards),
        )
        world.workspace.put("feed_item", item)
        return item

    def noise(self, count: int) -> list[FeedItem]:
        """Adds articles about nothing that matters, in a feed of their own."""
        world, rng = self.world, self.world.rng
        feed = self.feed(world.text("Town and Country", "城乡见闻"), world.text("local", "本地"))
        items = []
        for _ in range(count):
            title, summary = rng.choice(NOISE[world.language])
            number = rng.randrange(2, 90)
            item = FeedItem(
                id=world.new_id("item"),
                feed_id=feed.id,
                title=title.format(n=number),
                category=feed.category,
                published=f"{world.day(-rng.randrange(1, 28))} {rng.randrange(8, 18):02d}:00",
                author="",
                summary=summary.format(n=number),
                text=summary.format(n=number),
            )
            world.workspace.put("feed_item", item)
            items.append(item)
        return items


NOISE = {
    "en": (
        ("{n} ways to brew tea", "A reader sends in {n} ways, and most of them work."),
        ("Bridge closed for {n} days", "The footbridge is being painted and reopens after {n} days."),
        ("Choir sings for the {n}th time", "The harbor choir invites everybody to its concert number {n}."),
        ("Museum shows {n} clocks", "A collection of {n} clocks is on show until autumn."),
        ("Record pumpkin weighs {n} kilograms", "The grower credits rain water and patience."),
    ),
    "zh": (
        ("泡茶的{n}种方法", "一位读者寄来{n}种方法，多数都管用。"),
        ("步行桥封闭{n}天", "步行桥正在刷漆，{n}天后恢复通行。"),
        ("合唱团第{n}次演出", "港口合唱团邀请大家参加第{n}场音乐会。"),
        ("博物馆展出{n}座钟", "{n}座钟的收藏展至秋季结束。"),
        ("冠军南瓜重{n}公斤", "种植者说靠的是雨水和耐心。"),
    ),
}

APP = App(
    "feeds",
    (list_feeds, list_feed_items, search_feed_items, get_feed_item, save_feed_item, unsave_feed_item),
    FeedsSeeder,
)
