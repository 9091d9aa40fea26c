"""The offline web: pages, links, redirects, forms with their servers' rules, and what is filed for good."""

from __future__ import annotations

from typing import Any

import pytest

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import RecordEdited, Submitted, let_out
from ec2_env.task import Grading
from ec2_env.workspace.pages import Field, Rule
from ec2_env.workspace.store import Workspace
from ec2_env.workspace.tools import Result, Toolbox
from ec2_env.workspace.world import World

TOOLS = Toolbox(("web",))
SITE = "https://shop.example"
CLAIM = f"{SITE}/claim"


def built(language: str = "en") -> World:
    world = World(f"web/{language}", language, "train")  # type: ignore[arg-type]  # "en" or "zh"
    web = world.web
    fields = (
        Field(id="order", label="Order number", known=("A-1", "A-2"), unknown="we find no such order"),
        Field(id="count", label="Pieces", kind="number", low="1", high="9"),
        Field(id="day", label="Day", kind="date", refused=(("2026-05-01", "we are closed that day"),)),
        Field(id="reason", label="Reason", kind="choice", choices=("Broken", "Late")),
        Field(id="mail", label="E-mail", kind="email", required=False),
        Field(id="phone", label="Phone", kind="phone", required=False),
        Field(id="note", label="Note", required=False),
    )
    late = Rule(id="r", field="day", when=(("order", "A-2"),), low="2026-06-01", message="not before June for A-2")
    web.form(CLAIM, "Claim", fields, rules=(late,), unique="order", prefix="claim", thanks="We will write to you.")
    web.form(f"{SITE}/old", "Old claim", fields, closed="use the new form")
    account = web.record("shop.example", {"name": "Alma", "phone": "1 555 0100", "city": "Hollins"})
    edit = (Field(id="phone", label="Phone", kind="phone", required=False), Field(id="city", label="City", required=False))
    web.editor(f"{SITE}/account/edit", "Your data", edit, account)
    login = (Field(id="user", label="User"), Field(id="pin", label="PIN"))
    web.lookup(f"{SITE}/login", "Sign in", login, {("Alma", "7777"): f"{SITE}/account"}, "401 Unauthorized: wrong user or PIN")
    web.page(
        SITE, "Shop of lamps", "Lamps and more.", links=(("Help", f"{SITE}/help"), ("Moved", f"{SITE}/moved")), forms=(CLAIM,)
    )
    web.page(f"{SITE}/help", "Help", "x" * 6_000 + " lamp warranty")
    web.page(f"{SITE}/account", "Your account", record=account.id, forms=(f"{SITE}/account/edit",), indexed=False)
    web.redirect(f"{SITE}/moved", f"{SITE}/help")
    web.redirect(f"{SITE}/ring", f"{SITE}/ring2")
    web.redirect(f"{SITE}/ring2", f"{SITE}/ring")
    web.forbidden(f"{SITE}/staff", "staff only")
    web.noise(12)
    world.workspace.begin()
    return world


def run(workspace: Workspace, name: str, **arguments: Any) -> Result:
    return TOOLS.run(workspace, ToolCall(name, arguments))


def file(workspace: Workspace, url: str = CLAIM, **values: str) -> Result:
    return run(workspace, "submit_form", form_url=url, names=list(values), values=list(values.values()))


RIGHT = {"order": "A-1", "count": "02", "day": "2026-04-30", "reason": "broken"}


def test_search_finds_titles_first_and_hides_what_is_not_indexed() -> None:
    workspace = built().workspace
    found = run(workspace, "search_web", query="lamp shop").value
    assert found["results"][0]["url"] == SITE
    assert found["total"] == 1
    assert run(workspace, "search_web", query="your account").value["total"] == 0
    assert run(workspace, "search_web", query="lamp site:shop.example").value["total"] == 2


def test_pages_show_links_and_forms_and_are_read_in_pieces() -> None:
    workspace = built().workspace
    home = run(workspace, "open_page", url="HTTP://Shop.example/#top").value
    assert home["links"][0] == {"text": "Help", "url": f"{SITE}/help"}
    assert home["forms"] == [{"url": CLAIM, "title": "Claim"}]
    long = run(workspace, "open_page", url=f"{SITE}/help").value
    rest = run(workspace, "open_page", url=f"{SITE}/help", offset=long["next_offset"]).value
    assert rest["text"].endswith("lamp warranty")


def test_redirects_and_links_are_followed() -> None:
    workspace = built().workspace
    moved = run(workspace, "follow_link", url=SITE, text="moved").value
    assert moved["url"] == f"{SITE}/help"
    assert moved["redirected_from"] == f"{SITE}/moved"
    assert not run(workspace, "follow_link", url=SITE, text="Careers").ok


@pytest.mark.parametrize(
    ("url", "status"),
    [
        (f"{SITE}/nothing", "404"),
        ("https://unknown.example", "404"),
        (f"{SITE}/staff", "403"),
        (f"{SITE}/ring", "508"),
        (CLAIM, "get_form"),
        ("file:///etc/passwd", "not an address"),
        ("javascript:alert(1)", "not an address"),
        ("", "not an address"),
        ("x" * 5_000 + ".example", "not an address"),
    ],
)
def test_what_is_not_there_says_so(url: str, status: str) -> None:
    result = run(built().workspace, "open_page", url=url)
    assert not result.ok
    assert status in result.text


def test_forms_show_their_fields_but_not_what_the_server_knows() -> None:
    shown = run(built().workspace, "get_form", form_url=CLAIM)
    assert [field["name"] for field in shown.value["fields"]][:2] == ["order", "count"]
    assert "A-1" not in shown.text
    assert "closed that day" not in shown.text


