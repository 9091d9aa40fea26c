"""Graders of graders: gates, whole parts, means."""

from __future__ import annotations

from collections.abc import Callable

from ec2_env.task import Grading

Grader = Callable[[Grading], float]
"""Returns the share that was earned, 0 to 1; claims the changes that it accounts for."""


def gated(grader: Grader, *gates: Grader) -> Grader:
    """Returns a grader that earns nothing unless every gate is fully earned: no pay for a report on work that was not done.

    Gates run on their own: a gate that claims changes has to be listed as a check as well, before this one.
    """

    def graded(state: Grading) -> float:
        kept = set(state.claimed)
        for gate in gates:
            state.claimed.clear()
            if gate(state) < 1.0:
                state.claimed |= kept
                return 0.0
        state.claimed.clear()
        state.claimed |= kept
        return grader(state)

    return graded


def whole(grader: Grader) -> Grader:
    """Returns a grader that earns all or nothing: a part of the work that does not count by itself."""
    return lambda state: float(grader(state) >= 1.0)


def mostly(grader: Grader) -> Grader:
    """Returns a gate that is open once half of a grader is earned: one slip among many does not cost the report as well."""
    return lambda state: float(grader(state) >= 0.5)


def every(*graders: Grader) -> Grader:
    """Returns the mean of several graders, all of which run and claim."""

    def graded(state: Grading) -> float:
        return sum(grader(state) for grader in graders) / len(graders)

    return graded
