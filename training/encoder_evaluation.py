"""How policies with an encoder do; episodes run side by side, so that they share its passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from ec2_env.rollout import EpisodeKey
from ec2_env.training.encoder_policy import EncoderPolicy
from ec2_env.training.evaluation import Score, evaluate
from ec2_env.training.features_policy import Preference
from ec2_env.training.preferences import SWEEP
from ec2_env.training.validation import PREFERENCES

TOGETHER = 100
"""Episodes side by side."""


def played_by(name: str, policy: EncoderPolicy, settings: Mapping[str, Any], keys: Sequence[EpisodeKey]) -> Score:
    """Plays episodes with a policy."""
    parts = [evaluate(name, policy.choose, settings, keys[start : start + TOGETHER]) for start in range(0, len(keys), TOGETHER)]
    return Score(
        name=name,
        returns=tuple(value for part in parts for value in part.returns),
        parts=tuple(one for part in parts for one in part.parts),
        decisions={number: sum(part.decisions[number] for part in parts) for number in parts[0].decisions},
    )


def swept_by(
    policy: EncoderPolicy, settings: Mapping[str, Any], keys: Sequence[EpisodeKey], sweep: Sequence[Preference] = SWEEP
) -> list[Score]:
    """Plays the episodes once for each preference."""
    return [
        played_by(f"cost={wanted.cost:g},privacy={wanted.privacy:g}", policy.told(wanted), settings, keys) for wanted in sweep
    ]


def worth(policy: EncoderPolicy, settings: Mapping[str, Any], keys: Sequence[EpisodeKey]) -> tuple[float, ...]:
    """Returns the mean return under each of the preferences that candidates are compared under."""
    return tuple(
        fmean(part.task - wanted.cost * part.cost - wanted.privacy * part.exposure for part in score.parts)
        for wanted, score in zip(PREFERENCES, swept_by(policy, settings, keys, PREFERENCES), strict=True)
    )
