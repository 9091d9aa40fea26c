"""Chat: who sees what, what can be posted where, and what stays when a message is edited or deleted."""

from __future__ import annotations

from typing import Any

import pytest

from ec2_env.actions import ToolCall
from ec2_env.checks import Told, let_out
from ec2_env.task import Grading, toolbox
from ec2_env.workspace.store import Workspace
from ec2_env.workspace.tools import Result
from ec2_env.workspace.world import Language, World

BOX = toolbox(("chat",))


class Office:
    """A chat with a team channel, a private one, an archived one, one that the owner is not in, and one that a customer reads."""

    def __init__(self, language: Language = "en") -> None:
        world = World("test/1", language, "train")
        self.ann, self.bob, self.gone = world.people(3, roles=("lead", "buyer", "trainee"))
        chat = world.chat
        self.team = chat.channel("team", [self.ann, self.bob], topic="All of us")
        chat.channel("old", [self.ann], archived=True)
        self.secret = chat.channel("board", [self.ann], private=True, joined=False)
        chat.channel("elsewhere", [self.bob], joined=False)
        chat.channel("ext-kestrel", [self.ann], shared_with="Kestrel Foods")
        chat.join(self.gone, active=False)
        self.root = chat.post(self.team, self.ann, "Zebra crossing: who paints it?", at=world.moment(-3, 9, 0))
        self.answer = chat.post(self.team, self.bob, "I do, in white.", at=world.moment(-2, 9, 0), thread=self.root)
        self.hidden = chat.post(self.secret, self.ann, "Zebra budget", at=world.moment(-1))
        self.own = chat.post(self.team, world.me, "Thanks.", at=world.moment(-1, 9, 0))
        self.dm = chat.direct(self.bob, "Call me about the zebra.", at=world.moment(-1, 10, 0))
        self.ids = {email: user.id for email, user in chat.users.items()}
        chat.noise(3)
        self.workspace: Workspace = world.workspace
        self.workspace.begin()

    def do(self, name: str, **arguments: Any) -> Result:
        return BOX.run(self.workspace, ToolCall(name, arguments))

    def good(self, name: str, **arguments: Any) -> Any:
        result = self.do(name, **arguments)
        assert result.ok, result.text
        return result.value

    def refused(self, name: str, word: str, **arguments: Any) -> bool:
        """Checks that a call is refused in these words and leaves no trace; true then."""
        before = self.workspace.journal
        result = self.do(name, **arguments)
        assert not result.ok
        assert word in result.text, result.text
        assert self.workspace.journal == before
        return True


@pytest.fixture
def office() -> Office:
    return Office()


def test_channels_are_listed_without_private_and_archived_ones(office: Office) -> None:
    names = [channel["id"] for channel in office.good("list_channels")]
    assert names == ["elsewhere", "ext-kestrel", "random", "team"]
    whole = {channel["id"]: channel for channel in office.good("list_channels", include_archived=True)}
    assert whole["old"]["archived"]
    assert "board" not in whole
    assert whole["ext-kestrel"]["shared_with"] == "Kestrel Foods"
    assert (whole["team"]["members"], whole["team"]["joined"], whole["elsewhere"]["joined"]) == (3, True, False)


def test_members_are_listed_by_channel_and_by_title(office: Office) -> None:
    assert len(office.good("list_members", channel="#team")) == 3
    (buyer,) = office.good("list_members", query="BUYER")
    assert (buyer["name"], buyer["title"]) == (office.bob.name, "buyer")
    assert "email" not in buyer
    (gone,) = office.good("list_members", query="trainee")
    assert gone["status"] == "deactivated"


def test_a_channel_shows_messages_and_only_the_thread_shows_answers(office: Office) -> None:
    messages = office.good("read_channel", channel="team")
    assert [message["id"] for message in messages] == [office.own.id, office.root.id]
    assert [message["replies"] for message in messages] == [0, 1]
    thread = office.good("read_thread", message_id=office.answer.id)
    assert [message["text"] for message in thread] == ["Zebra crossing: who paints it?", "I do, in white."]
    assert thread[0]["from"] == office.ann.name


def test_a_direct_conversation_is_read_by_member_id(office: Office) -> None:
    assert [m["id"] for m in office.good("read_channel", channel=office.ids[office.bob.email])] == [office.dm.id]
    assert office.good("read_channel", channel=office.ids[office.ann.email]) == []


def test_search_finds_answers_and_never_what_the_owner_cannot_see(office: Office) -> None:
    hits = office.good("search_messages", query="zebra")
    assert {hit["id"] for hit in hits} == {office.root.id, office.dm.id}
    (hit,) = office.good("search_messages", query="white")
    assert (hit["channel"], hit["thread"]) == ("team", office.root.id)
    office.good("post_message", channel="team", text="unicorn " * 40)
    assert len(office.good("search_messages", query="unicorn")[0]["text"]) == 80
    office.refused("search_messages", "empty", query=" ")
    office.refused("read_thread", "message_not_found", message_id=office.hidden.id)
    office.refused("read_channel", "channel_not_found", channel="board")
    office.refused("list_members", "channel_not_found", channel="board")


