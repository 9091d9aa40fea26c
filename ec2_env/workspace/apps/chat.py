"""Chat: channels, direct messages and threads of the firm. Channels show messages; only opening a thread shows the answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from ec2_env.errors import ToolError
from ec2_env.workspace.store import Row, Workspace
from ec2_env.workspace.tools import App, tool

if TYPE_CHECKING:
    from ec2_env.workspace.world import Person, World

PAGE = 20
"""Messages on one page."""
LISTED = 50
"""Most channels or members that one list shows."""
EXCERPT_CHARS = 80
MESSAGE_CHARS = 4_000


class ChatUser(Row, frozen=True, kw_only=True):
    """Somebody with an account. The first row of the table is the owner of the workspace."""

    name: str
    title: str
    email: str
    status: str = ""
    active: bool = True


class Channel(Row, frozen=True, kw_only=True):
    """One channel; `id` is its name. `shared_with` names the outside company that reads along, if any."""

    topic: str
    members: tuple[str, ...]
    private: bool = False
    archived: bool = False
    shared_with: str = ""

    def seen_by(self, member: str) -> bool:
        return not self.private or member in self.members


class Message(Row, frozen=True, kw_only=True):
    """One message. `place` is a channel, or the other side of a direct conversation; `thread` is the message that it answers."""

    place: str
    sender: str
    text: str
    date: str
    thread: str | None = None
    readers: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    """Texts that stood here before they were edited: others have read them."""

    @property
    def lasting(self) -> bool:
        return True

    @property
    def reaches(self) -> tuple[str, ...]:
        return self.readers


@tool(opens="read_channel")
def list_channels(workspace: Workspace, include_archived: bool = False) -> list[dict[str, Any]]:
    """Lists the public channels and the private ones that the owner is in, by name. At most 50 are shown.

    Args:
        include_archived: Whether to list archived channels too.
    """
    me = owner(workspace).id
    shown = [c for c in workspace.rows("channel").values() if c.seen_by(me) and (include_archived or not c.archived)]
    fields = ("id", "topic", "private", "archived", "shared_with")
    return [
        {name: getattr(c, name) for name in fields} | {"members": len(c.members), "joined": me in c.members}
        for c in sorted(shown, key=lambda c: c.id)[:LISTED]
    ]


@tool()
def list_members(workspace: Workspace, channel: str | None = None, query: str = "") -> list[dict[str, Any]]:
    """Lists people in the chat with their member ids, titles and status, by name. At most 50 are shown.

    Args:
        channel: Show only the members of this channel; all people if not given.
        query: Words that the name or the title has to contain; upper and lower case are the same.
    """
    words = query.lower().split()
    users = workspace.rows("chat_user")
    ids = users if channel is None else find_channel(workspace, channel).members
    found = [users[i] for i in ids if i in users and all(word in f"{users[i].name} {users[i].title}".lower() for word in words)]
    return [
        {"id": user.id, "name": user.name, "title": user.title, "status": user.status if user.active else "deactivated"}
        for user in sorted(found, key=lambda user: (user.name, user.id))[:LISTED]
    ]


@tool(opens="read_thread")
def read_channel(workspace: Workspace, channel: str, page: int = 1) -> list[dict[str, Any]]:
    """Shows the messages of a channel or of a direct conversation, newest first, without the answers in their threads.

    Args:
        channel: Name of the channel; or, for a direct conversation, the member id of the other person.
        page: Page number, from 1; a page has 20 messages.
    """
    place = find_place(workspace, channel)
    found = [m for m in workspace.rows("chat_message").values() if m.place == place.id and m.thread is None]
    return [shown(workspace, message) for message in paged(found, page)]


@tool()
def read_thread(workspace: Workspace, message_id: str) -> list[dict[str, Any]]:
    """Shows a message and all answers in its thread, oldest first.

    Args:
        message_id: Id of the message that started the thread, or of any answer in it.
    """
    root = root_of(visible_message(workspace, message_id))
    found = [m for m in workspace.rows("chat_message").values() if root in (m.id, m.thread)]
    return [shown(workspace, m) for m in sorted(found, key=lambda m: (m.thread is not None, m.date, m.id))]


@tool(opens="read_thread")
def search_messages(workspace: Workspace, query: str, page: int = 1) -> list[dict[str, Any]]:
    """Finds messages, answers in threads included, newest first; of each text, only the first 80 characters are shown.

    Args:
        query: Words, separated by spaces, all of which have to be in the text, the sender's name or the channel's name.
        page: Page number, from 1; a page has 20 messages.
    """
    words = query.lower().split()
    if not words:
        raise ToolError("query is empty; give at least one word")
    me = owner(workspace).id
    hidden = {c.id for c in workspace.rows("channel").values() if not c.seen_by(me)}
    names = {user.id: user.name for user in workspace.rows("chat_user").values()}
    found = []
    for message in workspace.rows("chat_message").values():
        text = f"{message.text} {names.get(message.sender, '')} {message.place}".lower()
        if message.place not in hidden and all(word in text for word in words):
            found.append(message)
    return [{**shown(workspace, m), "channel": m.place, "text": m.text[:EXCERPT_CHARS]} for m in paged(found, page)]


@tool(write=True)
def post_message(workspace: Workspace, channel: str, text: str) -> dict[str, Any]:
    """Posts a message to a channel or to a person. It cannot be taken back: others read it at once.

    Args:
        channel: Name of the channel; or, for a direct message, the member id of the person.
        text: Text of the message, at most 4000 characters.
    """
    return write(workspace, open_place(workspace, channel), text, None)


@tool(write=True)
def reply_in_thread(workspace: Workspace, message_id: str, text: str) -> dict[str, Any]:
    """Answers a message in its thread.

    Args:
        message_id: Id of the message to answer.
        text: Text of the answer, at most 4000 characters.
    """
    message = visible_message(workspace, message_id)
    return write(workspace, open_place(workspace, message.place), text, root_of(message))


@tool(write=True)
def edit_message(workspace: Workspace, message_id: str, text: str) -> dict[str, Any]:
    """Replaces the text of one of the owner's own messages.

    Args:
        message_id: Id of the message.
        text: Its new text, at most 4000 characters.
    """
    message = visible_message(workspace, message_id)
    if message.sender != owner(workspace).id:
        raise ToolError("cant_update_message: it was posted by somebody else; only one's own messages can be edited")
    open_place(workspace, message.place)
    new = checked(text)
    if new != message.text:
        edited = msgspec.structs.replace(message, text=new, earlier=(*message.earlier, message.text))
        workspace.put("chat_message", edited)
    return {"id": message.id, "channel": message.place, "text": new}


@tool(write=True)
def delete_message(workspace: Workspace, message_id: str) -> dict[str, Any]:
    """Deletes one of the owner's own messages. Answers in its thread stay.

    Args:
        message_id: Id of the message.
    """
    message = visible_message(workspace, message_id)
    if message.sender != owner(workspace).id:
        raise ToolError("cant_delete_message: it was posted by somebody else; only one's own messages can be deleted")
    workspace.remove("chat_message", message.id)
    return {"deleted": message.id}


def owner(workspace: Workspace) -> ChatUser:
    """Returns the account of the workspace's owner.

    Raises:
        ToolError: if the chat has no account at all.
    """
    found: ChatUser | None = next(iter(workspace.rows("chat_user").values()), None)
    if found is None:
        raise ToolError("not_authed: this workspace has no chat account")
    return found


def find_channel(workspace: Workspace, name: str) -> Channel:
    """Returns a channel that the owner can see, whether or not the name has a leading #."""
    found: Channel | None = workspace.rows("channel").get(name.strip().removeprefix("#").lower())
    if found is None or not found.seen_by(owner(workspace).id):
        raise ToolError(f"channel_not_found: {name[:80]!r}; list_channels shows the channels")
    return found


