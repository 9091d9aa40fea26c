"""What a task costs when the cloud does all of it: the unit in which the reward counts money."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

from ec2_env.actions import Finish, dump_action
from ec2_env.cloud.gateway import CloudSettings, call_text
from ec2_env.cloud.metering import PromptCache
from ec2_env.cloud.payload import texts_of
from ec2_env.cloud.prices import Price, cost_usd, price
from ec2_env.cloud.tokens import count
from ec2_env.errors import ConfigurationError
from ec2_env.models.base import ModelCard, Usage
from ec2_env.models.walker import Walker
from ec2_env.session import Session
from ec2_env.task import build_episode
from ec2_env.workspace.world import Language

SEEDS = (0, 1, 2)
"""Train seeds whose mean price is the reference."""
THINKING_TOKENS = 340
"""Output tokens reckoned for each turn beside the call itself."""


@lru_cache(maxsize=4096)
def reference_usd(task: str, language: Language, cloud: ModelCard, rates: Price | None = None) -> float:
    """Returns the mean price in US dollars of the task's own solution, played by the cloud model at every step.

    Depends on the task, the language and the price of the model, and not on the episode at hand: weights then mean the same in
    every episode of a task.

    Args:
        task: Name of the task.
        language: Its language.
        cloud: The cloud model.
        rates: Prices to take instead of those that the package has of the model.

    Raises:
        ConfigurationError: if the model has no price.
    """
    if rates is None:
        if cloud.price is None:
            raise ConfigurationError(f"cloud model {cloud.name!r} has no price; name one, for example with @price=gpt-5.4")
        rates = price(cloud.price)
    total = Decimal(0)
    for seed in SEEDS:
        session = Session(build_episode(task, seed, language, "train"), cloud=None, settings=CloudSettings())
        walker, cache = Walker(session.episode), PromptCache()
        while (step := walker.step) is not None:
            raw, cached = cache.split(texts_of(session.messages, session.tools.schemas_with_finish), cloud.family)
            output = count(call_text(dump_action(step.action)), cloud.family) + THINKING_TOKENS
            total += cost_usd(Usage(raw=raw, cached=cached, output=output), rates)
            result = session.call(step.action, "cloud")
            if isinstance(step.action, Finish):
                break
            walker.advance(result.value)
    return float(total / len(SEEDS))
