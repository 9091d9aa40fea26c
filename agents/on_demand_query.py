"""On-demand query: the edge model asks a question when it wants help, and only what it wrote crosses."""

from __future__ import annotations

from dataclasses import dataclass

from ec2_env.actions import InvokeCloud
from ec2_env.prompts import ADVICE_MARK, CLOUD_DOWN
from ec2_env.strategy import Choice, Decision, Strategy, StrategyMaker, View, flags

ATTEMPTS = 3
"""Requests that failed in a row, after which the edge asks no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDemandQuery:
    """Lets the edge model write to the cloud.

    A model that tells whether it wants help is asked for its question when it does. One that does not tell is asked before every
    step, except right after a question, and may decline; each time is one more completion of the edge model.

    Attributes:
        redacted: Whether the question crosses with placeholders.
    """

    redacted: bool = False
    uses_edge: bool = True

    @property
    def name(self) -> str:
        return "on_demand_query" + (":redacted" if self.redacted else "")

    def decide(self, view: View) -> Choice:
        """Returns a request that holds the edge model's question alone; EDGE if it has none."""
        if _given_up(view):
            return Decision.EDGE
        wants_help = view.wish()
        if wants_help is None:
            wants_help = not view.decisions or view.decisions[-1] is Decision.EDGE
        question = view.write("question") if wants_help else ""
        return InvokeCloud(request=question, mode="advise", share="request", redact=self.redacted) if question else Decision.EDGE


def _given_up(view: View) -> bool:
    """Says whether the last requests have all failed."""
    heard = [str(message["content"]) for message in view.messages[2:] if message.get("role") == "user"]
    answers = [text for text in heard if text.startswith((ADVICE_MARK, CLOUD_DOWN))]
    return len(answers) >= ATTEMPTS and all(text.startswith(CLOUD_DOWN) for text in answers[-ATTEMPTS:])


def make(options: str) -> Strategy:
    """Takes the option `redacted`."""
    return OnDemandQuery(redacted="redacted" in flags(options, "redacted"))


STRATEGY = StrategyMaker(make=make, about="the edge writes a question when it wants to; only the question crosses")
