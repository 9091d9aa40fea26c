"""Reads the trajectories of a run folder for a dataset.

They may come from anywhere, so nothing is taken on trust: an episode is taken if its calls, made again on a fresh workspace,
bring what is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec

from ec2_env.actions import ToolCall
from ec2_env.bench.replaying import replay_calls
from ec2_env.bench.stored_runs import StoredRun, open_run
from ec2_env.bench.strict import label
from ec2_env.cloud.gateway import CloudSettings
from ec2_env.errors import ConfigurationError, EC2Error
from ec2_env.models.base import Message, ModelCard, Reply
from ec2_env.prompts import CLOUD_DOWN
from ec2_env.session import Session, json_text, written_text
from ec2_env.task import recent_episode, tasks
from ec2_env.trace import CloudCall, Decided, EdgeTurn, ToolRan, Trajectory, from_json
from ec2_env.training.collect_conversations import request_of
from ec2_env.workspace.world import Language, Split

LARGEST_LINE = 16 << 20
"""Bytes of one trajectory; longer ones are refused unread."""
MOST_EVENTS = 20_000
MAX_NUMBER = 2**31
"""Seeds and trials are below this."""


def stored_lines(run: StoredRun) -> Iterator[tuple[int, bytes]]:
    """Yields line numbers, from 1, and the trajectories of a run as they stand there; a last line that was cut off is left out.

    Raises:
        ConfigurationError: if a line is too long.
    """
    assert run.kept is not None
    with run.kept.open("rb") as stream:
        for number in range(1, 1 << 62):
            line = stream.readline(LARGEST_LINE + 1)
            if len(line) > LARGEST_LINE:
                raise ConfigurationError(f"{run.kept}: line {number} has more than {LARGEST_LINE:,} bytes")
            if not line.endswith(b"\n"):
                return
            yield number, line


def open_stored(path: Path, allow_test: bool) -> StoredRun:
    """Opens a run folder whose trajectories can be collected.

    Raises:
        ConfigurationError: if it is none, kept no trajectories, is of the test split though that was not allowed, or its manifest
            is damaged.
    """
    run = open_run(path, "collected")
    if run.kept is None:
        raise ConfigurationError(f"{path} kept no trajectories; run it with: ec2-env bench --trajectories")
    try:
        split, _ = run.settings["split"], tuple(run.settings["strategies"])
        run.pairs()
        cards = [run.card(spec) for spec in (*run.settings["edges"], run.settings["cloud"])]
    except (KeyError, TypeError, ValueError, AttributeError) as error:  # msgspec's errors are ValueErrors
        raise ConfigurationError(f"{path}: the manifest is damaged ({error!r})") from error
    for name in (*run.settings["edges"], run.settings["cloud"], *(card.name for card in cards), *run.settings["strategies"]):
        label(name, f"{path}: a name in the manifest", 1, 200)
    if split not in ("train", "test"):
        raise ConfigurationError(f"{path}: the manifest is damaged (split is {split!r:.40}, expected 'train' or 'test')")
    if split == "test" and not allow_test:
        raise ConfigurationError(f"{path} is of the test split; training on it spoils it. Say --allow-test if you mean it")
    return run


def stored_episode(line: bytes, split: str, where: str) -> tuple[Trajectory, list[Message]]:
    """Returns a trajectory and its transcript.

    Args:
        line: The trajectory.
        split: The split that it has to be of.
        where: File and line, for errors.

    Raises:
        ConfigurationError: if it is no trajectory, of another split, or not what its calls bring on a fresh workspace.
    """
    with _told(where):
        found = from_json(line)
        _check_names(found, split)
        differences = replay_calls(found)
        if differences:
            raise ConfigurationError(f"not what its calls bring on a fresh workspace: {differences[0]}")
        return found, _transcript(found)


def _check_names(found: Trajectory, split: str) -> None:
    if found.split != split:
        raise ConfigurationError(f"it is of the split {found.split!r}, and the run is of {split!r}")
    if found.language not in tasks.get(found.task).languages:
        raise ConfigurationError(f"{found.task} has no language {found.language!r}")
    for name in ("seed", "trial"):
        if not 0 <= getattr(found, name) < MAX_NUMBER:
            raise ConfigurationError(f"{name} is {getattr(found, name)}, expected 0 to {MAX_NUMBER - 1}")
    for name in ("strategy", "edge", "cloud", "version"):
        if getattr(found, name) is not None:
            label(getattr(found, name), name, 1, 200)
    if len(found.events) > MOST_EVENTS:
        raise ConfigurationError(f"{len(found.events)} events; at most {MOST_EVENTS} are read")


@contextmanager
def _told(where: str) -> Iterator[None]:
    """Says where something was that cannot be used.

    Raises:
        ConfigurationError: instead of anything that a trajectory from elsewhere may cause.
    """
    try:
        yield
    except EC2Error as error:
        raise ConfigurationError(f"{where}: {error}") from error
    except (msgspec.DecodeError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ConfigurationError(f"{where}: no trajectory that can be used ({error!r:.200})") from error


class _Recorded:
    """A cloud that says again what it said."""

    card = ModelCard(name="recorded", family="o200k", parameters=None, price="gpt-5.4", simulated=True)

    def __init__(self) -> None:
        self.text = ""

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        """Returns the recorded text."""
        return Reply(text=self.text)


def _transcript(found: Trajectory) -> list[Message]:
    """Returns the transcript of an episode, made anew of its events; placeholders in replies are mapped back on the way."""
    language, split = cast(Language, found.language), cast(Split, found.split)
    cloud = _Recorded()
    session = Session(recent_episode(found.task, found.seed, language, split), cloud=cloud, settings=CloudSettings())
    decided: Decided | None = None
    for event in found.events:
        match event:
            case EdgeTurn(probe=False, redaction=False) if event.text and (decided is None or decided.step != event.step):
                if written := written_text(event.text, len(event.text)):
                    session.messages.append({"role": "assistant", "content": written})
            case Decided():
                decided = event
            case CloudCall():
                _ask_again(session, cloud, event, decided)
            case ToolRan():
                _note(session, event)
    return session.messages


def _ask_again(session: Session, cloud: _Recorded, event: CloudCall, decided: Decided | None) -> None:
    request = request_of(decided) if decided is not None and decided.step == event.step else None
    if request is None:
        raise ConfigurationError(f"step {event.step}: the cloud was used without a decision to do so")
    if event.status != "ok":
        session.messages.append({"role": "user", "content": f"{CLOUD_DOWN} {event.problem}"})
        return
    cloud.text = event.reply
    answer = session.invoke(request)
    if answer is not None and request.mode != "act":
        session.hear(request, answer)


def _note(session: Session, event: ToolRan) -> None:
    """Writes a call into the transcript as it was recorded; it need not be made again, as that has been checked."""
    call = ToolCall(event.name, event.arguments)
    made = {"id": "", "type": "function", "function": {"name": call.name, "arguments": json_text(call.arguments)}}
    session.messages.append({"role": "assistant", "content": "", "tool_calls": [made]})
    session.messages.append({"role": "tool", "tool_call_id": "", "content": event.result})
