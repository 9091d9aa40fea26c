"""Web: an offline browser. Pages link to one another, forms are checked by their servers, and what is filed cannot be taken back.

Nothing leaves the machine: a page is there if the task's world wrote it, and every other address is a 404. A site to which the
user is signed in simply shows its account pages; a login form shows the page behind it and keeps no session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ec2_env.errors import ToolError
from ec2_env.workspace.pages import Field, Form, Page, Pairs, Record, Rule, Submission, address, checked, host_of
from ec2_env.workspace.store import Workspace
from ec2_env.workspace.tools import App, tool

if TYPE_CHECKING:
    from ec2_env.workspace.world import World

HITS = 8
"""Search results on one page."""
TEXT_CHARS = 5_000
"""Longest piece of a page's text that is shown at once."""
SNIPPET_CHARS = 120


@tool(opens="open_page")
def search_web(workspace: Workspace, query: str, page: int = 1) -> dict[str, Any]:
    """Searches the web for pages that hold every word of the query; pages with more of them in the title come first.

    Args:
        query: Words to look for, separated by spaces. "site:host" keeps to one site.
        page: Page number of the results, from 1; a page has 8 results.
    """
    words = query.lower().split()
    sites = [word[5:] for word in words if word.startswith("site:")]
    wanted = [word for word in words if not word.startswith("site:")]
    if page < 1:
        raise ToolError("page must be 1 or more")
    if not wanted:
        raise ToolError("query is empty; give at least one word")
    found = []
    for row in workspace.rows("page").values():
        title = row.title.lower()
        text = f"{title} {row.text.lower()}"
        if not row.indexed or row.moved_to or row.refusal or any(host_of(row.id) != site for site in sites):
            continue
        if all(word in text for word in wanted):
            found.append((-sum(word in title for word in wanted), row.id, row))
    found.sort(key=lambda hit: hit[:2])
    shown = [{"url": url, "title": row.title, "snippet": _snippet(row.text, wanted)} for _, url, row in found]
    return {"total": len(found), "page": page, "results": shown[(page - 1) * HITS : page * HITS]}


@tool()
def open_page(workspace: Workspace, url: str, offset: int = 0) -> dict[str, Any]:
    """Opens a page: its text, its links, and the addresses of its forms. Follows redirects.

    Args:
        url: Address of the page, such as https://host/path.
        offset: Character of the text to start from, for long pages.
    """
    if offset < 0:
        raise ToolError("offset must be 0 or more")
    wanted = address(url)
    page = reached(workspace, wanted)
    text = page.text
    shown: dict[str, Any] = {"url": page.id, "title": page.title, "text": text[offset : offset + TEXT_CHARS]}
    if page.id != wanted:
        shown["redirected_from"] = wanted
    if offset + TEXT_CHARS < len(text):
        shown["next_offset"] = offset + TEXT_CHARS
    record = workspace.rows("webrecord").get(page.record)
    if record is not None:
        shown["record"] = dict(record.values)
    shown["links"] = [{"text": label, "url": target} for label, target in page.links]
    shown["forms"] = [{"url": form, "title": workspace.rows("form")[form].title} for form in page.forms]
    return shown


@tool()
def follow_link(workspace: Workspace, url: str, text: str) -> dict[str, Any]:
    """Opens the page behind a link of a page.

    Args:
        url: Address of the page that holds the link.
        text: Text of the link, as open_page shows it.
    """
    page = reached(workspace, address(url))
    wanted = " ".join(text.split()).casefold()
    targets = list(dict.fromkeys(target for label, target in page.links if label.casefold() == wanted))
    if len(targets) != 1:
        problem = "no link" if not targets else f"{len(targets)} links"
        raise ToolError(f"the page has {problem} with the text {text[:60]!r}; open one by its address")
    return open_page.function(workspace, targets[0])  # type: ignore[no-any-return]  # a tool's function is untyped


@tool()
def get_form(workspace: Workspace, form_url: str) -> dict[str, Any]:
    """Shows a form: its fields, which of them are required, and the choices they offer.

    Args:
        form_url: Address of the form, as open_page shows it.
    """
    form = found_form(workspace, form_url)
    fields = []
    for field in form.fields:
        shown = {"name": field.id, "label": field.label, "type": field.kind, "required": field.required}
        more = {"choices": list(field.choices), "hint": field.hint, "min": field.low, "max": field.high}
        fields.append({**shown, **{name: value for name, value in more.items() if value}})
    return {"url": form.id, "title": form.title, "fields": fields}


