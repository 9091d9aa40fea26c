"""How sure a model is of its first token."""

from __future__ import annotations

import math
from collections.abc import Iterable


def top_entropy(logprobs: Iterable[float]) -> float | None:
    """Returns the Shannon entropy in nats of the k most likely tokens, renormalized to sum to 1.

    H = -sum(q log q) with q = p / sum(p), so the result lies in [0, log k].

    Args:
        logprobs: Natural logarithms of the probabilities, in any order and up to a common constant; minus infinity and NaN
            count as probability 0.

    Returns:
        None if no token has a positive probability.
    """
    finite = [value for value in logprobs if math.isfinite(value)]
    if not finite:
        return None
    peak = max(finite)
    weights = [math.exp(value - peak) for value in finite]
    total = math.fsum(weights)
    shares = [weight / total for weight in weights]  # the least numbers there are become 0 here
    return max(0.0, -math.fsum(share * math.log(share) for share in shares if share > 0.0))
