"""The knowledge base: versions conflict, restricted articles take proposals, archived ones stay as they are."""

from __future__ import annotations

from typing import Any

import pytest

from ec2_env.actions import ToolCall
from ec2_env.task import toolbox
from ec2_env.workspace.store import Workspace
from ec2_env.workspace.tools import Result
from ec2_env.workspace.world import Person, World

BOX = toolbox(("kb",))


@pytest.fixture(params=["en", "zh"])
def world(request: pytest.FixtureRequest) -> World:
    world = World("test/1", request.param, "train")
    world.kb.add("Zebra care", "Animals", "Feed 3 times.", version=4, labels=("stripes",), updated=world.moment(-2))
    world.kb.add("Zebra law", "Rules", "Two zebras at most.", editor=boss(world), author=boss(world))
    world.kb.add("Zebra history", "Animals", "Feed 2 times.", status="archived")
    world.kb.noise(22)
    world.workspace.begin()
    return world


def boss(world: World) -> Person:
    return Person(name="Ann Boss", email="ann.boss@office.example", role="head", department="Legal")


def do(workspace: Workspace, name: str, **arguments: Any) -> Result:
    return BOX.run(workspace, ToolCall(name, arguments))


def good(workspace: Workspace, name: str, **arguments: Any) -> Any:
    result = do(workspace, name, **arguments)
    assert result.ok, result.text
    return result.value


def article(workspace: Workspace, title: str) -> str:
    return next(hit["id"] for hit in good(workspace, "search_articles", query=title, status="any") if hit["title"] == title)


def test_searches_hide_the_text_and_opening_shows_it(world: World) -> None:
    hit = good(world.workspace, "search_articles", query="stripes zebra")[0]
    assert (hit["title"], hit["version"]) == ("Zebra care", 4)
    assert not {"body", "author", "audience"} & set(hit)
    assert good(world.workspace, "get_article", article_id=hit["id"])["body"] == "Feed 3 times."
    assert world.workspace.diff() == ()


def test_archived_articles_are_found_only_when_asked_for(world: World) -> None:
    office = world.workspace
    assert {hit["title"] for hit in good(office, "search_articles", query="zebra")} == {"Zebra care", "Zebra law"}
    assert [hit["title"] for hit in good(office, "search_articles", query="zebra", status="archived")] == ["Zebra history"]
    assert len(good(office, "search_articles", query="zebra", status="any")) == 3
    assert [hit["title"] for hit in good(office, "list_articles", status="archived")] == ["Zebra history"]


def test_articles_with_more_of_the_words_come_first(world: World) -> None:
    assert [hit["title"] for hit in good(world.workspace, "search_articles", query="zebra law")] == ["Zebra law", "Zebra care"]


def test_categories_narrow_and_unknown_ones_are_explained(world: World) -> None:
    office = world.workspace
    assert [hit["title"] for hit in good(office, "list_articles", category="Animals")] == ["Zebra care"]
    assert "Animals" in do(office, "list_articles", category="Plants").text
    assert not do(office, "search_articles", query="zebra", category="Plants").ok


def test_pages_do_not_overlap_and_are_sorted_by_date(world: World) -> None:
    pages = [good(world.workspace, "list_articles", status="any", page=page) for page in (1, 2, 3)]
    assert [len(page) for page in pages] == [20, 5, 0]
    shown = [hit for page in pages for hit in page]
    assert len({hit["id"] for hit in shown}) == 25
    assert [hit["last_updated"] for hit in shown] == sorted((hit["last_updated"] for hit in shown), reverse=True)


def test_an_update_makes_a_new_version_and_the_old_number_then_conflicts(world: World) -> None:
    office, care = world.workspace, article(world.workspace, "Zebra care")
    assert good(office, "update_article", article_id=care, version=4, body="Feed 5 times.", comment="more")["version"] == 5
    shown = good(office, "get_article", article_id=care)
    assert (shown["body"], shown["version_comment"]) == ("Feed 5 times.", "more")
    assert "409" in do(office, "update_article", article_id=care, version=4, body="Feed 6 times.").text
    assert len(office.diff()) == 1
    assert office.diff()[0].after.reaches == ("audience:staff",)