@tool(write=True)
def submit_form(workspace: Workspace, form_url: str, names: list[str], values: list[str]) -> dict[str, Any]:
    """Fills a form and sends it. What the server accepts cannot be taken back; what it refuses (422) is not saved.

    Args:
        form_url: Address of the form.
        names: Names of the fields to fill.
        values: Their values, in the same order; dates as YYYY-MM-DD.
    """
    form = found_form(workspace, form_url)
    if len(names) != len(values) or len(set(names)) != len(names):
        raise ToolError(f"give each field once and as many values as names; got {len(names)} names and {len(values)} values")
    filled = checked(form, dict(zip(names, values, strict=True)), workspace)
    if form.effect == "open":
        target = dict(form.answers).get(joined(value for _, value in filled))
        if target is None:
            raise ToolError(form.otherwise or "404 Not Found: nothing fits what was entered")
        return open_page.function(workspace, target)  # type: ignore[no-any-return]  # as above
    if form.effect == "edit":
        return _edit(workspace, form, filled)
    row = Submission(id=workspace.new_id(form.prefix), form=form.id, values=filled, date=_stamp(workspace))
    workspace.put("submission", row)
    thanks = {"message": form.thanks} if form.thanks else {}
    return {"confirmation": row.id, "form": form.id, "values": dict(filled), **thanks}


@tool(opens="get_submission")
def list_submissions(workspace: Workspace, site: str = "") -> list[dict[str, Any]]:
    """Lists what was filed with forms, newest first, at most 50, without the values.

    Args:
        site: Host of one site, such as shop.example; empty for all.
    """
    rows = [r for r in workspace.rows("submission").values() if site.strip().lower() in ("", host_of(r.form))]
    rows.sort(key=lambda r: (r.date, r.id), reverse=True)
    return [{"confirmation": row.id, "form": row.form, "date": row.date} for row in rows[:50]]


@tool()
def get_submission(workspace: Workspace, confirmation: str) -> dict[str, Any]:
    """Shows what was filed, with all values.

    Args:
        confirmation: Confirmation number, as shown by list_submissions.
    """
    row = workspace.get("submission", confirmation.strip())
    return {"confirmation": row.id, "form": row.form, "date": row.date, "values": dict(row.values)}


def reached(workspace: Workspace, url: str) -> Page:
    """Returns the page at an address, after at most five redirects.

    Raises:
        ToolError: 404, 403, or 508 for redirects in a circle.
    """
    for _ in range(6):
        page: Page | None = workspace.rows("page").get(url)
        if page is None:
            hint = " (it is the address of a form; use get_form)" if url in workspace.rows("form") else ""
            raise ToolError(f"404 Not Found: {url[:120]}{hint}; try search_web")
        if page.refusal:
            raise ToolError(f"403 Forbidden: {page.refusal}")
        if not page.moved_to:
            return page
        url = page.moved_to
    raise ToolError(f"508 Loop Detected: {url[:120]} redirects in a circle")


def found_form(workspace: Workspace, url: str) -> Form:
    form: Form | None = workspace.rows("form").get(address(url))
    if form is None:
        raise ToolError(f"404 Not Found: there is no form at {url[:120]!r}; open_page shows the forms of a page")
    return form


def joined(values: Any) -> str:
    """Returns values as the key of a form's answers."""
    return "|".join(values).casefold()


def _edit(workspace: Workspace, form: Form, filled: Pairs) -> dict[str, Any]:
    record: Record = workspace.get("webrecord", form.record)
    given = {name: value for name, value in filled if value}
    if not given:
        raise ToolError("422 Unprocessable: nothing was filled in")
    values = tuple((name, given.get(name, value)) for name, value in record.values)
    workspace.put("webrecord", msgspec.structs.replace(record, values=values))
    return {"saved": record.id, "record": dict(values)}


def _snippet(text: str, wanted: Sequence[str]) -> str:
    folded = text.lower()
    start = max(0, min((at for word in wanted if (at := folded.find(word)) >= 0), default=0) - 30)
    piece = " ".join(text[start : start + SNIPPET_CHARS].split())
    return f"{'...' if start else ''}{piece}{'...' if start + SNIPPET_CHARS < len(text) else ''}"


def _stamp(workspace: Workspace) -> str:
    return workspace.now.isoformat(" ", "minutes")


