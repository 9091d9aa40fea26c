"""Edge only: the cloud is never used, and nothing leaves."""

from __future__ import annotations

from ec2_env.strategy import Always, Decision, Strategy, StrategyMaker, flags


def make(options: str) -> Strategy:
    """Takes no options."""
    flags(options)
    return Always(name="edge_only", decision=Decision.EDGE)


STRATEGY = StrategyMaker(make=make, about="the edge model does everything; nothing crosses")
