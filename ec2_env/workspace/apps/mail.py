"""Mail: one mailbox with folders, labels, drafts and attachments. Lists show headers; only reading a mail shows its text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ec2_env.errors import ToolError
from ec2_env.workspace.store import Row, Workspace
from ec2_env.workspace.tools import App, tool

if TYPE_CHECKING:
    from ec2_env.workspace.world import Firm, Person, World

Folder = Literal["inbox", "sent", "drafts", "trash"]
PAGE = 20
"""Mails on one page of a list."""


class Mail(Row, frozen=True, kw_only=True):
    """One mail. `source` is the id of the mail that it answers or forwards."""

    folder: str
    sender: str
    to: tuple[str, ...]
    subject: str
    body: str
    date: str
    cc: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    attachments: tuple[str, ...] = ()
    kind: str = "new"
    source: str | None = None

    @property
    def lasting(self) -> bool:
        return self.folder == "sent"

    @property
    def reaches(self) -> tuple[str, ...]:
        return (*self.to, *self.cc) if self.folder == "sent" else ()


@tool(opens="read_mail")
def list_mail(workspace: Workspace, folder: Folder = "inbox", label: str | None = None, page: int = 1) -> list[dict[str, Any]]:
    """Lists the mails of a folder, newest first, without their text.

    Args:
        folder: Which folder to list.
        label: Show only mails that carry this label.
        page: Page number, from 1; a page has 20 mails.
    """
    return headers(
        (m for m in workspace.rows("mail").values() if m.folder == folder and (label is None or label in m.labels)), page
    )


@tool(opens="read_mail")
def search_mail(workspace: Workspace, query: str, page: int = 1) -> list[dict[str, Any]]:
    """Finds mails in all folders whose sender, recipients, subject or text contain every word of the query.

    Args:
        query: Words to look for, separated by spaces; upper and lower case are the same.
        page: Page number, from 1; a page has 20 mails.
    """
    wanted = query.lower().split()
    if not wanted:
        raise ToolError("query is empty; give at least one word")
    return headers((m for m in workspace.rows("mail").values() if contains(m, wanted)), page)


@tool()
def read_mail(workspace: Workspace, mail_id: str) -> dict[str, Any]:
    """Shows one mail in full.

    Args:
        mail_id: Id of the mail, as shown by list_mail or search_mail.
    """
    mail = workspace.get("mail", mail_id)
    return {**header(mail), "cc": list(mail.cc), "body": mail.body, "source": mail.source}


@tool(write=True)
def send_mail(
    workspace: Workspace,
    to: list[str],
    subject: str,
    body: str,
    cc: list[str] | None = None,
    attachments: list[str] | None = None,
) -> dict[str, Any]:
    """Sends a new mail.

    Args:
        to: Addresses of the recipients.
        subject: Subject line.
        body: Text of the mail.
        cc: Addresses that get a copy.
        attachments: Paths of workspace files to attach.
    """
    for path in attachments or ():
        workspace.get("file", path)
    return post(workspace, "sent", to, subject, body, cc=cc, attachments=attachments)


@tool(write=True)
def reply_mail(workspace: Workspace, mail_id: str, body: str, cc: list[str] | None = None) -> dict[str, Any]:
    """Answers the sender of a mail.

    Args:
        mail_id: Id of the mail to answer.
        body: Text of the answer.
        cc: Addresses that get a copy.
    """
    mail = workspace.get("mail", mail_id)
    return post(workspace, "sent", [mail.sender], answer_subject(mail), body, cc=cc, kind="reply", source=mail_id)


@tool(write=True)
def forward_mail(workspace: Workspace, mail_id: str, to: list[str], note: str = "") -> dict[str, Any]:
    """Forwards a mail with its text and attachments.

    Args:
        mail_id: Id of the mail to forward.
        to: Addresses of the recipients.
        note: Text to put above the forwarded mail.
    """
    mail = workspace.get("mail", mail_id)
    body = f"{note}\n\n----\n{mail.body}" if note else f"----\n{mail.body}"
    subject = mail.subject if mail.subject.startswith("Fwd: ") else f"Fwd: {mail.subject}"
    return post(workspace, "sent", to, subject, body, attachments=mail.attachments, kind="forward", source=mail_id)


@tool(write=True)
def draft_mail(workspace: Workspace, to: list[str], subject: str, body: str, reply_to: str | None = None) -> dict[str, Any]:
    """Saves a mail as a draft, without sending it.

    Args:
        to: Addresses of the recipients.
        subject: Subject line.
        body: Text of the mail.
        reply_to: Id of the mail that the draft answers.
    """
    if reply_to is not None:
        workspace.get("mail", reply_to)
    return post(workspace, "drafts", to, subject, body, kind="reply" if reply_to else "new", source=reply_to)


@tool(write=True)
def label_mail(workspace: Workspace, mail_id: str, label: str) -> dict[str, Any]:
    """Adds a label to a mail.

    Args:
        mail_id: Id of the mail.
        label: Label to add, such as "urgent".
    """
    mail = workspace.get("mail", mail_id)
    if not label.strip() or len(label) > 40:
        raise ToolError("label must have 1 to 40 characters")
    labels = tuple(sorted({*mail.labels, label.strip()}))
    workspace.put("mail", msgspec.structs.replace(mail, labels=labels))
    return {"id": mail_id, "labels": list(labels)}


@tool(write=True)
def delete_mail(workspace: Workspace, mail_id: str) -> dict[str, Any]:
    """Deletes a mail for good.

    Args:
        mail_id: Id of the mail.
    """
    workspace.remove("mail", mail_id)
    return {"deleted": mail_id}


def post(
    workspace: Workspace,
    folder: Folder,
    to: Sequence[str],
    subject: str,
    body: str,
    *,
    cc: Sequence[str] | None = None,
    attachments: Sequence[str] | None = None,
    kind: str = "new",
    source: str | None = None,
) -> dict[str, Any]:
    """Writes a mail of the owner into `sent` or `drafts`, after checking the addresses."""
    recipients, copies = addresses("to", to), addresses("cc", cc or ())
    if not recipients:
        raise ToolError("to is empty; give at least one address")
    mail = Mail(
        id=workspace.new_id("mail"),
        folder=folder,
        sender=next(iter(workspace.rows("mailbox")), "me@office.example"),
        to=recipients,
        cc=copies,
        subject=subject,
        body=body,
        date=stamp(workspace.now),
        attachments=tuple(attachments or ()),
        kind=kind,
        source=source,
    )
    workspace.put("mail", mail)
    return {"id": mail.id, "folder": folder, "to": list(recipients)}


def addresses(field: str, values: Iterable[str]) -> tuple[str, ...]:
    """Returns the addresses in lower case, once each.

    Raises:
        ToolError: if one is not of the form name@host.
    """
    found: dict[str, None] = {}
    for value in values:
        text = value.strip().lower()
        name, at, host = text.partition("@")
        if not (name and at and "." in host) or any(c in text for c in " <>,;\n") or "@" in host:
            raise ToolError(f"{field}: {value[:80]!r} is not an address; expected name@host")
        found[text] = None
    return tuple(found)


def contains(mail: Mail, wanted: Sequence[str]) -> bool:
    text = f"{mail.sender} {' '.join(mail.to)} {mail.subject} {mail.body}".lower()
    return all(word in text for word in wanted)


def header(mail: Mail) -> dict[str, Any]:
    return {
        "id": mail.id,
        "folder": mail.folder,
        "from": mail.sender,
        "to": list(mail.to),
        "subject": mail.subject,
        "date": mail.date,
        "labels": list(mail.labels),
        "attachments": list(mail.attachments),
    }


def headers(mails: Iterable[Mail], page: int) -> list[dict[str, Any]]:
    """Returns one page of headers, newest first."""
    if page < 1:
        raise ToolError("page must be 1 or more")
    ordered = sorted(mails, key=lambda m: (m.date, m.id), reverse=True)
    return [header(mail) for mail in ordered[(page - 1) * PAGE : page * PAGE]]


def answer_subject(mail: Mail) -> str:
    return mail.subject if mail.subject.startswith("Re: ") else f"Re: {mail.subject}"


def stamp(moment: datetime) -> str:
    return moment.isoformat(" ", "minutes")


class Mailbox(Row, frozen=True, kw_only=True):
    """The owner of the mailbox; `id` is the address."""

    name: str


class MailSeeder:
    """Fills the mailbox while a world is built."""

    def __init__(self, world: World) -> None:
        self.world = world
        world.workspace.put("mailbox", Mailbox(id=world.me.email, name=world.me.name))

    def receive(
        self,
        sender: Person | str,
        subject: str,
        body: str,
        *,
        at: datetime | None = None,
        cc: Sequence[str] = (),
        attachments: Sequence[str] = (),
        source: str | None = None,
        labels: Sequence[str] = (),
    ) -> Mail:
        """Puts a mail into the inbox and returns it. `at` is a moment in the last week if not given."""
        return self._add("inbox", sender, (self.world.me.email,), subject, body, at, cc, attachments, source, labels)

    def sent(self, to: Person | str, subject: str, body: str, *, at: datetime | None = None, source: str | None = None) -> Mail:
        """Puts a mail from the owner into the sent folder and returns it."""
        return self._add("sent", self.world.me, (address(to),), subject, body, at, (), (), source, ())

    def noise(self, count: int, *, mentioning: Firm | Person | str | None = None) -> list[Mail]:
        """Puts unimportant mails into the inbox, a third of which name `mentioning`."""
        world, rng = self.world, self.world.rng
        senders = [world.person() for _ in range(min(4, count))]
        mails = []
        for index in range(count):
            subject, body = rng.choice(NOISE[world.language])
            topic = mentioning if isinstance(mentioning, str) or mentioning is None else mentioning.name
            if topic is not None and index % 3 == 0:
                subject, body = rng.choice(NOISE_ABOUT[world.language])
            values = {"topic": topic or "", "n": rng.randrange(2, 60), "day": world.day(rng.randrange(1, 20)).isoformat()}
            mails.append(self.receive(rng.choice(senders), subject.format(**values), body.format(**values)))
        return mails

    def _add(
        self,
        folder: Folder,
        sender: Person | str,
        to: tuple[str, ...],
        subject: str,
        body: str,
        at: datetime | None,
        cc: Sequence[str],
        attachments: Sequence[str],
        source: str | None,
        labels: Sequence[str],
    ) -> Mail:
        world = self.world
        at = at or world.moment(-world.rng.randrange(1, 8))
        mail = Mail(
            id=world.new_id("mail"),
            folder=folder,
            sender=address(sender),
            to=to,
            cc=tuple(cc),
            subject=subject,
            body=body,
            date=stamp(at),
            attachments=tuple(attachments),
            labels=tuple(labels),
            kind="reply" if source else "new",
            source=source,
        )
        world.workspace.put("mail", mail)
        return mail


def address(who: Person | str) -> str:
    return who if isinstance(who, str) else who.email


NOISE = {
    "en": (
        ("Canteen menu", "The canteen serves {n} dishes this week; vegetarians find theirs at counter two."),
        ("Printer on floor {n}", "The printer is out of toner until {day}. Please use the one next door."),
        ("Fire drill", "There will be a fire drill on {day}. No action is needed beforehand."),
        ("Lost scarf", "A grey scarf was found in meeting room {n}. Collect it at reception."),
        ("Reading club", "We meet on {day} and discuss chapter {n}. Newcomers are welcome."),
        ("Newsletter", "Issue {n} of our industry newsletter is out. You can read it in the browser."),
        ("Parking", "Space {n} in the garage is closed for repairs until {day}."),
        ("Training offer", "There are {n} places left in the spreadsheet course on {day}."),
    ),
    "zh": (
        ("食堂菜单", "本周食堂供应{n}道菜，素食在二号窗口。"),
        ("{n}楼打印机", "打印机缺墨粉，预计{day}恢复，请先用隔壁的。"),
        ("消防演习", "{day}将进行消防演习，无需提前准备。"),
        ("失物招领", "{n}号会议室捡到一条灰色围巾，请到前台领取。"),
        ("读书会", "我们{day}见面，讨论第{n}章，欢迎新朋友。"),
        ("行业通讯", "第{n}期行业通讯已发布，可在浏览器中阅读。"),
        ("停车位", "车库{n}号车位维修至{day}。"),
        ("培训名额", "{day}的表格课程还剩{n}个名额。"),
    ),
}
NOISE_ABOUT = {
    "en": (
        ("{topic}: visitor badges", "Please print {n} visitor badges for {topic} before {day}."),
        ("Coffee with {topic}", "I met people from {topic} at the fair and had coffee with {n} of them. Nothing urgent."),
        ("{topic} catalog", "The new catalog of {topic} has {n} pages and lies in the kitchen."),
    ),
    "zh": (
        ("{topic}：访客证", "请在{day}前为{topic}打印{n}张访客证。"),
        ("与{topic}喝咖啡", "我在展会上见到{topic}的人，和{n}位喝了咖啡，不急。"),
        ("{topic}产品目录", "{topic}的新目录有{n}页，放在茶水间。"),
    ),
}

APP = App(
    "mail",
    (list_mail, search_mail, read_mail, send_mail, reply_mail, forward_mail, draft_mail, label_mail, delete_mail),
    MailSeeder,
)