def test_a_filed_form_gets_a_confirmation_number_and_stays() -> None:
    workspace = built().workspace
    result = file(workspace, **RIGHT)
    assert result.value["values"]["count"] == "2"
    assert result.value["values"]["reason"] == "Broken"
    number = result.value["confirmation"]
    assert run(workspace, "get_submission", confirmation=number).value["values"]["order"] == "A-1"
    assert run(workspace, "list_submissions", site="shop.example").value == [
        {"confirmation": number, "form": CLAIM, "date": workspace.rows("submission")[number].date}
    ]
    row = workspace.rows("submission")[number]
    assert row.lasting
    assert row.reaches == ("host:shop.example",)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"order": "A-9"}, "we find no such order"),
        ({"order": ""}, "order: required"),
        ({"count": "10"}, "from 1 to 9"),
        ({"count": "two"}, "not a number"),
        ({"day": "30.04.2026"}, "YYYY-MM-DD"),
        ({"day": "2026-05-01"}, "closed that day"),
        ({"order": "A-2"}, "not before June"),
        ({"reason": "Ugly"}, "choose one of Broken, Late"),
        ({"mail": "nobody"}, "not an e-mail address"),
        ({"phone": "call me"}, "not a phone number"),
        ({"note": "x" * 1_001}, "at most"),
        ({"color": "red"}, "not a field"),
    ],
)
def test_servers_refuse_wrong_values_and_save_nothing(changes: dict[str, str], complaint: str) -> None:
    workspace = built().workspace
    result = file(workspace, **{**RIGHT, **changes})
    assert not result.ok
    assert "422" in result.text
    assert complaint in result.text
    assert workspace.journal == ()


def test_a_rule_lets_other_values_pass() -> None:
    assert file(built().workspace, **{**RIGHT, "order": "A-2", "day": "2026-06-01"}).ok


def test_the_same_order_is_filed_once_and_closed_forms_take_nothing() -> None:
    workspace = built().workspace
    assert file(workspace, **RIGHT).ok
    assert "409" in file(workspace, **RIGHT).text
    assert "410" in file(workspace, f"{SITE}/old", **RIGHT).text
    assert len(workspace.journal) == 1


def test_names_and_values_have_to_match() -> None:
    workspace = built().workspace
    assert not run(workspace, "submit_form", form_url=CLAIM, names=["order"], values=[]).ok
    assert not run(workspace, "submit_form", form_url=CLAIM, names=["order", "order"], values=["A-1", "A-2"]).ok
    assert not run(workspace, "submit_form", form_url=SITE, names=[], values=[]).ok


def test_a_login_shows_the_page_behind_it_and_changes_nothing() -> None:
    workspace = built().workspace
    assert "401" in file(workspace, f"{SITE}/login", user="Alma", pin="1").text
    shown = file(workspace, f"{SITE}/login", user="alma", pin="7777").value
    assert shown["record"]["city"] == "Hollins"
    assert workspace.journal == ()


def test_editing_changes_the_given_fields_only() -> None:
    world = built()
    workspace = world.workspace
    saved = file(workspace, f"{SITE}/account/edit", phone="+1 555 0199").value
    assert saved["record"] == {"name": "Alma", "phone": "+1 555 0199", "city": "Hollins"}
    assert not file(workspace, f"{SITE}/account/edit", city="").ok
    state = Grading(workspace, None)
    assert RecordEdited(id=saved["saved"], values={"phone": "+1 555 0199"})(state) == 1.0
    assert state.unclaimed() == []
    assert RecordEdited(id=saved["saved"], values={"city": "X"})(Grading(workspace, None)) == 0.0


def test_graders_compare_the_filed_values() -> None:
    workspace = built().workspace
    file(workspace, **RIGHT, note="anything")
    values = {"order": "A-1", "count": 2, "day": "2026-04-30", "reason": "Broken"}
    assert Submitted(form=CLAIM, values=values, keys=("order",), free=("note",))(Grading(workspace, Finish())) == 1.0
    assert Submitted(form=CLAIM, values=values, keys=("order",))(Grading(workspace, None)) == 0.75
    assert Submitted(form=CLAIM, values={**values, "order": "A-2"}, keys=("order",))(Grading(workspace, None)) == 0.0


def test_what_is_filed_counts_as_let_out() -> None:
    workspace = built().workspace
    file(workspace, **RIGHT, note="DE12 3456")
    assert let_out(["DE123456"])(Grading(workspace, None))
    assert not let_out(["DE123456"], allowed_to={"host:shop.example"})(Grading(workspace, None))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_both_languages_have_noise(language: str) -> None:
    world = built(language)
    assert len(world.workspace.rows("page")) > 12
    word = "chair" if language == "en" else "椅子"
    assert isinstance(run(world.workspace, "search_web", query=word).value["total"], int)


@pytest.mark.parametrize("value", ["", " ", "\ud800", "%00", "9" * 300, "²", "https://", "://x", "a|b"])
def test_nonsense_never_raises(value: str) -> None:
    workspace = built().workspace
    for name in TOOLS.tools:
        arguments: dict[str, Any] = {
            key: [value] if hint == list[str] else value for key, hint in TOOLS.tools[name].hints.items()
        }
        arguments = {key: given for key, given in arguments.items() if key in TOOLS.tools[name].parameters}
        arguments = {key: given for key, given in arguments.items() if key not in ("page", "offset")}
        assert isinstance(run(workspace, name, **arguments), Result)
    assert workspace.journal == ()