def find_place(workspace: Workspace, name: str) -> Channel | ChatUser:
    """Returns a channel by its name, or a person by the member id."""
    user: ChatUser | None = workspace.rows("chat_user").get(name.strip().removeprefix("@"))
    return user if user is not None else find_channel(workspace, name)


def open_place(workspace: Workspace, name: str) -> Channel | ChatUser:
    """Returns a channel or a person that can be written to now."""
    place = find_place(workspace, name)
    if isinstance(place, ChatUser):
        if not place.active:
            raise ToolError(f"account_inactive: the account of {place.name} is deactivated; write to somebody else")
        return place
    if place.archived:
        raise ToolError(f"is_archived: #{place.id} is archived and takes no messages; choose another channel")
    if owner(workspace).id not in place.members:
        raise ToolError(f"not_in_channel: the owner is no member of #{place.id} and cannot post there")
    return place


def visible_message(workspace: Workspace, message_id: str) -> Message:
    """Returns a message that the owner can see."""
    found: Message | None = workspace.rows("chat_message").get(message_id.strip())
    channel = workspace.rows("channel").get(found.place) if found is not None else None
    if found is None or (channel is not None and not channel.seen_by(owner(workspace).id)):
        raise ToolError(f"message_not_found: there is no message with id {message_id[:80]!r}")
    return found


def root_of(message: Message) -> str:
    return message.thread or message.id


def checked(text: str) -> str:
    if not text.strip():
        raise ToolError("no_text: the message is empty")
    if len(text) > MESSAGE_CHARS:
        raise ToolError(f"msg_too_long: the message has {len(text)} characters; at most {MESSAGE_CHARS} are allowed")
    return text


