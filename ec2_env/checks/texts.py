"""Texts that had to be written: mails, and rows of any other table that hold a text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ec2_env.facts import labeled, same, stated, strangers
from ec2_env.task import Grading
from ec2_env.workspace.store import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """A mail that had to be sent or drafted; earns its share if the recipients are exactly right.

    Attributes:
        to: All addresses it may go to, copies included: exactly these.
        folder: "sent" or "drafts".
        kind: "new", "reply" or "forward"; None accepts any.
        source: Id of the mail that it answers or forwards, or several ids of which any will do (None among them: it need not
            answer any); None accepts any.
        states: Facts that its text has to hold, each on token boundaries; the share earned is that of the facts found. A small
            number is no such fact, as it stands in many texts by chance: use `lines`.
        lines: Facts that have to stand alone after their label and a colon, on the only line with that label; a sign of percent
            after a float is no part of it.
        avoids: Look-alike facts that it must not hold: one of them and the facts earn nothing.
        only: Kinds of values ("date", "time", "money") of which its own text may hold none but those in `states` and `allows`,
            so that listing the possible answers earns nothing. Quoted lines ("> ...") are not its own text.
        allows: Values that may stand in it without being asked for.
        attachments: Paths that have to be attached; None accepts any.
    """

    to: Collection[str]
    folder: str = "sent"
    kind: str | None = None
    source: str | Collection[str | None] | None = None
    states: Sequence[object] = ()
    lines: Mapping[str, object] = field(default_factory=dict)
    avoids: Sequence[object] = ()
    only: Collection[str] = ()
    allows: Sequence[object] = ()
    attachments: Collection[str] | None = None

    def __call__(self, state: Grading) -> float:
        best: tuple[float, int] | None = None
        for index, change in state.unclaimed():
            if self.fits(change):
                share = self.share(change.after)
                if best is None or share > best[0]:
                    best = (share, index)
        if best is None:
            return 0.0
        state.claimed.add(best[1])
        return best[0]

    def fits(self, change: Change) -> bool:
        """Says whether a change is this mail, whatever its text says."""
        mail = change.after
        sources = {self.source} if isinstance(self.source, str) else self.source
        return (
            change.table == "mail"
            and change.kind == "added"
            and mail.folder == self.folder
            and {*mail.to, *mail.cc} == {address.lower() for address in self.to}
            and (self.kind is None or mail.kind == self.kind)
            and (sources is None or mail.source in sources)
            and (self.attachments is None or set(mail.attachments) == set(self.attachments))
        )

    def share(self, mail: Any) -> float:
        """Returns the share of the facts that a mail states, or 0 if it holds what it must not."""
        text = f"{mail.subject}\n{mail.body}"
        if self.only or self.lines:
            text = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(">"))
        if strangers(text, self.only, [*self.states, *self.allows]):
            return 0.0
        share, parts = stated(text, self.states, self.avoids), len(self.states) + len(self.lines)
        if not self.lines:
            return share
        right = 0
        for label, value in self.lines.items():
            found = labeled(text, label)
            right += len(found) == 1 and same(found[0].removesuffix("%") if isinstance(value, float) else found[0], value)
        return 0.0 if (self.states or self.avoids) and not share else (share * len(self.states) + right) / parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A row with a text that had to be added: a chat message, a comment, a note. The facts are graded as in `Posted`.

    Attributes:
        table: Name of the table.
        fields: Values that say where it had to be written (channel, thread, ticket); all of them have to be right.
        text: Name of the field that holds the text.
        states: Facts that the text has to hold; the share earned is that of the facts found.
        lines: Facts that have to stand alone after their label and a colon.
        avoids: Look-alike facts that it must not hold.
        only: Kinds of values of which it may hold none but those in `states` and `allows`.
        allows: Values that may stand in it without being asked for.
    """

    table: str
    fields: Mapping[str, Any]
    text: str = "text"
    states: Sequence[object] = ()
    lines: Mapping[str, object] = field(default_factory=dict)
    avoids: Sequence[object] = ()
    only: Collection[str] = ()
    allows: Sequence[object] = ()

    def __call__(self, state: Grading) -> float:
        found = [
            (self.share(str(getattr(change.after, self.text))), -index)
            for index, change in state.unclaimed()
            if change.table == self.table
            and change.kind == "added"
            and all(getattr(change.after, name) == value for name, value in self.fields.items())
        ]
        if not found:
            return 0.0
        share, index = max(found)
        state.claimed.add(-index)
        return share

    def share(self, text: str) -> float:
        """Returns the share of the facts that a text states, or 0 if it holds what it must not."""
        own = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(">"))
        held = stated(own, self.states, self.avoids)
        if not held or strangers(own, self.only, [*self.states, *self.allows]):
            return 0.0
        right = sum(len(found := labeled(own, label)) == 1 and same(found[0], value) for label, value in self.lines.items())
        parts = len(self.states) + len(self.lines)
        return (held * len(self.states) + right) / parts if parts else 1.0
