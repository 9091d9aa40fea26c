"""What fixes the results of a run, as plain data: two runs with equal manifests can be told from each other by nothing."""

from __future__ import annotations

import hashlib
import importlib.util
import platform
import re
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

import ec2_env
from ec2_env.bench.grid import BenchConfig
from ec2_env.bench.suites import suite_digest
from ec2_env.cloud.prices import price
from ec2_env.models.base import ModelCard
from ec2_env.models.loading import load_model

FORMAT = 1
CODE = ("ec2_env", "ec2_env.agents", "ec2_env.tasks", "ec2_env.training")
"""Packages whose code can change a result."""
SHOWING = ("bench", "commands", "report", "view")
"""Folders whose code runs and shows; `FORMAT` goes up when they change what a record means."""
EDGE_BYTES = 1 << 20
"""Of a large file, so much is read at each end."""


def manifest(config: BenchConfig) -> dict[str, Any]:
    """Returns the settings that results depend on; JSON-able."""
    cards = {spec: load_model(spec).card for spec in (*config.edges, config.cloud)}
    return {
        "format": FORMAT,
        "version": ec2_env.__version__,
        "code": code_digest(),
        "suite": config.name,
        "suite_digest": suite_digest(config.suite),
        "tasks": [f"{task}/{language}" for task, language in config.suite.pairs()],
        "split": config.suite.split,
        "seeds": config.suite.seeds,
        "trials": config.suite.trials,
        "max_steps": config.suite.max_steps,
        "calibration_seeds": config.suite.calibration_seeds if config.prepared() else None,
        "strategies": list(config.strategies),
        "edges": list(config.edges),
        "cloud": config.cloud,
        "models": {spec: msgspec.to_builtins(asdict(card)) for spec, card in sorted(cards.items())},
        "files": dict(sorted(_files(config))),
        "prices": _prices(cards[config.cloud]),
        "weights": asdict(config.weights),
        "trajectories": config.trajectories,
    }


def about() -> dict[str, Any]:
    """Returns what is worth knowing of where a run took place; results do not depend on it."""
    return {"python": platform.python_version(), "platform": platform.platform()}


def digest(settings: dict[str, Any]) -> str:
    """Returns ten hexadecimal digits that name the settings."""
    return hashlib.sha256(msgspec.json.encode(settings, order="sorted")).hexdigest()[:10]


@cache
def code_digest() -> str:
    """Returns a SHA-256 of the installed code and data files, so that results of two states of the code are not mixed."""
    found = hashlib.sha256()
    for package in CODE:
        spec = importlib.util.find_spec(package)
        for root in sorted(Path(place) for place in (spec and spec.submodule_search_locations) or ()):
            for file in sorted(path for path in root.rglob("*") if path.suffix in (".py", ".toml", ".json")):
                if file.relative_to(root).parts[0] in SHOWING:
                    continue
                found.update(f"{package}/{file.relative_to(root).as_posix()}\n".encode())
                found.update(file.read_bytes().replace(b"\r\n", b"\n"))
    return found.hexdigest()


def _prices(card: ModelCard) -> dict[str, Any] | None:
    if card.price is None:
        return None
    rates = price(card.price)
    return {
        "entry": card.price,
        "as_of": rates.as_of,
        "input": str(rates.input_usd_per_mtok),
        "cached_input": str(rates.cached_input_usd_per_mtok),
        "output": str(rates.output_usd_per_mtok),
    }


def _files(config: BenchConfig) -> Iterator[tuple[str, str]]:
    """Yields the files and folders that specifications name, such as a trained policy, with digests of what is in them."""
    for spec in (*config.strategies, *config.edges, config.cloud):
        for word in re.split(r"[:,@]|=", spec)[1:]:
            if word and Path(word).expanduser().exists():
                yield word, _path_digest(Path(word).expanduser())


def _path_digest(path: Path) -> str:
    found = hashlib.sha256()
    for file in [path] if path.is_file() else sorted(entry for entry in path.rglob("*") if entry.is_file()):
        size = file.stat().st_size
        found.update(f"{file.name} {size}\n".encode())
        with file.open("rb") as stream:
            found.update(stream.read(EDGE_BYTES))
            if size > EDGE_BYTES:
                stream.seek(max(EDGE_BYTES, size - EDGE_BYTES))
                found.update(stream.read())
    return found.hexdigest()
