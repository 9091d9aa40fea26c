"""Reads result folders of the study's own harness; docs/interchange.md describes their form.

Only figures are taken. Texts and sensitive values, which the folders hold as well, are not.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ec2_env.bench.grid import Cell
from ec2_env.errors import ConfigurationError
from ec2_env.models.base import Usage

MODES: Mapping[str, str] = {
    "local-only": "edge_only",
    "cloud-only": "cloud_only",
    "pipeline-plan-executor": "sketch_guided",
    "query-router": "task_routing",
    "step-router": "step_routing",
    "advisor": "adaptive_assistance",
    "on-demand": "on_demand",
    "orchestrator-v1": "orchestrator_v1",
}
"""Run modes of the harness, and the strategies of this package that they correspond to; the last two keep their names."""
DEPTH = 5
"""Folders below the given one that are searched."""
LARGEST = 32 << 20
"""Bytes of a JSON file, or of a line of one, that are read."""
JUDGE_FAILED = ("privacy_judge_failed", "LLM judge returned no results")
_SUFFIX = re.compile(
    r"(?P<model>.+?)(?:_(?P<alone>cloud-only)|_ec_(?P<mode>on-demand|advisor|step-router|query-router|pipeline-plan-executor"
    r"|orchestrator-v1)(?:-(?P<other>.+?))?)?(?:_\d{8}_\d{4}_[0-9a-f]{6})?(?:_run(?P<run>\d+))?"
)


class Called(NamedTuple):
    """What one cloud call used. `written` are input tokens that went into the provider's cache; the harness bills none."""

    usage: Usage
    written: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """One repeat of one task.

    Attributes:
        place: Its folder.
        cell: Strategy and models, by short names; `cloud` is "" if no cloud model took part.
        task: Name of the task.
        run: Number of the repeat, from 1; 0 if the folder does not say.
        completion: Overall score, 0 to 1; None if the run has none.
        problem: Why it has none.
        privacy: Privacy score, 0 to 1; None if nothing was judged.
        judge_failed: Whether that is because the judge failed; the harness counts it as 0.
        leaks: Fields that the judge looked at, with their leak scores, 0 to 1.
        usage: What the cloud used, one entry for each call; a single one for all if only their sum is known.
        calls: Number of cloud calls.
        edge_tokens: Uncached input and output of the edge model; None if unknown.
        elapsed_s: Wall-clock seconds.
        turns: Turns of the main agent.
        sha256: Digest of the files that were read.
    """

    place: Path
    cell: Cell
    task: str
    run: int
    completion: float | None
    problem: str
    privacy: float | None
    judge_failed: bool
    leaks: tuple[tuple[str, float], ...]
    usage: tuple[Usage, ...]
    calls: int
    edge_tokens: int | None
    elapsed_s: float
    turns: int
    sha256: str


def read_folder(root: Path) -> list[Foreign]:
    """Returns every repeat of every task below a folder, in the order of the names.

    Raises:
        ConfigurationError: if there is none, or the run mode of one cannot be made out.
    """
    if not root.is_dir():
        raise ConfigurationError(f"there is no folder {root}; name an output folder of the harness")
    found = [_read(place, root) for place in _places(root)]
    if not found:
        raise ConfigurationError(
            f"{root} holds no result of the harness; expected folders TASK/REPEAT with score.json and usage.json in them"
        )
    return found


def _places(root: Path) -> Iterator[Path]:
    """Yields the folders with the result of one repeat. What agents left in `task_output` is not looked at."""
    for place, folders, files in os.walk(root):
        here = Path(place)
        folders[:] = sorted(name for name in folders if name != "task_output")
        if len(here.relative_to(root).parts) >= DEPTH:
            folders[:] = []
        if "score.json" in files or "usage.json" in files:
            folders[:] = []
            yield here


def _read(place: Path, root: Path) -> Foreign:
    digest = hashlib.sha256()
    score, usage, route = (_object(place / name, digest) for name in ("score.json", "usage.json", "task_route.json"))
    mode, cell, run = _setting(place, root)
    crossed = mode in ("cloud-only", "orchestrator-v1") or route.get("decision") == "CLOUD"
    calls = _called(place, mode, crossed, digest)
    number = len(calls)
    if crossed and not calls and usage:
        calls = [
            Called(_usage(usage, "input_tokens", "cache_read_tokens", "output_tokens"), _count(usage.get("cache_write_tokens")))
        ]
        number = _count(usage.get("request_count"))
    completion, problem = _completion(score)
    privacy, failed = _privacy(score, mode)
    return Foreign(
        place=place,
        cell=cell,
        task=place.parent.name,
        run=run,
        completion=completion,
        problem=problem,
        privacy=privacy,
        judge_failed=failed,
        leaks=tuple(_leaks(score)),
        usage=tuple(call.usage for call in calls),
        calls=number,
        edge_tokens=_edge_tokens(mode, usage, crossed, calls),
        elapsed_s=max(0.0, number_or_none(usage.get("elapsed_time")) or 0.0),
        turns=_count(usage.get("n_turns")) or _count(usage.get("request_count")),
        sha256=digest.hexdigest(),
    )


# -- which run it is


def _setting(place: Path, root: Path) -> tuple[str, Cell, int]:
    """Returns the run mode, the row and the number of the repeat, from the recorded command, else from the folder's name."""
    named = _SUFFIX.fullmatch(place.name)
    run = int(named["run"] or 0) if named else 0
    arguments = _command(place, root)
    mode = arguments.get("run_mode") or arguments.get("edge_cloud_mode")
    main, other = arguments.get("model"), arguments.get("cloud_model")
    if not isinstance(mode, str) or not isinstance(main, str):
        if named is None:
            raise ConfigurationError(f"{place} does not say how it was run: there is no run_command.json above it")
        mode = named["mode"] or named["alone"] or "local-only"
        main, other = named["model"], named["other"]
    if mode not in MODES:
        raise ConfigurationError(f"{place} was run in mode {mode!r}; the known ones are {', '.join(MODES)}")
    edge, cloud = (None, main) if mode == "cloud-only" else (other, main) if mode == "orchestrator-v1" else (main, other)
    strategy = MODES[mode]
    if mode == "step-router" and arguments.get("no_redact") is False:
        strategy += ":redacted"
    return mode, Cell(strategy, _short(edge) or None, _short(cloud)), run