def write(workspace: Workspace, place: Channel | ChatUser, text: str, thread: str | None) -> dict[str, Any]:
    """Posts a message of the owner."""
    me = owner(workspace)
    message = Message(
        id=workspace.new_id("msg"),
        place=place.id,
        sender=me.id,
        text=checked(text),
        date=workspace.now.isoformat(" ", "minutes"),
        thread=thread,
        readers=readers(place, me.email),
    )
    workspace.put("chat_message", message)
    return {"id": message.id, "channel": place.id, "thread": thread, "posted": message.date}


def readers(place: Channel | ChatUser, mine: str) -> tuple[str, ...]:
    """Returns who reads what is posted in a place: "channel:NAME", or the other person's address."""
    if isinstance(place, Channel):
        return (f"channel:{place.id}",)
    return () if place.email == mine else (place.email,)


def paged(messages: Iterable[Message], page: int) -> list[Message]:
    """Returns one page of messages, newest first."""
    if page < 1:
        raise ToolError("page must be 1 or more")
    return sorted(messages, key=lambda m: (m.date, m.id), reverse=True)[(page - 1) * PAGE : page * PAGE]


def shown(workspace: Workspace, message: Message) -> dict[str, Any]:
    sender = workspace.rows("chat_user").get(message.sender)
    found: dict[str, Any] = {
        "id": message.id,
        "from": sender.name if sender else message.sender,
        "date": message.date,
        "text": message.text,
    }
    if message.thread is not None:
        found["thread"] = message.thread
    else:
        found["replies"] = sum(m.thread == message.id for m in workspace.rows("chat_message").values())
    return {**found, "edited": True} if message.earlier else found


class ChatSeeder:
    """Fills the chat while a world is built."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.users: dict[str, ChatUser] = {}
        self.join(world.me)

    def join(self, person: Person, *, status: str = "", active: bool = True) -> ChatUser:
        """Gives a person an account, or returns the one that the person has."""
        user = self.users.get(person.email)
        if user is None:
            user_id = self.world.new_id("user")
            user = ChatUser(id=user_id, name=person.name, title=person.role, email=person.email, status=status, active=active)
            self.users[person.email] = user
            self.world.workspace.put("chat_user", user)
        return user

    def channel(
        self,
        name: str,
        members: Sequence[Person] = (),
        *,
        topic: str = "",
        private: bool = False,
        archived: bool = False,
        shared_with: str = "",
        joined: bool = True,
    ) -> Channel:
        """Adds a channel with these members (and the owner, if `joined`) and returns it."""
        people = [self.world.me, *members] if joined else members
        ids = tuple([self.join(person).id for person in people])
        flags = {"private": private, "archived": archived}
        channel = Channel(id=name, topic=topic, members=ids, shared_with=shared_with, **flags)
        self.world.workspace.put("channel", channel)
        return channel

    def post(
        self, channel: Channel, sender: Person, text: str, *, at: datetime | None = None, thread: Message | None = None
    ) -> Message:
        """Posts a message to a channel, or into a thread of it. `at` is a moment in the last week if not given."""
        return self._add(channel, sender, text, at, thread)

    def direct(self, person: Person, text: str, *, at: datetime | None = None, mine: bool = False) -> Message:
        """Adds a direct message from a person to the owner, or from the owner if `mine`."""
        return self._add(self.join(person), self.world.me if mine else person, text, at, None)

    def noise(self, count: int, channel: Channel | None = None) -> list[Message]:
        """Posts unimportant messages of three people, in a channel for small talk if none is given."""
        rng, language = self.world.rng, self.world.language
        senders = [self.world.person() for _ in range(3)]
        place = channel or self.channel(
            self.world.text("random", "闲聊"), senders, topic=self.world.text("Small talk", "随便聊聊")
        )
        texts = NOISE[language]
        return [self.post(place, rng.choice(senders), rng.choice(texts).format(n=rng.randrange(2, 60))) for _ in range(count)]

    def _add(self, place: Channel | ChatUser, sender: Person, text: str, at: datetime | None, thread: Message | None) -> Message:
        world = self.world
        at = at or world.moment(-world.rng.randrange(1, 8))
        message = Message(
            id=world.new_id("msg"),
            place=place.id,
            sender=self.join(sender).id,
            text=text,
            date=at.isoformat(" ", "minutes"),
            thread=None if thread is None else thread.thread or thread.id,
        )
        world.workspace.put("chat_message", message)
        return message


NOISE = {
    "en": (
        "There are {n} slices of cake left in the kitchen.",
        "Has anybody seen my blue umbrella? Locker {n}.",
        "Lunch at half past twelve? We are {n} so far.",
        "Gate {n} of the car park is jammed, take the other one.",
    ),
    "zh": ("茶水间还剩{n}块蛋糕。", "谁看到我的蓝色雨伞了？{n}号柜。", "中午一起吃饭吗？目前{n}个人。", "停车场{n}号闸机坏了。"),
}

WRITING = (post_message, reply_in_thread, edit_message, delete_message)
APP = App(
    "chat",
    (list_channels, list_members, read_channel, read_thread, search_messages, *WRITING),
    ChatSeeder,
)
