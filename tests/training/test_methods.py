"""Methods of training are entries of one registry; their modules have the names that the command uses, once they are needed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.training.evaluation import Score
from ec2_env.training.methods import METHODS, method
from ec2_env.training.stages import Stages


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_plan_that_can_be_scaled_and_a_trainer(name: str) -> None:
    module = method(name).load()
    plan = module.Plan(**method(name).given)
    assert is_dataclass(plan) and {"settings", "test_seeds"} <= {one.name for one in fields(plan)}
    assert type(module.scaled(plan, 0.5)) is type(plan)
    assert module.scaled(plan, 1) == plan
    assert callable(module.train)
    assert method(name).about and "\n" not in method(name).about


def test_a_wrong_name_is_met_with_the_nearest_one() -> None:
    with pytest.raises(UnknownName, match="ppo"):
        method("pppo")


def test_listing_the_methods_imports_none() -> None:
    code = (
        "import sys; from ec2_env.cli import main; main(['train', '--help']); "
        "assert not {'torch', 'transformers', 'ec2_env.training.quick'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120).returncode == 0


def score(value: float) -> Score:
    return Score(name="one", returns=(value,), parts=(), decisions={0: 3})


def test_a_finished_stage_is_not_made_again(tmp_path: Path) -> None:
    first = Stages(tmp_path, {"seed": 0}).records("scores", lambda: [score(0.1)], list[Score])
    again = Stages(tmp_path, {"seed": 0}).records("scores", lambda: [score(0.2)], list[Score])
    assert first == again == [score(0.1)]


def test_a_stage_that_was_stopped_is_made_anew(tmp_path: Path) -> None:
    stages = Stages(tmp_path, {"seed": 0})

    def save(path: Path, text: str) -> None:
        path.mkdir()
        (path / "text").write_text(text, encoding="utf-8")
        if text == "torn":
            raise KeyboardInterrupt

    def load(path: Path) -> str:
        return (path / "text").read_text(encoding="utf-8")

    with pytest.raises(KeyboardInterrupt):
        stages.once("adapter", lambda: "torn", save, load)
    assert not stages.has("adapter")
    (stages.workplace("adapter") / "checkpoint").write_text("7", encoding="utf-8")
    assert stages.once("adapter", lambda: "whole", save, load) == "whole"
    assert stages.once("adapter", lambda: "other", save, load) == "whole"
    assert sorted(path.name for path in stages.folder.iterdir()) == ["adapter", "made_from.json"]


def test_stages_of_another_run_are_refused(tmp_path: Path) -> None:
    Stages(tmp_path, {"seed": 0, "plan": {"steps": 1}})
    with pytest.raises(ConfigurationError, match=r"different: plan\)"):
        Stages(tmp_path, {"seed": 0, "plan": {"steps": 2}})
