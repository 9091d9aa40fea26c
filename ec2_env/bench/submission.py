"""Submissions to a leaderboard: a run as two or three plain files, and the checks that one from elsewhere has to pass.

Nothing in a submission is trusted: sizes are limited, JSON is read strictly, no name in it becomes a path or is loaded, and every
figure is computed again from the records.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from ec2_env.bench.grid import Cell
from ec2_env.bench.manifest import FORMAT as MANIFEST_FORMAT
from ec2_env.bench.pins import pinned
from ec2_env.bench.record_check import check_record, near, read_record
from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.statistics import Estimate, Totals
from ec2_env.bench.stored_runs import StoredRun, open_run, records_in
from ec2_env.bench.strict import Refused, label, read_bytes, read_lines, read_object
from ec2_env.bench.suites import load_suite
from ec2_env.cloud.prices import price
from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.models.base import ModelCard
from ec2_env.models.loading import load_model
from ec2_env.models.profile import profile_names
from ec2_env.reward import RewardWeights

FORMAT = 1
HEAD, RECORDS, CALIBRATION = "submission.json", "records.jsonl.gz", "calibration.jsonl.gz"
LARGEST_HEAD = 1 << 20
"""Bytes of `submission.json` that are read."""
LONGEST_NAME, LONGEST_SPEC, MOST_ROWS = 80, 120, 200
_MANIFEST = frozenset(
    "format version code suite suite_digest tasks split seeds trials max_steps calibration_seeds strategies edges cloud models "
    "files prices weights trajectories".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One strategy with its models in a submission.

    Attributes:
        simulated: Whether all its models are simulated.
        episodes: Episodes, those that ended in an infrastructure error included: they count as failures here.
        errors: Number of those.
        figures: Means by the names of `ec2_env.bench.statistics.FIGURES`, and `pass_hat_3`.
    """

    cell: Cell
    simulated: bool
    episodes: int
    errors: int
    figures: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A submission that has passed all checks.

    Attributes:
        path: Its folder.
        name: What it calls itself.
        run: Its manifest, as a run.
        rows: Its figures, computed again.
        sha256: Digest of its records.
    """

    path: Path
    name: str
    contact: str
    run: StoredRun
    rows: tuple[Row, ...]
    sha256: str

    def records(self, file: str = RECORDS) -> Iterator[EpisodeRecord]:
        """Yields its records, or those of its calibration."""
        for number, line in enumerate(read_lines(self.path / file), 1):
            yield read_record(line, f"{file}: line {number}")


# -- writing


def submit(path: Path, out: Path, name: str, contact: str = "") -> Submission:
    """Writes the submission of a run folder, if it passes the checks of a leaderboard.

    Args:
        path: The run folder.
        out: Folder of the submission; made if it does not exist. Files of an earlier submission in it are replaced.
        name: What to call it.
        contact: How to reach the submitter; optional.

    Raises:
        Refused: if it breaks a rule, such as a missing episode; nothing is written then.
        ConfigurationError: if the run cannot be read, or the folder holds something else.
    """
    run = open_run(path, "submitted")
    _manifest({**run.settings, "trajectories": False})
    others = sorted(one.name for one in out.iterdir() if one.name not in (HEAD, RECORDS, CALIBRATION)) if out.is_dir() else []
    if others:
        raise ConfigurationError(f"{out} holds {others[0]!r}, which is no part of a submission; name another folder with --out")
    records = _last(run.results)
    grid = run.grid(run.ordered({record.cell for record in records}))
    records.sort(key=lambda record: -1 if (number := grid.number(record.cell, record.key)) is None else number)
    calibration = path / "calibration.jsonl"
    head = {
        "format": FORMAT,
        "name": name,
        "contact": contact,
        "manifest": {**run.settings, "trajectories": False},
        "figures": _stated(_rows(run, records)),
    }
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as draft:
        written = Path(draft)
        _write(written / RECORDS, records)
        if calibration.is_file() and run.settings["calibration_seeds"] is not None:
            _write(written / CALIBRATION, _last(calibration))
        text = json.dumps(head, indent=1, sort_keys=True, ensure_ascii=False)
        (written / HEAD).write_text(text + "\n", encoding="utf-8")
        read_submission(written)
        for one in sorted(written.iterdir()):
            os.replace(one, out / one.name)
    return read_submission(out)


def _last(file: Path) -> list[EpisodeRecord]:
    """Returns the last record of each episode: a result takes the place of an infrastructure error."""
    return list({(record.cell, record.key): record for _, record in records_in(file)}.values())


def _write(file: Path, records: Sequence[EpisodeRecord]) -> None:
    """Writes records, one a line, compressed; the same bytes for the same records."""
    lines = b"".join(msgspec.json.encode(record, order="sorted") + b"\n" for record in records)
    file.write_bytes(gzip.compress(lines, 9, mtime=0))


def _stated(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {
            **row.cell._asdict(),
            "episodes": row.episodes,
            "errors": row.errors,
            "figures": {name: one.mean for name, one in sorted(row.figures.items())},
        }
        for row in rows
    ]


# -- reading what comes from elsewhere


def read_submission(path: Path) -> Submission:
    """Reads a submission and checks all of it.

    Raises:
        Refused: if it breaks a rule; the text names the first.
    """
    head = read_object(read_bytes(path / HEAD, LARGEST_HEAD), HEAD)
    if set(head) != {"format", "name", "contact", "manifest", "figures"} or head["format"] != FORMAT:
        raise Refused(f"{HEAD} must hold format {FORMAT}, name, contact, manifest and figures, and nothing else")
    name, contact = (label(head[key], key, least, LONGEST_NAME) for key, least in (("name", 1), ("contact", 0)))
    run = StoredRun(path=path, settings=_manifest(head["manifest"]), results=path / RECORDS, kept=None)
    records, digest = [], hashlib.sha256()
    for number, line in enumerate(read_lines(path / RECORDS), 1):
        digest.update(line)
        record = read_record(line, f"{RECORDS}: line {number}")
        check_record(record, run, f"{RECORDS}: line {number}")
        records.append(record)
    rows = _rows(run, records)
    _compare(head["figures"], _stated(rows))
    return Submission(path=path, name=name, contact=contact, run=run, rows=rows, sha256=digest.hexdigest())


def _manifest(settings: object) -> Mapping[str, Any]:
    """Returns a manifest that belongs to a suite of the installed version.

    Raises:
        Refused: if it does not.
    """
    if not isinstance(settings, dict) or set(settings) != _MANIFEST or settings["format"] != MANIFEST_FORMAT:
        raise Refused("the manifest is not that of a run of ec2-env bench, of this version's form")
    name, known = settings["suite"], pinned().suites
    if not isinstance(name, str) or name not in known:
        raise Refused(f"suite {str(name)[:60]!r} is not one that ships; those are {', '.join(sorted(known))}")
    if settings["suite_digest"] != known[name]:
        theirs = str(settings["suite_digest"])[:12]
        raise Refused(f"suite digest {theirs!r} is not that of {name} in this version ({known[name][:12]})")
    if settings["files"] != {}:
        raise Refused("a strategy or model is a file of the submitter; only what ships can be compared")
    suite = load_suite(name)
    wanted = {
        "tasks": [f"{task}/{language}" for task, language in suite.pairs()],
        **{key: getattr(suite, key) for key in ("split", "seeds", "trials", "max_steps")},
        "weights": asdict(RewardWeights()),
    }
    for key, value in wanted.items():
        if settings[key] != value or isinstance(settings[key], bool):
            raise Refused(f"{key} of the manifest is not that of suite {name}")
    if settings["calibration_seeds"] not in (None, suite.calibration_seeds) or isinstance(settings["calibration_seeds"], bool):
        raise Refused(f"calibration_seeds of the manifest is not that of suite {name}")
    for key in ("version", "code"):
        label(settings[key], f"{key} of the manifest", 1, LONGEST_NAME)
    _check_models(settings)
    return settings


def _check_models(settings: Mapping[str, Any]) -> None:
    """Checks the names of strategies and models, and what the manifest says of the models."""
    specs = [*_names(settings["edges"], "edges"), *_names([settings["cloud"]], "cloud")]
    if len(_names(settings["strategies"], "strategies")) * len(specs) > MOST_ROWS:
        raise Refused(f"the manifest names more than {MOST_ROWS} rows")
    models = settings["models"]
    if not isinstance(models, dict) or set(models) != set(specs):
        raise Refused("the manifest must describe each model that it names, and no other")
    for spec, held in models.items():
        try:
            card = msgspec.convert(held, ModelCard)
        except msgspec.ValidationError as error:
            raise Refused(f"model {spec!r} of the manifest: {error}") from None
        if card.simulated != spec.startswith("sim:"):
            raise Refused(f"model {spec!r}: simulated models are named sim:NAME, and no others")
        if card.simulated and spec.removeprefix("sim:").partition("@")[0] not in profile_names():
            raise Refused(f"simulated model {spec!r} does not ship with the package")
        if card.simulated and load_model(spec).card != card:
            raise Refused(f"model {spec!r} is not what the manifest says")
    _check_prices(settings["prices"], msgspec.convert(models[settings["cloud"]], ModelCard))


def _check_prices(prices: object, card: ModelCard) -> None:
    try:
        rates = price(str(card.price))
    except UnknownName as error:
        raise Refused(f"the cloud model: {error}") from None
    ours = {
        "entry": card.price,
        "as_of": rates.as_of,
        "input": str(rates.input_usd_per_mtok),
        "cached_input": str(rates.cached_input_usd_per_mtok),
        "output": str(rates.output_usd_per_mtok),
    }
    if prices != ours:
        raise Refused("prices of the manifest are not those of this version")


def _names(value: object, what: str) -> list[str]:
    if not isinstance(value, list) or not value or len(value) > MOST_ROWS:
        raise Refused(f"{what} of the manifest must be a list of names")
    found = [label(one, f"{what} of the manifest", 1, LONGEST_SPEC) for one in value]
    if len(set(found)) != len(found):
        raise Refused(f"{what} of the manifest repeat a name")
    return found


# -- figures


def _rows(run: StoredRun, records: Sequence[EpisodeRecord]) -> tuple[Row, ...]:
    """Returns the figures of all rows. An infrastructure error counts as a failure: else whoever submits chooses what fails.

    Raises:
        Refused: if an episode is missing or doubled.
    """
    try:
        grid = run.grid(run.ordered({record.cell for record in records}))
        totals = Totals(grid)
        for record in records:
            totals.add(_failed(record))
    except ConfigurationError as error:
        raise Refused(str(error)) from None
    missing = len(grid) - totals.done
    if missing or not records:
        raise Refused(f"{missing:,} of {len(grid):,} episodes are missing" if records else "there are no records")
    _check_cells({record.cell for record in records}, run)
    errors = dict.fromkeys(grid.cells, 0)
    for record in records:
        errors[record.cell] += record.result["status"] == "error"
    return tuple(
        Row(
            cell=one.cell,
            simulated=run.simulated(one.cell),
            episodes=one.episodes,
            errors=errors[one.cell],
            figures=one.figures,
        )
        for one in totals.summaries()
    )


def _check_cells(cells: set[Cell], run: StoredRun) -> None:
    """Checks that every strategy of the manifest was played, either without an edge model or with each of them."""
    edges = set(run.settings["edges"])
    for strategy in run.settings["strategies"]:
        played = {cell.edge for cell in cells if cell.strategy == strategy}
        if played not in ({None}, edges):
            raise Refused(f"strategy {strategy!r} of the manifest was not played, or not with every edge model")


def _failed(record: EpisodeRecord) -> EpisodeRecord:
    if record.result["status"] != "error":
        return record
    gained = RewardWeights().task * record.reward["task"]
    return msgspec.structs.replace(
        record,
        reward={**record.reward, "task": 0.0},
        total=record.total - gained,
        result={**record.result, "status": "fail", "completion": 0.0},
    )


def _compare(stated: object, computed: Sequence[Mapping[str, Any]]) -> None:
    """Checks that the figures that a submission states are those of its records.

    Raises:
        Refused: at the first that is not.
    """
    if not isinstance(stated, list) or len(stated) != len(computed):
        raise Refused(f"figures must be given for the {len(computed)} rows of the records")
    for theirs, ours in zip(stated, computed, strict=True):
        keys = ("strategy", "edge", "cloud", "episodes", "errors")
        if not isinstance(theirs, dict) or any(theirs.get(key) != ours[key] for key in keys):
            raise Refused(f"the stated rows are not those of the records; expected {ours['strategy']} next")
        given = theirs.get("figures")
        if not isinstance(given, dict) or set(given) != set(ours["figures"]):
            raise Refused(f"{ours['strategy']}: other figures are stated than there are")
        for name, value in ours["figures"].items():
            if given[name] != value and not near(given[name], value):
                raise Refused(f"{ours['strategy']}: {name} is stated as {str(given[name])[:30]}, and the records give {value}")