def test_an_update_without_a_change_is_refused(world: World) -> None:
    care = article(world.workspace, "Zebra care")
    assert not do(world.workspace, "update_article", article_id=care, version=4).ok
    assert not do(world.workspace, "update_article", article_id=care, version=4, body="Feed 3 times.").ok
    assert not do(world.workspace, "update_article", article_id=care, version=4, body=" ").ok


def test_restricted_articles_take_proposals_only(world: World) -> None:
    office, law = world.workspace, article(world.workspace, "Zebra law")
    refused = do(office, "update_article", article_id=law, version=1, body="Three.")
    assert "403" in refused.text and "propose_article_update" in refused.text
    assert "403" in do(office, "archive_article", article_id=law).text
    made = good(office, "propose_article_update", article_id=law, version=1, body="Three.", reason="count")
    assert made["reviewer"] == "ann.boss@office.example"
    assert good(office, "get_article", article_id=law)["body"] == "Two zebras at most."
    assert [(change.table, change.after.reaches) for change in office.diff()] == [("proposal", ("ann.boss@office.example",))]


def test_a_proposal_needs_the_current_version_and_another_editor(world: World) -> None:
    office = world.workspace
    law, care = article(office, "Zebra law"), article(office, "Zebra care")
    assert "409" in do(office, "propose_article_update", article_id=law, version=2, body="x").text
    world.mail.noise(1)
    own = good(office, "create_article", title="Mine", category="Animals", body="x")["id"]
    assert not do(office, "propose_article_update", article_id=own, version=1, body="y").ok
    assert not do(office, "propose_article_update", article_id=care, version=4, body="").ok


def test_archiving_ends_editing(world: World) -> None:
    office, care = world.workspace, article(world.workspace, "Zebra care")
    assert good(office, "archive_article", article_id=care)["status"] == "archived"
    assert "409" in do(office, "archive_article", article_id=care).text
    assert "409" in do(office, "update_article", article_id=care, version=4, body="x").text


def test_titles_of_published_articles_are_unique(world: World) -> None:
    office = world.workspace
    assert not do(office, "create_article", title="zebra CARE", category="Animals", body="x").ok
    assert not do(office, "update_article", article_id=article(office, "Zebra care"), version=4, title="Zebra law").ok
    made = good(office, "create_article", title="Zebra history", category="Animals", body="x", audience="public")
    assert office.rows("article")[made["id"]].reaches == ("audience:public",)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("get_article", {"article_id": "article-0"}),
        ("search_articles", {"query": " "}),
        ("search_articles", {"query": "x", "status": "draft"}),
        ("list_articles", {"page": 0}),
        ("create_article", {"title": "", "category": "Animals", "body": "x"}),
        ("create_article", {"title": "x", "category": "Nowhere", "body": "x"}),
        ("create_article", {"title": "x", "category": "Animals", "body": "\n"}),
        ("update_article", {"article_id": "article-0", "version": 1, "body": "x"}),
        ("update_article", {"article_id": "article-0", "version": "one"}),
        ("update_article", {"article_id": "article-0", "version": True}),
        ("propose_article_update", {"article_id": ["a"], "version": 1, "body": "x"}),
        ("archive_article", {"article_id": "article-0"}),
    ],
)
def test_what_makes_no_sense_is_refused_and_leaves_no_trace(world: World, name: str, arguments: dict[str, Any]) -> None:
    assert not do(world.workspace, name, **arguments).ok
    assert world.workspace.diff() == ()


def test_the_same_key_gives_the_same_knowledge_base() -> None:
    def build() -> dict[str, Any]:
        world = World("test/2", "en", "train")
        world.kb.noise(10)
        return dict(world.workspace.rows("article"))

    assert build() == build()
    assert len({row.title for row in build().values()}) == 10
