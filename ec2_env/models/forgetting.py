"""What a simulated model no longer sees of a long transcript: the oldest results, as a chat cut to a window loses them."""

from __future__ import annotations

from collections.abc import Sequence

from ec2_env.actions import Finish, ToolCall, action_text
from ec2_env.models.lookback import linked
from ec2_env.models.window import estimated_tokens
from ec2_env.progress import Progress
from ec2_env.trace import ToolRan


def is_forgotten(action: ToolCall | Finish, progress: Progress, window: float) -> bool:
    """Says whether a call takes a figure, address or id that stands only in results that have fallen out of the window.

    Args:
        action: The call.
        progress: The episode.
        window: Tokens of results that the model sees, counted as `estimated_tokens` does.
    """
    results = [event.result for event in progress.events if isinstance(event, ToolRan)]
    seen, lost = cut(results, window)
    if not lost:
        return False
    shown = "\n".join([progress.episode.instruction, *seen])
    return any(found not in shown and any(found in result for result in lost) for found in linked(action_text(action)))


def read_so_far(progress: Progress, before: tuple[int, int]) -> tuple[int, int]:
    """Returns how many events there are, and how many characters of results: these are at least as many as tokens.

    Args:
        progress: The episode.
        before: What this returned for an earlier state of the episode; (0, 0) at first.
    """
    looked, chars = before
    new = progress.events[looked:]
    return looked + len(new), chars + sum(len(event.result) for event in new if isinstance(event, ToolRan))


def cut(results: Sequence[str], window: float) -> tuple[Sequence[str], Sequence[str]]:
    """Returns the results that are seen and those that are not: the oldest are lost first, the newest never."""
    room, first = window, len(results)
    while first and (first == len(results) or room >= estimated_tokens(results[first - 1])):
        first -= 1
        room -= estimated_tokens(results[first])
    return results[first:], results[:first]
