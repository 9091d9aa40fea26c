"""A model as the attacker, and `ec2-env infer`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ec2_env.cli import main
from ec2_env.cloud.inference.asking import Asked, letter, shortened
from ec2_env.cloud.inference.questions import Question
from ec2_env.envs import DecisionEnv
from ec2_env.models.base import Message, ModelCard, Reply
from ec2_env.models.scripted import ScriptedModel
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import load_strategy
from ec2_env.trace import to_json

QUESTION = Question(
    form="value",
    unit="health-1",
    kind="health",
    owner="Alma Dunmore",
    candidates=("epilepsy", "celiac disease", "asthma"),
    truth=1,
)


class Reader:
    """Picks the option of which the sent texts hold the first word; keeps what it was asked."""

    card = ModelCard(name="reader", family="o200k")

    def __init__(self) -> None:
        self.asked: list[str] = []

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        content = messages[-1]["content"]
        self.asked.append(content)
        sent = content.partition("Which is the true")[0]
        options = [line for line in content.splitlines() if line[1:3] == ". "]
        return Reply(text=next((line[0] for line in options if line.split()[1] in sent), "-"))


@pytest.mark.parametrize(
    ("answer", "picked"),
    [
        ("B", 1),
        (" b. ", 1),
        ("(C)", 2),
        ("B. celiac disease", 1),
        ("The answer is B.", 1),
        ("Answer: C", 2),
        ("He avoids bread, so the answer is B", 1),
        ("-", None),
        ("", None),
        ("I cannot tell.", None),
        ("Because of the texts", None),
        ("H", None),
        ("42", None),
        ("x" * 5000, None),
    ],
)
def test_an_answer_is_a_letter_or_an_abstention(answer: str, picked: int | None) -> None:
    assert letter(answer, 3) == picked


def test_a_right_letter_counts_a_wrong_one_does_not_and_no_letter_is_chance() -> None:
    for reply, share in (("B", 1.0), ("A", 0.0), ("no idea", 1 / 3), ("Z", 1 / 3)):
        attacker = Asked(ScriptedModel([reply]))
        assert attacker([QUESTION], [["She eats no bread."]]) == [share]
        assert (attacker.answers, attacker.abstained) == (1, int(share == 1 / 3))


def test_a_model_is_not_asked_when_nothing_was_sent() -> None:
    reader = Reader()
    assert Asked(reader)([QUESTION], [[], ["  "]]) == [1 / 3]
    assert reader.asked == []


def test_a_model_sees_the_texts_the_owner_and_every_option() -> None:
    reader = Reader()
    assert Asked(reader)([QUESTION], [["She told us of her celiac trouble.", "[PHONE_001]"]]) == [1.0]
    assert "Alma Dunmore" in reader.asked[0]
    assert "C. asthma" in reader.asked[0]
    assert "PHONE" not in reader.asked[0]


def test_long_texts_are_halved_from_the_longest() -> None:
    text = shortened(["short one", "begin " + "x" * 60_000 + " end"], 1_000)
    assert len(text) < 5_000
    assert "short one" in text
    assert "begin" in text
    assert text.endswith("end")


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    lines = []
    for strategy in ("cloud_only", "edge_only"):
        for task in ("forward_invoice", "triage_inbox"):
            key = EpisodeKey(task=task, language="en", split="test", seed=0, trial=0)
            lines.append(to_json(play(DecisionEnv(), load_strategy(strategy), key)))
    (tmp_path / "trajectories.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    return tmp_path


def test_infer_states_chance_and_shows_each_strategy(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["infer", str(run_folder), "--linkage"]) == 0
    out = capsys.readouterr().out
    assert "chance 12.5%" in out
    assert "cloud_only (" in out
    assert "edge_only (" in out
    assert "literally private" in out
    assert "linkage: all units" in out


def test_infer_as_json_has_the_figures(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["infer", str(run_folder), "--json", "--choices", "4"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["choices"], found["chance"], found["attacker"]) == (4, 0.25, "rules")
    edge = next(figures for name, figures in found["strategies"].items() if name.startswith("edge_only"))
    cloud = next(figures for name, figures in found["strategies"].items() if name.startswith("cloud_only"))
    assert edge["all units"]["accuracy"] == pytest.approx(edge["all units"]["chance"])
    assert edge["all units"]["exposure"] == 0
    assert cloud["all units"]["exposure"] > 0
    assert cloud["all units"]["accuracy"] > cloud["all units"]["chance"]


def test_infer_counts_what_a_model_does_not_answer(run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replies = tmp_path / "replies.json"
    replies.write_text('["no idea"]', encoding="utf-8")
    assert main(["infer", str(run_folder), "--model", f"scripted:{replies}", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["answers"] == found["abstained"] > 0
    assert all(figures["all units"]["advantage"] == pytest.approx(0) for figures in found["strategies"].values())


def test_infer_refuses_what_it_cannot_read(run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["infer", str(tmp_path / "nowhere")]) == 2
    assert "--trajectories" in capsys.readouterr().err
    assert main(["infer", str(run_folder), "--choices", "1"]) == 2
    assert "2 to 26" in capsys.readouterr().err
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(b"{}\n")
    assert main(["infer", str(broken)]) == 2
    assert "line 1" in capsys.readouterr().err
    broken.write_bytes(b"")
    assert main(["infer", str(broken)]) == 2
    assert "no episode" in capsys.readouterr().err
