"""Cloud only: the cloud model takes every step, and everything crosses. No edge model runs."""

from __future__ import annotations

from ec2_env.strategy import Always, Decision, Strategy, StrategyMaker, flags


def make(options: str) -> Strategy:
    """Takes the option `redacted`: the transcript crosses with placeholders."""
    if "redacted" in flags(options, "redacted"):
        return Always(name="cloud_only:redacted", decision=Decision.ACT_REDACTED, uses_edge=False)
    return Always(name="cloud_only", decision=Decision.ACT, uses_edge=False)


STRATEGY = StrategyMaker(make=make, about="the cloud model takes every step; everything crosses")
