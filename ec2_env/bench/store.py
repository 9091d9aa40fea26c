"""The run folder: what was run with which settings, and one durable line for each episode."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ec2_env.bench.records import EpisodeRecord, Played
from ec2_env.errors import ConfigurationError, EC2Error

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

SYNC_S = 1.0
"""Longest time that a finished episode may stand in the operating system's memory only, while others follow it."""
RESERVE_BYTES = 16 << 20
"""A run stops while so much of the disk is still free."""
RECORD_BYTES, TRAJECTORY_BYTES = 1_500, 50_000
"""About the size of a record and of a trajectory, to say beforehand what a run needs."""

Report = Callable[[str], None]


class StorageError(EC2Error):
    """The disk is full or fails. What was recorded before is kept."""


class RunFolder:
    """A folder that belongs to one set of settings and, while it is open, to one process.

    Args:
        path: The folder; made if it does not exist.
        manifest: What fixes the results. A folder with another manifest is refused.
        about: What is only worth knowing, such as the platform; written when the folder is made.

    Raises:
        ConfigurationError: if the folder holds something else, a run with other settings, or is in use.
    """

    def __init__(self, path: Path, manifest: Mapping[str, Any], about: Mapping[str, Any]) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(path)
        try:
            self._open(manifest, about)
        except BaseException:
            self.close()
            raise

    def _open(self, manifest: Mapping[str, Any], about: Mapping[str, Any]) -> None:
        file = self.path / "manifest.json"
        if file.exists():
            check_manifest(self.path, read_manifest(file), manifest)
            return
        others = sorted(entry.name for entry in self.path.iterdir() if entry.name != LOCK and entry.suffix != PART)
        if others:
            raise ConfigurationError(
                f"{self.path} is not empty and not a run folder (it holds {others[0]!r}); choose another --out"
            )
        write_json(file, {"settings": manifest, "about": about})

    def close(self) -> None:
        """Lets go of the folder."""
        self._lock.close()


LOCK = ".lock"
PART = ".part"


def _locked(path: Path) -> BinaryIO:
    """Returns the open lock file. The system lets go of the lock when the process ends, however it ends."""
    file = (path / LOCK).open("ab")
    try:
        if sys.platform == "win32":
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise ConfigurationError(f"{path} is in use by another run; wait for it, or name another folder with --out") from None
    return file


def read_manifest(file: Path) -> dict[str, Any]:
    """Returns the settings of a run.

    Raises:
        ConfigurationError: if the file is not a manifest.
    """
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))["settings"]
    except (ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} is not a manifest of a run ({error!r}); name another folder with --out") from error
    return dict(settings)