def _command(place: Path, root: Path) -> Mapping[str, Any]:
    """Returns the arguments of the run, from the nearest `run_command.json` above a result."""
    for folder in (place, *place.parents):
        found = _object(folder / "run_command.json", hashlib.sha256()).get("args")
        if isinstance(found, dict):
            return found
        if folder == root:
            break
    return {}


def _short(model: object) -> str:
    """Returns the last part of a model's name: "qwen3.5-27b" for "vllm/Qwen/Qwen3.5-27B"."""
    return model.rpartition("/")[2].lower() if isinstance(model, str) else ""


# -- scores


def _completion(score: Mapping[str, Any]) -> tuple[float | None, str]:
    """Returns the overall score as the harness takes it: the mean of all numbers if none is named so; or what is missing."""
    if not score:
        return None, "no score.json that can be read"
    if "error" in score:
        return None, f"grading failed: {str(score['error'])[:120]}"
    numbers = [value for value in map(number_or_none, score.values()) if value is not None]
    overall = number_or_none(score.get("overall_score"))
    if overall is None and not numbers:
        return None, "score.json holds no number"
    return min(1.0, max(0.0, overall if overall is not None else sum(numbers) / len(numbers))), ""


def _privacy(score: Mapping[str, Any], mode: str) -> tuple[float | None, bool]:
    """Returns the privacy score, and whether its judge failed."""
    if "privacy_source" not in score and "privacy_score" not in score:
        return None, False
    found = number_or_none(score.get("privacy_score"))
    if mode == "local-only":
        return 1.0, False  # nothing crosses; the harness does not judge, and prints 100
    if found is not None and found <= 0 and not score.get("privacy_details"):
        reason = str(score.get("privacy_reason"))
        if any(text in reason for text in JUDGE_FAILED):
            return None, True
    return (None if found is None else min(1.0, max(0.0, found))), False


def _leaks(score: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    details = score.get("privacy_details")
    for one in details if isinstance(details, list) else ():
        leak = number_or_none(one.get("leak_score")) if isinstance(one, dict) else None
        if leak is not None:
            yield f"{str(one.get('entity_id'))[:60]}/{str(one.get('field'))[:60]}", min(1.0, max(0.0, leak))


# -- usage


def _called(place: Path, mode: str, crossed: bool, digest: Any) -> list[Called]:
    """Returns what each cloud call used: the turns of the transcript if all of it crossed, else the lines of the audit."""
    if mode == "local-only" or (mode == "query-router" and not crossed):
        return []
    name, read = ("chat.jsonl", _turn) if crossed else ("cloud_assistant_audit.jsonl", _audited)
    return list(_lines(place / name, read, digest))


def _lines(file: Path, read: Callable[[Mapping[str, Any]], Called | None], digest: Any) -> Iterator[Called]:
    if not file.is_file():
        return
    with file.open("rb") as stream:
        while line := stream.readline(LARGEST):
            digest.update(line)
            found = read(_parsed(line))
            if found is not None:
                yield found


def _turn(entry: Mapping[str, Any]) -> Called | None:
    message = entry.get("message")
    if entry.get("type") != "message" or not isinstance(message, dict) or message.get("role") != "assistant":
        return None
    usage = message.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Called(_usage(usage, "input", "cacheRead", "output"), _count(usage.get("cacheWrite")))


def _audited(entry: Mapping[str, Any]) -> Called | None:
    if not entry:
        return None
    cached, written = _count(entry.get("cache_read_tokens")), _count(entry.get("cache_write_tokens"))
    raw = max(_count(entry.get("prompt_tokens")) - cached - written, 0)
    return Called(Usage(raw=raw, cached=cached, output=_count(entry.get("completion_tokens"))), written)


def _usage(entry: Mapping[str, Any], raw: str, cached: str, output: str) -> Usage:
    return Usage(raw=_count(entry.get(raw)), cached=_count(entry.get(cached)), output=_count(entry.get(output)))


def _edge_tokens(mode: str, usage: Mapping[str, Any], crossed: bool, calls: list[Called]) -> int | None:
    """Returns the uncached input and the output of the edge model; the transcript of the harness mixes both sides."""
    if mode == "orchestrator-v1" or (not usage and not crossed):
        return None  # the edge model's own transcripts are not in the folder
    if crossed:
        return 0
    read, written = _count(usage.get("input_tokens")), _count(usage.get("output_tokens"))
    if mode == "step-router":
        read -= sum(call.usage.raw + call.written for call in calls)
        written -= sum(call.usage.output for call in calls)
    return max(read, 0) + max(written, 0)


# -- JSON from outside


def _object(file: Path, digest: Any) -> Mapping[str, Any]:
    """Returns what a JSON file holds; nothing if it is missing, too large or damaged."""
    if not file.is_file() or file.stat().st_size > LARGEST:
        return {}
    text = file.read_bytes()
    digest.update(text)
    return _parsed(text)


def _parsed(text: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def number_or_none(value: object) -> float | None:
    """Returns a finite number as such, and None for everything else."""
    try:
        found = float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _count(value: object) -> int:
    """Returns a number of tokens or calls; 0 for what is none."""
    return max(0, int(number_or_none(value) or 0))