class WebSeeder:
    """Writes the web while a world is built."""

    def __init__(self, world: World) -> None:
        self.world = world

    def page(
        self,
        url: str,
        title: str,
        text: str = "",
        *,
        links: Sequence[tuple[str, str]] = (),
        forms: Sequence[str] = (),
        record: str = "",
        indexed: bool = True,
    ) -> Page:
        """Adds a page and returns it; its `id` is the address in normal form.

        Args:
            url: Address.
            title: Title.
            text: Text without markup.
            links: Text and address of each link.
            forms: Addresses of the forms on it.
            record: Id of a record of the site's server that it shows.
            indexed: Whether search_web knows it.
        """
        targets = tuple((label, address(target)) for label, target in links)
        return self._put(
            Page(
                id=address(url),
                title=title,
                text=text,
                links=targets,
                forms=tuple(address(form) for form in forms),
                record=record,
                indexed=indexed,
            )
        )

    def redirect(self, url: str, target: str) -> Page:
        """Adds an address that leads to another one."""
        return self._put(Page(id=address(url), title="", moved_to=address(target)))

    def forbidden(self, url: str, message: str) -> Page:
        """Adds a page that the server does not show to this user."""
        return self._put(Page(id=address(url), title="", refusal=message))

    def form(
        self,
        url: str,
        title: str,
        fields: Sequence[Field],
        *,
        rules: Sequence[Rule] = (),
        unique: str = "",
        prefix: str = "web",
        closed: str = "",
        thanks: str = "",
    ) -> Form:
        """Adds a form that files a submission, and returns it."""
        return self._put_form(
            Form(
                id=address(url),
                title=title,
                fields=tuple(fields),
                rules=tuple(rules),
                unique=unique,
                prefix=prefix,
                closed=closed,
                thanks=thanks,
            )
        )

    def lookup(
        self, url: str, title: str, fields: Sequence[Field], answers: Mapping[tuple[str, ...], str], otherwise: str
    ) -> Form:
        """Adds a form that opens a page and changes nothing, such as a search or a login, and returns it.

        Args:
            url: Address.
            title: Title.
            fields: Its fields.
            answers: Address to open by the values of all fields, in order and in normal form.
            otherwise: What the server says to other values, such as "401 Unauthorized: wrong password".
        """
        pairs = tuple((joined(values), address(target)) for values, target in answers.items())
        return self._put_form(
            Form(id=address(url), title=title, fields=tuple(fields), effect="open", answers=pairs, otherwise=otherwise)
        )

    def editor(self, url: str, title: str, fields: Sequence[Field], record: Record, *, rules: Sequence[Rule] = ()) -> Form:
        """Adds a form that changes a record: empty fields stay as they are. The fields are named like the record's."""
        return self._put_form(
            Form(id=address(url), title=title, fields=tuple(fields), effect="edit", record=record.id, rules=tuple(rules))
        )

    def record(self, site: str, values: Mapping[str, str], *, prefix: str = "account") -> Record:
        """Adds a record of a site's server and returns it."""
        row = Record(id=self.world.new_id(prefix), site=site, values=tuple(values.items()))
        self.world.workspace.put("webrecord", row)
        return row

    def filed(self, form: Form, values: Mapping[str, str], *, days_ago: int = 1) -> Submission:
        """Adds a submission that was filed before the episode and returns it."""
        when = self.world.moment(-days_ago).isoformat(" ", "minutes")
        pairs = tuple((field.id, values.get(field.id, "")) for field in form.fields)
        row = Submission(id=self.world.new_id(form.prefix), form=form.id, values=pairs, date=when)
        self.world.workspace.put("submission", row)
        return row

    def noise(self, count: int) -> list[Page]:
        """Adds pages that have nothing to do with the task."""
        world, rng = self.world, self.world.rng
        pages = []
        for _ in range(count):
            title, text = rng.choice(NOISE[world.language])
            number = rng.randrange(100, 100_000)
            row = Page(
                id=f"https://{rng.choice(HOSTS)}/p/{number}", title=title.format(n=number), text=text.format(n=number % 90 + 3)
            )
            pages.append(self._put(row))
        return pages

    def _put(self, page: Page) -> Page:
        self.world.workspace.put("page", page)
        return page

    def _put_form(self, form: Form) -> Form:
        self.world.workspace.put("form", form)
        return form


HOSTS = ("daily.example", "forum.example", "blog.example", "archive.example")
NOISE = {
    "en": (
        ("Ten walks near town, no. {n}", "The longest takes {n} minutes more than the guide says. Take water with you."),
        ("Forum thread {n}: squeaky chair", "After {n} replies the answer is still oil."),
        ("Recipe {n}: lentil soup", "Cook for {n} minutes and let it rest."),
        ("Weather report {n}", "Showers are expected; the wind reaches {n} km/h on the coast."),
        ("Local news {n}: library reopens", "The library has {n} new shelves and longer hours on Thursdays."),
        ("Review {n}: desk lamps", "We tried {n} lamps and liked the plain one."),
    ),
    "zh": (
        ("城郊十条步道之{n}", "最长的一条比指南多走{n}分钟，请带水。"),
        ("论坛帖子{n}：椅子吱吱响", "回复了{n}条，答案还是上油。"),
        ("菜谱{n}：小扁豆汤", "煮{n}分钟，再焖一会儿。"),
        ("天气播报{n}", "预计有阵雨，沿海风速可达每小时{n}公里。"),
        ("本地新闻{n}：图书馆重新开放", "图书馆新增{n}个书架，周四延长开放。"),
        ("评测{n}：台灯", "试了{n}款台灯，最喜欢朴素的那款。"),
    ),
}

APP = App(
    "web",
    (search_web, open_page, follow_link, get_form, submit_form, list_submissions, get_submission),
    WebSeeder,
)
