"""Cloud only: the cloud model takes every step, and everything crosses. No edge model runs."""

from __future__ import annotations

from ec2_env.strategy import SHARING, Always, Strategy, StrategyMaker, flags, full_name, sharing


def make(options: str) -> Strategy:
    """Takes the options `redacted` (the transcript crosses with placeholders) and `relevant` (only part of it does)."""
    chosen = flags(options, *SHARING)
    return Always(name=full_name("cloud_only", chosen), decision=sharing("act", chosen), uses_edge=False)


STRATEGY = StrategyMaker(make=make, about="the cloud model takes every step; everything crosses")