def check_manifest(path: Path, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """Compares the settings of a run folder with those of this run.

    Raises:
        ConfigurationError: if they differ; names up to four differences.
    """
    old, new = dict(_flat(there)), dict(_flat(json.loads(json.dumps(here))))
    wrong = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
    if not wrong:
        return
    shown = "; ".join(f"{key} is {_short(old.get(key))} there and {_short(new.get(key))} here" for key in wrong[:4])
    more = f"; and {len(wrong) - 4} more" if len(wrong) > 4 else ""
    raise ConfigurationError(
        f"{path} holds a run with other settings: {shown}{more}. Results are not mixed: name another folder with --out, "
        "or run with the settings of its manifest.json"
    )


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(item, f"{name}.{key}" if name else str(key))
    else:
        yield name, value


def _short(value: Any) -> str:
    if value is None:
        return "absent"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def write_json(file: Path, value: Any) -> None:
    """Writes a file in one piece: a reader, or a crash, meets the old one or the new one."""
    draft = file.with_name(f"{file.name}{PART}")
    with _told(file), draft.open("w", encoding="utf-8") as stream:
        stream.write(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    with _told(file):
        os.replace(draft, file)
        _sync_folder(file.parent)


@contextmanager
def _told(file: Path) -> Iterator[None]:
    """Says what a failing disk means.

    Raises:
        StorageError: instead of any OSError.
    """
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{file} cannot be written ({error.strerror or error}); what was recorded before is kept: make room, or see to the "
            "disk, and run the same command again"
        ) from error


def _sync_folder(path: Path) -> None:
    """Forces the names of new files onto the disk, where a folder can be opened for that."""
    if sys.platform == "win32":
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class RecordLog:
    """Records of episodes, appended one line each, and beside them, if they are kept, their trajectories in the same order.

    Args:
        file: The records.
        trajectories: The trajectories, or None if they are not kept.
        report: Is told what was repaired.
        sync_s: Seconds after which what was appended is forced onto the disk; 0 does so each time.
    """

    def __init__(self, file: Path, trajectories: Path | None, report: Report, *, sync_s: float = SYNC_S) -> None:
        self.file = file
        self.trajectories = trajectories
        self.report = report
        self.sync_s = sync_s
        self.trouble = ""
        """Why to write no more; empty if all is well."""
        self._streams: list[BinaryIO] = []
        self._synced = time.monotonic()

    def warning(self, missing: int) -> str:
        """Returns what to say if so many more episodes may not fit on the disk; empty if they fit.

        If next to nothing is free, `trouble` says so.
        """
        free = shutil.disk_usage(self.file.parent).free
        needed = missing * (RECORD_BYTES + (TRAJECTORY_BYTES if self.trajectories is not None else 0))
        if missing:
            self._look_at(free)
        if self.trouble or needed <= free - RESERVE_BYTES:
            return ""
        return (
            f"the run needs about {needed / 1e9:,.1f} GB and the disk of {self.file.parent} has {free / 1e9:,.1f} GB left; it "
            "will stop before the disk is full, and can be resumed when there is room"
        )

    def _look_at(self, free: int) -> None:
        if free < RESERVE_BYTES:
            least = f"make room, at least {RESERVE_BYTES / 1e6:.0f} MB"
            self.trouble = f"only {free / 1e6:.1f} MB are left on the disk of {self.file.parent}; {least}"

    def read(self) -> Iterator[EpisodeRecord]:
        """Yields the records so far. A last line that was cut off is dropped, for good.

        Raises:
            ConfigurationError: if any other line is not a record, or trajectories are missing.
        """
        kept, end = 0, 0
        if self.file.exists():
            with self.file.open("rb") as stream:
                for line in stream:
                    if not line.endswith(b"\n"):
                        break
                    yield self._record(line, kept + 1)
                    kept, end = kept + 1, end + len(line)
            if end < self.file.stat().st_size:
                os.truncate(self.file, end)
                self.report(f"{self.file}: line {kept + 1} was cut off and is dropped, to be played again; lines kept: {kept}")
        if self.trajectories is not None:
            _cut_to(self.trajectories, kept)

    def _record(self, line: bytes, number: int) -> EpisodeRecord:
        try:
            return msgspec.json.decode(line, type=EpisodeRecord)
        except msgspec.DecodeError as error:
            raise ConfigurationError(
                f"{self.file}: line {number} is damaged ({error}); remove that line to play its episode again"
            ) from error

    def append(self, played: Sequence[Played]) -> None:
        """Writes episodes: trajectories first, so that no record is without its trajectory.

        Raises:
            StorageError: if the disk is full or fails. Nothing of these episodes is then left in the files.
        """
        with _told(self.file):
            self._open()
            sizes = [os.fstat(stream.fileno()).st_size for stream in self._streams]
            try:
                if self.trajectories is not None:
                    _write(self._streams[0], [one.trajectory or b"" for one in played])
                _write(self._streams[-1], [one.record for one in played])
                if time.monotonic() - self._synced >= self.sync_s:
                    self.sync()
            except OSError:
                self._take_back(sizes)
                raise

    def _open(self) -> None:
        if self._streams:
            return
        files = [self.trajectories] if self.trajectories is not None else []
        for file in (*files, self.file):
            self._streams.append(file.open("ab", buffering=0))
        _sync_folder(self.file.parent)

    def _take_back(self, sizes: Sequence[int]) -> None:
        """Cuts the files to their sizes before, the records first, and lets go of them."""
        for stream, size in zip(reversed(self._streams), reversed(sizes), strict=True):
            with suppress(OSError):  # then the next run finds a line that was cut off, and drops it
                os.ftruncate(stream.fileno(), size)
        self._let_go()

    def _let_go(self) -> None:
        for stream in self._streams:
            stream.close()
        self._streams = []

    def sync(self) -> None:
        """Forces everything onto the disk, and looks how much room is left."""
        for stream in self._streams:
            os.fsync(stream.fileno())
        self._synced = time.monotonic()
        self._look_at(shutil.disk_usage(self.file.parent).free)

    def close(self) -> None:
        """Forces everything onto the disk and lets go of the files."""
        with _told(self.file):
            try:
                if self._streams:
                    self.sync()
            finally:
                self._let_go()


def _write(stream: BinaryIO, lines: Sequence[bytes]) -> None:
    data = memoryview(b"".join(line + b"\n" for line in lines))
    while data:
        data = data[stream.write(data) :]


def _cut_to(file: Path, lines: int) -> None:
    """Cuts a file to its first `lines` lines: what follows belongs to no record."""
    end, found = 0, 0
    if file.exists():
        with file.open("rb") as stream:
            for line in stream:
                if found == lines or not line.endswith(b"\n"):
                    break
                found, end = found + 1, end + len(line)
        os.truncate(file, end)
    if found < lines:
        raise ConfigurationError(f"{file} lacks trajectories of records ({found} of {lines}); name another folder with --out")