def test_a_message_is_posted_and_reaches_its_readers(office: Office) -> None:
    sent = office.good("post_message", channel="#Team", text="Done.")
    direct = office.good("post_message", channel=office.ids[office.bob.email], text="Hello")
    rows = office.workspace.rows("chat_message")
    assert rows[sent["id"]].reaches == ("channel:team",)
    assert rows[direct["id"]].reaches == (office.bob.email,)
    assert office.good("read_channel", channel="team")[0]["id"] == sent["id"]
    assert [change.id for change in office.workspace.diff()] == [sent["id"], direct["id"]]


def test_an_answer_goes_into_the_thread_of_what_it_answers(office: Office) -> None:
    sent = office.good("reply_in_thread", message_id=office.answer.id, text="Good.")
    assert sent["thread"] == office.root.id
    assert [m["id"] for m in office.good("read_thread", message_id=office.root.id)][-1] == sent["id"]
    direct = office.good("reply_in_thread", message_id=office.dm.id, text="Calling.")
    assert office.workspace.rows("chat_message")[direct["id"]].reaches == (office.bob.email,)


def test_places_that_take_no_messages_say_why(office: Office) -> None:
    assert office.refused("post_message", "is_archived", channel="old", text="x")
    assert office.refused("post_message", "not_in_channel", channel="elsewhere", text="x")
    assert office.refused("post_message", "channel_not_found", channel="board", text="x")
    assert office.refused("post_message", "channel_not_found", channel="nowhere", text="x")
    assert office.refused("post_message", "account_inactive", channel=office.ids[office.gone.email], text="x")
    assert office.refused("post_message", "no_text", channel="team", text=" \n")
    assert office.refused("post_message", "msg_too_long", channel="team", text="x" * 4001)
    assert office.refused("reply_in_thread", "message_not_found", message_id="msg-0", text="x")


def test_only_own_messages_are_edited_and_deleted(office: Office) -> None:
    office.refused("edit_message", "cant_update_message", message_id=office.root.id, text="x")
    office.refused("delete_message", "cant_delete_message", message_id=office.root.id)
    office.good("edit_message", message_id=office.own.id, text="Many thanks.")
    shown = office.good("read_channel", channel="team")[0]
    assert (shown["text"], shown["edited"]) == ("Many thanks.", True)
    office.good("delete_message", message_id=office.own.id)
    office.refused("delete_message", "message_not_found", message_id=office.own.id)
    assert [change.kind for change in office.workspace.diff()] == ["removed"]


def test_what_was_posted_stays_let_out_when_it_is_edited_or_deleted(office: Office) -> None:
    first = office.good("post_message", channel="ext-kestrel", text="The code is XK-778-PQR.")
    office.good("edit_message", message_id=first["id"], text="Never mind.")
    assert let_out(["XK-778-PQR"])(Grading(office.workspace, None))
    office.good("delete_message", message_id=first["id"])
    assert let_out(["XK-778-PQR"])(Grading(office.workspace, None))
    assert not let_out(["XK-778-PQR"], allowed_to={"channel:ext-kestrel"})(Grading(office.workspace, None))


def test_the_same_text_again_is_no_edit(office: Office) -> None:
    office.good("edit_message", message_id=office.own.id, text="Thanks.")
    assert office.workspace.diff() == ()


def test_pages_do_not_overlap(office: Office) -> None:
    for number in range(25):
        office.good("post_message", channel="team", text=f"n{number}")
    pages = [office.good("read_channel", channel="team", page=page) for page in (1, 2, 3)]
    assert [len(page) for page in pages] == [20, 7, 0]
    assert len({message["id"] for page in pages for message in page}) == 27
    office.refused("read_channel", "page", channel="team", page=0)


@pytest.mark.parametrize(
    "value", ["", " ", "#", "@", "\x00", "x" * 20_000, "中" * 5_000, "../team", "9" * 400, "team\n", "user-0"]
)
def test_no_text_makes_a_tool_raise(office: Office, value: str) -> None:
    for tool in BOX.tools.values():
        texts = {name: value for name, hint in tool.hints.items() if name in tool.parameters and hint in (str, str | None)}
        assert isinstance(office.do(tool.name, **texts), Result)


def test_reading_changes_nothing(office: Office) -> None:
    for name, arguments in (
        ("list_channels", {}),
        ("list_members", {}),
        ("read_channel", {"channel": "team"}),
        ("read_thread", {"message_id": office.root.id}),
        ("search_messages", {"query": "zebra"}),
    ):
        office.good(name, **arguments)
    assert office.workspace.journal == ()


def test_a_chinese_chat_is_chinese() -> None:
    office = Office("zh")
    assert "闲聊" in [channel["id"] for channel in office.good("list_channels")]
    assert all(not message["text"].isascii() for message in office.good("read_channel", channel="闲聊"))


def test_a_told_fact_counts_in_its_place_only(office: Office) -> None:
    told = Told(table="chat_message", fields={"place": "team"}, states=("2026-03-05",), avoids=("Oslo",), only=("date",))
    office.good("post_message", channel=office.ids[office.bob.email], text="2026-03-05")
    assert told(Grading(office.workspace, None)) == 0.0
    for text, share in (("2026-03-05 or 2026-03-06", 0.0), ("2026-03-05 in Oslo", 0.0), ("On 2026-03-05.", 1.0)):
        office.good("post_message", channel="team", text=text)
        assert told(Grading(office.workspace, None)) == share
    lined = Told(table="chat_message", fields={"place": "team"}, lines={"Open": 3})
    office.good("post_message", channel="team", text="Open: 3\nClosed: 4")
    assert lined(Grading(office.workspace, None)) == 1.0
