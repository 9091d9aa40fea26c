"""What a run has finished, kept in files, so that a run that was killed goes on where it was and does nothing twice.

A stage is a named step of a run whose result is a file or a folder. It is written under another name and renamed when it is
complete, so that it is there whole or not at all, whenever the process was killed.

    stages = Stages(out, {"plan": asdict(plan), "seed": seed})
    states = stages.records("labels", lambda: labelled_states(...), list[State])
    stages.once("warm_start", make=lambda: warm_start(policy, ...), save=lambda path, _: policy.save(path), load=policy.restore)

A stage must not depend on random numbers that an earlier one has used up: that one may not have run in this process. What is done
*within* a stage may be kept in `stages.workplace("grpo")`, a folder that is there until the stage is complete: the checkpoints of
a trainer, say.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ec2_env.bench.manifest import code_digest
from ec2_env.errors import ConfigurationError

T = TypeVar("T")
FOLDER = "stages"


class Stages:
    """The finished stages of one run.

    Args:
        out: Folder of the run; the stages are in the folder `stages` in it.
        made_from: All that fixes the results, as plain data: a plan and a seed. The code is part of it by itself.

    Raises:
        ConfigurationError: if the folder holds stages that were made from something else.
    """

    def __init__(self, out: Path, made_from: Mapping[str, Any]) -> None:
        self.folder = out / FOLDER
        self.folder.mkdir(parents=True, exist_ok=True)
        told = {**msgspec.to_builtins(made_from), "code": code_digest()}
        source = self.folder / "made_from.json"
        text = msgspec.json.format(msgspec.json.encode(told, order="sorted"))
        if source.exists() and source.read_bytes() != text:
            before = msgspec.json.decode(source.read_bytes(), type=dict[str, Any])
            differing = sorted(name for name in {*told, *before} if told.get(name) != before.get(name))
            raise ConfigurationError(
                f"{out} holds the stages of another run (different: {', '.join(differing)}); delete it, or choose another folder"
            )
        write_whole(source, text)

    def once(self, name: str, make: Callable[[], T], save: Callable[[Path, T], Any], load: Callable[[Path], T]) -> T:
        """Returns what a stage makes, now or in an earlier run.

        Args:
            name: Of the stage; also that of its file or folder.
            make: Does the work.
            save: Writes the result to a path that does not exist yet, as a file or as a folder.
            load: Reads it again. What it returns has to be as good as what `make` returned.
        """
        place = self.folder / name
        if place.exists():
            return load(place)
        partial = self.folder / f"{name}.partial"
        _remove(partial)
        made = make()
        save(partial, made)
        partial.rename(place)
        _remove(self.folder / f"{name}.work")
        return made

    def records(self, name: str, make: Callable[[], T], kind: Any) -> T:
        """Returns what a stage makes, kept as JSON: dataclasses, named tuples, lists and dicts of them, numbers and text.

        Args:
            name: Of the stage.
            make: Does the work.
            kind: Type of the result, such as `list[State]`.
        """

        def save(path: Path, made: T) -> None:
            path.write_bytes(msgspec.json.encode(made))

        def load(path: Path) -> T:
            found: T = msgspec.json.decode(path.read_bytes(), type=kind)
            return found

        return self.once(name, make, save, load)

    def has(self, name: str) -> bool:
        """Says whether a stage is finished."""
        return (self.folder / name).exists()

    def workplace(self, name: str) -> Path:
        """Returns a folder for what a stage keeps while it is not complete."""
        folder = self.folder / f"{name}.work"
        folder.mkdir(exist_ok=True)
        return folder


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file so that it is there whole or as it was before, whenever the process is killed."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(content)
    partial.replace(path)


def _remove(path: Path) -> None:
    """Removes a file or a folder, if there is one."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
