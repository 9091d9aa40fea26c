"""Forms that had to be filed and records of a site that had to be changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ec2_env.facts import same
from ec2_env.task import Grading


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A web form that had to be filed; earns the share of the right fields, and nothing if one of the keys is wrong.

    Attributes:
        form: Address of the form.
        values: Expected value of each field; a field that is not named here has to be empty.
        keys: Fields that say what it is about, such as the order number.
        free: Fields whose text is not compared.
    """

    form: str
    values: Mapping[str, object]
    keys: Collection[str] = ()
    free: Collection[str] = ()

    def __call__(self, state: Grading) -> float:
        best: tuple[float, int] | None = None
        for index, change in state.unclaimed():
            if change.table == "submission" and change.kind == "added" and change.after.form == self.form:
                share = _fields_right(dict(change.after.values), self.values, self.keys, self.free)
                if share and (best is None or share > best[0]):
                    best = (share, index)
        if best is None:
            return 0.0
        state.claimed.add(best[1])
        return best[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordEdited:
    """A record of a site's server that had to be changed; earns the share of the right fields, less one for each other field.

    Attributes:
        id: Which record.
        values: New value of each field that had to change.
    """

    id: str
    values: Mapping[str, object]

    def __call__(self, state: Grading) -> float:
        for index, change in state.unclaimed():
            if change.table == "webrecord" and change.id == self.id and change.kind == "changed":
                state.claimed.add(index)
                before: dict[str, str] = dict(change.before.values)
                after: dict[str, str] = dict(change.after.values)
                right = sum(same(after.get(name), value) for name, value in self.values.items())
                wrong = sum(after[name] != before[name] for name in after if name not in self.values)
                return max(0.0, (right - wrong) / len(self.values))
        return 0.0


def _fields_right(given: Mapping[str, str], values: Mapping[str, object], keys: Collection[str], free: Collection[str]) -> float:
    if any(not same(given.get(name), values[name]) for name in keys):
        return 0.0
    right = sum(same(given.get(name), value) for name, value in values.items())
    extra = sum(1 for name, value in given.items() if value and name not in values and name not in free)
    return max(0.0, (right - extra) / len(values))


@dataclass(frozen=True, slots=True)
class ReportedConfirmation:
    """A reported confirmation number: that of a submission which the agent filed with a form.

    Attributes:
        key: Slot of the report.
        form: Address of the form.
    """

    key: str
    form: str

    def __call__(self, state: Grading) -> float:
        given = state.finish.data.get(self.key) if state.finish is not None else None
        filed = (c.id for c in state.changes if c.table == "submission" and c.kind == "added" and c.after.form == self.form)
        return float(any(same(given, number) for number in filed))
