"""Knowledge base: articles with versions. Searches show titles and dates; only opening an article shows its text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ec2_env.errors import ToolError
from ec2_env.workspace.apps.notes import titled
from ec2_env.workspace.store import Row, Workspace
from ec2_env.workspace.tools import App, tool

if TYPE_CHECKING:
    from ec2_env.workspace.world import Person, World

Shown = Literal["published", "archived", "any"]
PAGE = 20
"""Articles on one page of a list."""


class Article(Row, frozen=True, kw_only=True):
    """One article. Times are local, "YYYY-MM-DD HH:MM"; `version` counts the published states, from 1.

    Attributes:
        status: "published" or "archived".
        audience: Who can read it: "staff" or "public".
        editor: Address of the only one who may change it; empty if everybody may.
        comment: What the editor of the last version said about it.
    """

    title: str
    category: str
    body: str
    updated: str
    author: str
    version: int = 1
    status: str = "published"
    audience: str = "staff"
    editor: str = ""
    labels: tuple[str, ...] = ()
    comment: str = ""

    @property
    def reaches(self) -> tuple[str, ...]:
        return (f"audience:{self.audience}",)


class Proposal(Row, frozen=True, kw_only=True):
    """A new text for an article that somebody else has to approve."""

    article: str
    version: int
    body: str
    reason: str
    reviewer: str
    proposed: str

    @property
    def lasting(self) -> bool:
        return True

    @property
    def reaches(self) -> tuple[str, ...]:
        return (self.reviewer,)


@tool(opens="get_article")
def search_articles(
    workspace: Workspace, query: str, category: str | None = None, status: Shown = "published", page: int = 1
) -> list[dict[str, Any]]:
    """Finds articles whose title, text or labels contain words of the query; those with most of the words come first.

    Args:
        query: Words to look for, separated by spaces; upper and lower case are the same.
        category: Look only in this category.
        status: Which articles to look at; archived ones are left out unless asked for.
        page: Page number, from 1; a page has 20 articles.
    """
    wanted = list(dict.fromkeys(query.lower().split()))[:20]
    if not wanted:
        raise ToolError("400 query is empty; give at least one word")
    scored = []
    for article in chosen(workspace, category, status):
        title, text = article.title.lower(), f"{article.body} {' '.join(article.labels)}".lower()
        in_title, in_all = sum(w in title for w in wanted), sum(w in title or w in text for w in wanted)
        if in_all:
            scored.append((-in_all, -in_title, article.id, article))
    return paged([entry[-1] for entry in sorted(scored, key=lambda entry: entry[:3])], page)


@tool(opens="get_article")
def list_articles(
    workspace: Workspace, category: str | None = None, status: Shown = "published", page: int = 1
) -> list[dict[str, Any]]:
    """Lists articles, last updated first, without their text.

    Args:
        category: Show only this category.
        status: Which articles to show; archived ones are left out unless asked for.
        page: Page number, from 1; a page has 20 articles.
    """
    return paged(sorted(chosen(workspace, category, status), key=lambda a: (a.updated, a.id), reverse=True), page)


@tool()
def get_article(workspace: Workspace, article_id: str) -> dict[str, Any]:
    """Shows one article in full: its text, version, author and who may edit it.

    Args:
        article_id: Id of the article, as shown by search_articles or list_articles.
    """
    article = workspace.get("article", article_id)
    shown = {**header(article), "author": article.author, "audience": article.audience, "labels": list(article.labels)}
    if article.editor:
        shown["only_editor"] = article.editor
    if article.comment:
        shown["version_comment"] = article.comment
    return {**shown, "body": article.body}


@tool(write=True)
def create_article(
    workspace: Workspace, title: str, category: str, body: str, audience: Literal["staff", "public"] = "staff"
) -> dict[str, Any]:
    """Publishes a new article.

    Args:
        title: Title; no other published article may have it.
        category: One of the categories that exist.
        body: Text of the article.
        audience: Who can read it.
    """
    title = titled(title)
    chosen(workspace, category, "any")
    free_title(workspace, title, "")
    article = Article(
        id=workspace.new_id("article"),
        title=title,
        category=category.strip(),
        body=filled(body),
        updated=workspace.now.isoformat(" ", "minutes"),
        author=owner(workspace),
        audience=audience,
    )
    workspace.put("article", article)
    return header(article)


@tool(write=True)
def update_article(
    workspace: Workspace,
    article_id: str,
    version: int,
    body: str | None = None,
    title: str | None = None,
    comment: str = "",
) -> dict[str, Any]:
    """Publishes a new version of an article; what is not given stays as it is.

    Args:
        article_id: Id of the article.
        version: The version that was read and is being edited; refused if there is a newer one.
        body: New text, in place of the whole old one.
        title: New title.
        comment: What has changed, for the version history.
    """
    article = current(workspace, article_id, version)
    if article.editor and article.editor != owner(workspace):
        raise ToolError(
            f"403 Forbidden: only {article.editor} may edit {article_id}; use propose_article_update to suggest the change"
        )
    changed = msgspec.structs.replace(
        article, body=article.body if body is None else filled(body), title=article.title if title is None else titled(title)
    )
    if changed == article:
        raise ToolError("400 nothing to change: the new text and title are those of the current version")
    free_title(workspace, changed.title, article_id)
    changed = msgspec.structs.replace(
        changed, version=article.version + 1, updated=workspace.now.isoformat(" ", "minutes"), comment=comment
    )
    workspace.put("article", changed)
    return header(changed)


@tool(write=True)
def propose_article_update(workspace: Workspace, article_id: str, version: int, body: str, reason: str = "") -> dict[str, Any]:
    """Sends a new text for an article to the one who may edit it, for approval; the article stays as it is until then.

    Args:
        article_id: Id of the article.
        version: The version that was read; refused if there is a newer one.
        body: The whole new text.
        reason: Why it should change.
    """
    article = current(workspace, article_id, version)
    reviewer = article.editor or article.author
    if reviewer == owner(workspace):
        raise ToolError(f"400 {article_id} is your own; use update_article")
    proposal = Proposal(
        id=workspace.new_id("proposal"),
        article=article_id,
        version=version,
        body=filled(body),
        reason=reason,
        reviewer=reviewer,
        proposed=workspace.now.isoformat(" ", "minutes"),
    )
    workspace.put("proposal", proposal)
    return {"id": proposal.id, "article": article_id, "version": version, "reviewer": reviewer, "status": "pending"}


@tool(write=True)
def archive_article(workspace: Workspace, article_id: str) -> dict[str, Any]:
    """Takes an article out of the knowledge base; it stays readable in the archive, and cannot be edited there.

    Args:
        article_id: Id of the article.
    """
    article = workspace.get("article", article_id)
    if article.editor and article.editor != owner(workspace):
        raise ToolError(f"403 Forbidden: only {article.editor} may archive {article_id}; ask them")
    if article.status == "archived":
        raise ToolError(f"409 Conflict: {article_id} is archived already")
    workspace.put("article", msgspec.structs.replace(article, status="archived"))
    return {"id": article_id, "title": article.title, "status": "archived"}


def current(workspace: Workspace, article_id: str, version: int) -> Article:
    """Returns an article that is published in the version that somebody has read.

    Raises:
        ToolError: if there is none, if it is archived, or if there is a newer version.
    """
    article: Article = workspace.get("article", article_id)
    if article.status == "archived":
        raise ToolError(f"409 Conflict: {article_id} is archived and cannot be edited; find the article that replaces it")
    if version != article.version:
        raise ToolError(
            f"409 Conflict: {article_id} is at version {article.version}, not the one given; read it again with get_article"
        )
    return article


def chosen(workspace: Workspace, category: str | None, status: Shown) -> list[Article]:
    """Returns the articles of a category and status.

    Raises:
        ToolError: if there is no such category.
    """
    articles = list(workspace.rows("article").values())
    if category is not None:
        known = sorted({a.category for a in articles})
        if category.strip() not in known:
            raise ToolError(f"400 there is no category {category[:40]!r}; the categories are {', '.join(known)}")
        articles = [a for a in articles if a.category == category.strip()]
    return [a for a in articles if status in ("any", a.status)]


def free_title(workspace: Workspace, title: str, own: str) -> None:
    """Raises a ToolError if another published article has the title."""
    for article in workspace.rows("article").values():
        if article.id != own and article.status == "published" and article.title.lower() == title.lower():
            raise ToolError(
                f"400 an article with this title exists already: {article.id}; choose another title or update that one"
            )


def filled(body: str) -> str:
    if not body.strip():
        raise ToolError("400 body is empty; to take an article away use archive_article")
    return body


def owner(workspace: Workspace) -> str:
    return next(iter(workspace.rows("mailbox")), "me@office.example")


def header(article: Article) -> dict[str, Any]:
    """Returns what a list shows of an article."""
    return {
        "id": article.id,
        "title": article.title,
        "category": article.category,
        "status": article.status,
        "version": article.version,
        "last_updated": article.updated,
    }


def paged(articles: Sequence[Article], page: int) -> list[dict[str, Any]]:
    """Returns one page of headers, in the order given."""
    if page < 1:
        raise ToolError("400 page must be 1 or more")
    return [header(article) for article in articles[(page - 1) * PAGE : page * PAGE]]


class KbSeeder:
    """Fills the knowledge base while a world is built."""

    def __init__(self, world: World) -> None:
        self.world = world

    def add(
        self,
        title: str,
        category: str,
        body: str,
        *,
        updated: datetime | None = None,
        author: Person | str | None = None,
        editor: Person | str = "",
        version: int = 1,
        status: Literal["published", "archived"] = "published",
        audience: Literal["staff", "public"] = "staff",
        labels: Iterable[str] = (),
        comment: str = "",
    ) -> Article:
        """Adds an article and returns it. `updated` is a moment in the last 300 days if not given; `author` is the owner."""
        world = self.world
        writer = world.me if author is None else author
        moment = updated or world.moment(-world.rng.randrange(30, 300))
        article = Article(
            id=world.new_id("article"),
            title=title,
            category=category,
            body=body,
            updated=moment.isoformat(" ", "minutes"),
            author=writer if isinstance(writer, str) else writer.email,
            version=version,
            status=status,
            audience=audience,
            editor=editor if isinstance(editor, str) else editor.email,
            labels=tuple(labels),
            comment=comment,
        )
        world.workspace.put("article", article)
        return article

    def noise(self, count: int) -> list[Article]:
        """Adds articles on everyday matters, each with a title of its own."""
        rng, templates = self.world.rng, NOISE[self.world.language]
        first = rng.randrange(len(templates))
        articles = []
        for index in range(count):
            title, category, body = templates[(first + index) % len(templates)]
            n = rng.randrange(2, 60)
            suffix = f" ({index // len(templates) + 1})" if index >= len(templates) else ""
            articles.append(self.add(title + suffix, category, body.format(n=n), version=rng.randrange(1, 9)))
        return articles


NOISE = {
    "en": (
        ("How to reset the coffee machine", "Office", "Hold the left button for {n} seconds and wait for the green light."),
        ("Booking a meeting room", "Office", "Rooms can be booked up to {n} days ahead in the calendar."),
        ("Setting up the printer", "IT", "Choose the queue of your floor. Driver version {n} is known to work."),
        ("Connecting to the guest network", "IT", "Guests get a code at reception that is valid for {n} hours."),
        ("Parking at the office", "Office", "There are {n} spaces for visitors beside the east gate."),
        ("Writing good ticket titles", "Support", "Say what is broken and since when, in at most {n} words."),
        ("Cleaning the data folder", "IT", "Files that were not opened for {n} weeks are moved to the cold store."),
        ("First day checklist", "People", "Badge, laptop, lunch with the team, tour of {n} minutes."),
    ),
    "zh": (
        ("咖啡机如何重置", "行政", "按住左侧按钮{n}秒，等绿灯亮起。"),
        ("会议室预订", "行政", "会议室最多可提前{n}天在日历中预订。"),
        ("打印机设置", "信息技术", "选择所在楼层的队列，驱动版本{n}可正常使用。"),
        ("访客网络连接", "信息技术", "访客在前台领取验证码，{n}小时内有效。"),
        ("办公楼停车", "行政", "东门旁有{n}个访客车位。"),
        ("怎样写好工单标题", "客服", "说明什么坏了、从何时起，不超过{n}个字。"),
        ("数据文件夹清理", "信息技术", "{n}周未打开的文件会移到冷存储。"),
        ("入职首日清单", "人事", "工牌、电脑、与团队午餐、{n}分钟参观。"),
    ),
}

APP = App(
    "kb",
    (search_articles, list_articles, get_article, create_article, update_article, propose_article_update, archive_article),
    KbSeeder,
)
