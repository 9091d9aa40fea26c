"""What a policy sees of an episode before it decides: numbers for classical learners, a short text for language models.

Everything here can be known beside the data: no solution, no grade, no list of what is sensitive.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ec2_env.cloud.payload import message_text
from ec2_env.cloud.tokens import count
from ec2_env.reward import RewardWeights
from ec2_env.session import Session
from ec2_env.strategy import Decision

NAMES = (
    "step",
    "steps_since_cloud",
    "entropy",
    "wants_help",
    "commits",
    "last_call_failed",
    "repeated_calls",
    "planned",
    "advised",
    "cloud_acts",
    "transcript_tokens",
    "amounts",
    "private_values",
    "private_values_not_sent",
    "transcript_sent",
    "written",
    "budget_left",
    "exposure_left",
    "cost_of_acting",
    "chinese",
    "cost_weight",
    "privacy_weight",
)
"""Name of each feature, in order. All are scaled to about 0 to 1 and clipped to [-1, 5]; unknown signals are -1."""

_LONG_NUMBER = re.compile(r"\d[\d -]{7,}\d")
_AMOUNT = re.compile(r"[$¥€元]|\d\.\d\d(?!\d)|\d,\d{3}(?!\d)")
_SIGNS = ("@", "$", "¥", "€", "元", "sk_")


@lru_cache(maxsize=20_000)
def private_looking(text: str) -> int:
    """Returns how many values in a text look private, counted cheaply: addresses, money, keys, numbers of nine digits or more."""
    return sum(map(text.count, _SIGNS)) + len(_LONG_NUMBER.findall(text))


@lru_cache(maxsize=20_000)
def amounts(text: str) -> int:
    """Returns how many marks of money a text holds: currency signs, and numbers with cents or with thousands set off."""
    return len(_AMOUNT.findall(text))


def budget_left(session: Session) -> float:
    """Returns the unspent share of the cap on the cloud bill, 0 to 1; 1.0 without a cap, 0.0 for a cap of nothing."""
    cap = session.gateway.settings.max_usd if session.gateway is not None else None
    return 1.0 if cap is None else _left(float(session.meter.cloud_usd), float(cap))


def exposure_left(session: Session) -> float:
    """Returns the unused share of the cap on exposure, 0 to 1; 1.0 without a cap, 0.0 for a cap of nothing."""
    cap = session.gateway.settings.max_exposure if session.gateway is not None else None
    if cap is None:
        return 1.0
    units, levels = session.episode.units, session.levels
    whole = sum(unit.weight for unit in units)
    return _left(sum(unit.weight * levels.get(unit.id, 0.0) for unit in units) / whole if whole else 0.0, float(cap))


def _left(used: float, cap: float) -> float:
    return max(0.0, 1 - used / cap) if cap else 0.0


def commits(session: Session, tool: str | None) -> float:
    """Returns 1.0 if a call of a tool changes something or finishes, 0.0 if it only looks, -1.0 if the tool is not known."""
    if tool is None:
        return -1.0
    known = session.tools.tools.get(tool)
    return float(tool == "finish" or (known is not None and known.write))


class Watcher:
    """Keeps running counts over a transcript, so that a step costs time in proportion to what is new.

    Attributes:
        tokens: Tokens of the transcript, by the cloud's vocabulary.
        private: Number of values that look private.
        amounts: Number of marks of money in results, see `amounts`.
        repeats: Calls that were made before in the same words.
    """

    def __init__(self) -> None:
        self.tokens = 0
        self.private = 0
        self.amounts = 0
        self.repeats = 0
        self._read = 0
        self._counts: tuple[int, ...] = ()
        self._keys: frozenset[str] = frozenset()
        self._records = 0

    def fork(self) -> Watcher:
        """Returns an independent copy."""
        other = Watcher.__new__(Watcher)
        other.__dict__.update(self.__dict__)
        return other

    def watch(self, session: Session) -> None:
        """Takes in what is new in the session."""
        family = session.gateway.card.family if session.gateway is not None else "o200k"
        for message in session.messages[self._read :]:
            text = message_text(message)
            found = private_looking(text)
            self.tokens += count(text, family)
            self.private += found
            self.amounts += amounts(text) if message.get("role") == "tool" else 0
            self._counts = (*self._counts, found)
        self._read = len(session.messages)
        for record in session.records[self._records :]:
            self.repeats += record.key in self._keys
            self._keys |= {record.key}
        self._records = len(session.records)

    def not_sent(self, sent: int) -> int:
        """Returns how many private-looking values stand in messages after the first `sent`."""
        return sum(self._counts[sent:])


def features(
    session: Session, watcher: Watcher, decisions: Sequence[Decision], sent: int, weights: RewardWeights, reference_usd: float
) -> tuple[float, ...]:
    """Returns the numbers named by `NAMES`.

    Args:
        session: The episode.
        watcher: Its running counts, up to date.
        decisions: Decisions so far.
        sent: Number of messages that have crossed in the clear.
        weights: The reward's weights, so that one policy can serve many preferences.
        reference_usd: Unit of cost.
    """
    signals = session.signals()
    since = next((n for n, d in enumerate(reversed(decisions)) if d is not Decision.EDGE), len(decisions))
    acts = sum(d in (Decision.ACT, Decision.ACT_REDACTED) for d in decisions)
    advised = sum(d in (Decision.ADVISE, Decision.ADVISE_REDACTED) for d in decisions)
    last_failed = bool(session.records) and not session.records[-1].ok
    values = (
        session.step / session.max_steps,
        since / 10,
        -1.0 if signals.entropy is None else signals.entropy / 3,
        -1.0 if signals.wants_help is None else float(signals.wants_help),
        commits(session, signals.tool),
        float(last_failed),
        watcher.repeats / 3,
        float(Decision.PLAN in decisions),
        advised / 3,
        acts / 10,
        watcher.tokens / 8_000,
        watcher.amounts / 20,
        watcher.private / 40,
        watcher.not_sent(sent) / 20,
        sent / max(1, len(session.messages)),
        float(any(record.wrote for record in session.records)),
        budget_left(session),
        exposure_left(session),
        acting_usd(session, watcher) / reference_usd * 5,
        float(session.episode.language == "zh"),
        weights.cost,
        weights.privacy,
    )
    return tuple(min(5.0, max(-1.0, value)) for value in values)


def acting_usd(session: Session, watcher: Watcher) -> float:
    """Returns a rough price in US dollars of letting the cloud act now: the transcript, half of it cached, and a short reply."""
    if session.gateway is None:
        return 0.0
    rates = session.gateway.rates
    mean = (rates.input_usd_per_mtok + rates.cached_input_usd_per_mtok) / 2
    return (watcher.tokens * float(mean) + 300 * float(rates.output_usd_per_mtok)) / 1e6


ENTROPY_WORDS = ((1.0, "very low"), (1.3, "low"), (1.7, "medium"), (2.1, "high"), (9.0, "very high"))
"""Upper bounds in nats, and words."""
OPTIONS = "Next step: 0 edge, 1 plan, 2 advice, 3 redacted advice, 4 cloud, 5 redacted cloud.\n"
"""First line of every prompt, so that a server can cache it."""
MATTERS = ((0.0, "not"), (0.1, "little"), (0.4, "some"), (1.0, "much"))
"""Upper bounds of a reward weight, and words."""
EXPOSURE_WORDS = ((0.0, "used up"), (0.4, "short"), (0.99, "begun"))
"""Upper bounds of the unused share of a cap on exposure, and words."""
_PREFERENCE = "Cost matters "
_DONE = ("edge", "plan", "advice", "redacted advice", "cloud", "redacted cloud")


def prompt(
    session: Session, watcher: Watcher, decisions: Sequence[Decision], values: Sequence[float], weights: RewardWeights
) -> str:
    """Returns the state in words, about 80 tokens, for a language-model policy that answers with a digit from 0 to 5.

    Numbers come as words for ranges: small models read them better, and many states share a prompt, which is then decided once.
    """
    seen = dict(zip(NAMES, values, strict=True))
    last = session.records[-1] if session.records else None
    last_call = "none" if last is None else f"{last.name} {'ok' if last.ok else 'failed'} by {last.by}"
    used = [(number, decision) for number, decision in enumerate(reversed(decisions)) if decision is not Decision.EDGE]
    cloud = "never" if not used else f"{_DONE[used[0][1]]} {word(used[0][0], ((0, 'just now'), (2, 'recently')), 'long ago')}"
    few = ((0, "no"), (3, "few"), (10, "some"))
    step = word(session.step, ((0, "first"), (2, "early"), (session.max_steps // 3, "middle")), "late")
    entropy = "unknown" if seen["entropy"] < 0 else word(seen["entropy"] * 3, ENTROPY_WORDS, "extreme")
    capped = session.gateway is not None and session.gateway.settings.max_exposure is not None
    exposure = f", exposure budget {word(seen['exposure_left'], EXPOSURE_WORDS, 'whole')}" if capped else ""
    unsent = word(round(seen["private_values_not_sent"] * 20), few, "many")
    next_call = {1.0: "about to change something", 0.0: "about to look"}.get(seen["commits"], "next call unknown")
    return (
        f"{OPTIONS}{session.episode.task.title}, {'Chinese' if session.episode.language == 'zh' else 'English'}, {step} step.\n"
        f"Entropy {entropy}, {'help wanted' if seen['wants_help'] > 0 else 'no help wanted'}, {next_call}. "
        f"Last {last_call}{', repeated' if watcher.repeats else ''}. Cloud: {cloud}{', planned' if seen['planned'] else ''}.\n"
        f"{'Written' if seen['written'] else 'Nothing written'}. Amounts: {word(watcher.amounts, few, 'many')}. "
        f"Private: {word(watcher.private, few, 'many')}, {unsent} unsent. "
        f"Price {word(seen['cost_of_acting'] / 5, ((0.05, 'low'), (0.1, 'medium')), 'high')}"
        f"{'' if seen['budget_left'] > 0.5 else ', budget short'}{exposure}. "
        f"{_preference(weights)}"
    )


def preferring(prompt: str, weights: RewardWeights) -> str:
    """Returns a prompt of `prompt` as it would be under other weights of the reward."""
    return prompt[: prompt.rindex(_PREFERENCE)] + _preference(weights)


def _preference(weights: RewardWeights) -> str:
    return f"{_PREFERENCE}{word(weights.cost, MATTERS, 'most')}, privacy {word(weights.privacy, MATTERS, 'most')}.\nChoice:"


def word(value: float, words: Sequence[tuple[float, str]], beyond: str) -> str:
    """Returns the first word whose bound is at least the value, or `beyond`."""
    return next((name for bound, name in words if value <= bound), beyond)
