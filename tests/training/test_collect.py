"""Collected datasets are the same each time, load as TRL wants them, train, and take nothing on trust."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ec2_env.bench.store import read_manifest
from ec2_env.cli import main
from ec2_env.envs import DecisionEnv, WorkspaceEnv
from ec2_env.errors import ConfigurationError
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import Decision, load_strategy
from ec2_env.training.collect_card import cell
from ec2_env.training.collect_conversations import conversation
from ec2_env.training.collect_decisions import answered, kto_rows, preference_rows
from ec2_env.training.collect_solution import play_solution
from ec2_env.training.states import State

KINDS = ("sft", "decisions", "preference", "kto")
FLAGS = ("--task", "forward_invoice", "--language", "en", "--seeds", "2", "--quiet")
KEY = EpisodeKey(task="forward_invoice", language="en", split="train", seed=0, trial=0)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Returns a small dataset of each kind."""
    pytest.importorskip("pyarrow", minversion="19", exc_type=ImportError)
    root = tmp_path_factory.mktemp("collected")
    for kind in KINDS:
        assert main(["collect", "--kind", kind, *FLAGS, "--draws", "2", "--out", str(root / kind)]) == 0
    return {kind: root / kind for kind in KINDS}


def rows(folder: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    found = []
    for file in sorted(folder.glob("data/*.parquet")):
        found += pq.read_table(file).to_pylist()
    for row in found:
        for name in ("messages", "tools"):
            if name in row:
                row[name] = [json.loads(text) for text in row[name]]
    return found


# -- what is in them


@pytest.mark.parametrize("kind", KINDS)
def test_rows_do_not_depend_on_the_run_or_the_number_of_processes(kind: str, written: dict[str, Path], tmp_path: Path) -> None:
    workers = "2" if kind == "kto" else "1"
    again = ["collect", "--kind", kind, *FLAGS, "--draws", "2", "--workers", workers, "--out", str(tmp_path / "again")]
    assert main(again) == 0
    assert rows(tmp_path / "again") == rows(written[kind])
    for name in ("README.md", "collection.json"):
        assert (tmp_path / "again" / name).read_text() == (written[kind] / name).read_text()


def test_conversations_hold_the_calls_of_the_agent_and_their_results(written: dict[str, Path]) -> None:
    found = rows(written["sft"])
    assert {row["source"] for row in found} == {"solution", "episode"}
    for row in found:
        offered = {tool["function"]["name"] for tool in row["tools"]}
        calls = [call for message in row["messages"] for call in message.get("tool_calls", ())]
        answers = [message for message in row["messages"] if message["role"] == "tool"]
        assert [call["id"] for call in calls] == [answer["tool_call_id"] for answer in answers]
        assert {call["function"]["name"] for call in calls} <= offered
        assert sum(call["function"]["name"] == "invoke_cloud" for call in calls) == row["cloud_calls"]
        assert [message["role"] for message in row["messages"][:2]] == ["system", "user"]
        assert row["messages"][-1]["role"] == "assistant" and row["messages"][-1]["content"]
        assert row["task_completion"] >= 0.7
    assert any(row["cloud_calls"] for row in found if row["source"] == "solution")
    texts = [json.dumps(row["messages"]) for row in found]
    assert len(set(texts)) == len(texts)


def test_a_conversation_replayed_by_an_agent_of_its_own_earns_the_same(written: dict[str, Path]) -> None:
    env = WorkspaceEnv(task="forward_invoice", language="en")
    row = next(row for row in rows(written["sft"]) if row["cloud_calls"] == 0 or row["strategy"] == "sketch_guided")
    env.reset(seed=0, options={name: row[name] for name in ("task", "language", "split", "seed", "trial")})
    seen: list[str] = []
    for message in row["messages"]:
        for call in message.get("tool_calls", ()):
            observation, *_, info = env.step(call["function"])
            seen.append(observation["result"])
    said = [message["content"] for message in row["messages"] if message["role"] == "tool"]
    assert info["result"]["completion"] == row["task_completion"]
    own = [text for text, call in zip(seen, said, strict=True) if text == call]
    assert len(own) >= len(said) - row["cloud_calls"]


def test_a_solution_is_right_at_every_step_while_the_strategy_sees_the_doubts_of_the_edge() -> None:
    env = DecisionEnv(task="forward_invoice", language="en")
    edge = env.edge
    completions, doubts = [], set()
    for seed in range(6):
        key = EpisodeKey(task="forward_invoice", language="en", split="train", seed=seed, trial=0)
        completions.append(play_solution(env, load_strategy("adaptive_assistance"), key).result["completion"])
        env.begin("forward_invoice", "en", "train", seed)
        doubts.add(env.view().signals().entropy)
    assert completions == [1.0] * 6
    assert len(doubts) == 6
    assert env.edge is edge
    with pytest.raises(ConfigurationError, match="simulated edge"):
        play_solution(env, load_strategy("cloud_only"), KEY)


def test_copies_of_a_demonstrated_episode_have_the_edge_as_it_is() -> None:
    env = DecisionEnv(task="forward_invoice", language="en")
    values = []

    class Asking:
        """Looks ahead at the first step."""

        name, uses_edge = "asking", True

        def decide(self, view: Any) -> Decision:
            if view.step == 0:
                copy = view.fork()
                while not copy.session.ended:
                    copy.take(Decision.EDGE)
                values.append(copy.session.result["completion"])
            return Decision.EDGE

    for seed in range(8):
        key = EpisodeKey(task="forward_invoice", language="en", split="train", seed=seed, trial=0)
        assert play_solution(env, Asking(), key).result["completion"] == 1.0
    assert min(values) < 1.0


def test_what_the_cloud_did_stands_as_the_result_of_the_call_that_asked_for_it() -> None:
    env = DecisionEnv(task="forward_invoice", language="en")
    played = play(env, load_strategy("cloud_only:redacted"), KEY)
    assert env.session is not None
    found = conversation(played.instruction, "en", env.session.messages, played.events)
    names = {call["function"]["name"] for message in found for call in message.get("tool_calls", ())}
    assert names == {"invoke_cloud"}
    results = [message["content"] for message in env.session.messages if message["role"] == "tool"]
    assert [message["content"] for message in found if message["role"] == "tool"] == results


def test_a_cloud_that_fails_reads_as_in_the_environment_of_the_agent() -> None:
    env = DecisionEnv(task="forward_invoice", language="en", cloud_settings={"outage_rate": 1.0})
    played = play(env, load_strategy("cloud_only"), KEY)
    assert env.session is not None
    found = conversation(played.instruction, "en", env.session.messages, played.events)
    agent = WorkspaceEnv(task="forward_invoice", language="en", cloud_settings={"outage_rate": 1.0})
    agent.reset(seed=0)
    arguments = {"mode": "act", "share": "transcript"}
    observation, *_ = agent.step({"name": "invoke_cloud", "arguments": arguments})
    answers = [message["content"] for message in found if message.get("name") == "invoke_cloud"]
    assert observation["result"] in answers


def test_events_without_their_transcript_are_refused() -> None:
    env = DecisionEnv(task="forward_invoice", language="en")
    played = play(env, load_strategy("edge_only"), KEY)
    assert env.session is not None
    with pytest.raises(ConfigurationError, match="not in the transcript"):
        conversation(played.instruction, "en", env.session.messages[:4], played.events)


def test_decisions_are_the_teachers_or_those_of_a_strategy(written: dict[str, Path], tmp_path: Path) -> None:
    for row in rows(written["decisions"]):
        assert row["strategy"] == "teacher"
        assert row["values"][row["decision"]] == max(row["values"])
        assert row["completion"] == f" {row['decision']}"
        assert row["prompt"].endswith("Choice:") and len(row["values"]) == 6
    flags = ["--strategy", "edge_only", "--draws", "1", "--chat", "--out", str(tmp_path / "edge")]
    assert main(["collect", "--kind", "decisions", *FLAGS, *flags]) == 0
    found = rows(tmp_path / "edge")
    assert {row["decision"] for row in found} == {0}
    assert found[0]["completion"] == [{"role": "assistant", "content": "0"}]


def test_the_chosen_decision_is_better_by_the_margin(written: dict[str, Path]) -> None:
    found = rows(written["preference"])
    assert found
    for row in found:
        gap = row["values"][row["chosen_decision"]] - row["values"][row["rejected_decision"]]
        assert gap == row["margin"] >= 0.02
        assert row["chosen"] != row["rejected"]


def test_labels_follow_the_sign_of_the_advantage(written: dict[str, Path]) -> None:
    found = rows(written["kto"])
    assert {row["label"] for row in found} == {True, False}
    for row in found:
        assert row["advantage"] == pytest.approx(row["values"][row["decision"]] - sum(row["values"]) / 6)
        assert row["label"] is (row["advantage"] > 0)
        assert abs(row["advantage"]) >= 0.02


def test_states_in_which_nothing_depends_on_the_decision_give_no_preference() -> None:
    state = State(key=KEY, choices=(), prompt="Choice:", features=(), values=(0.5,) * 6)
    assert list(preference_rows(state, "teacher", False, 0.01)) == []
    assert list(kto_rows(state, "teacher", False, 0.0)) == []
    assert answered(Decision.ACT, False) == " 4"


# -- the card


def test_the_card_says_how_it_was_made_and_what_it_must_not_be_used_for(written: dict[str, Path]) -> None:
    text = (written["sft"] / "README.md").read_text(encoding="utf-8")
    for said in ("license: mit", "- en", "n<1K", "ec2-env collect --kind sft --task forward_invoice --language en", "simulated"):
        assert said in text
    for said in ("Secrets in it are made up", "Never evaluate", "| forward_invoice | en |", "sketch\\_guided, solution"):
        assert said in text
    facts = json.loads((written["sft"] / "collection.json").read_text(encoding="utf-8"))
    assert facts["rows"] == len(rows(written["sft"]))
    assert facts["suite_digest"] in text


def test_the_command_of_the_card_gives_the_same_rows(written: dict[str, Path], tmp_path: Path) -> None:
    words = json.loads((written["kto"] / "collection.json").read_text(encoding="utf-8"))["command"].split()
    assert main([*words[1:-1], str(tmp_path / "same"), "--quiet"]) == 0
    assert rows(tmp_path / "same") == rows(written["kto"])


def test_names_from_elsewhere_cannot_break_the_card() -> None:
    assert cell("a|b`<img>[x](y)\n#") == "a\\|b\\`\\<img\\>\\[x\\](y)\\#"


# -- what is refused


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--kind", "sft", *FLAGS, "--split", "test"], "--allow-test"),
        (["--kind", "sft", *FLAGS, "--chat"], "chats anyway"),
        (["--kind", "sft", *FLAGS, "--threshold", "1.5"], "threshold is 1.5"),
        (["--kind", "sft", *FLAGS, "--strategy", "task_routing"], "scored offline"),
        (["--kind", "kto", *FLAGS, "--margin", "nan"], "margin is nan"),
        (["--kind", "kto", *FLAGS, "--draws", "0"], "draws is 0"),
        (["--kind", "kto", *FLAGS, "--workers", "0"], "--workers is 0"),
        (["--kind", "kto", *FLAGS, "--edge", "openai:m@base_url=http://127.0.0.1:9/v1"], "simulated models"),
        (["--kind", "kto", "--trajectories", "RUN"], "goes with --kind sft"),
        (["--kind", "sft", "--trajectories", "RUN"], "not a run folder"),
        (["--kind", "sft", "--task", "forward_invoce"], "forward_invoice"),
        (["--kind", "sft", *FLAGS, "--seeds", "0"], "seeds is 0"),
    ],
)
def test_unusable_flags_are_said_and_leave_nothing(
    flags: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["collect", *flags, "--out", str(tmp_path / "out")]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_there_is_not_touched(written: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    before = (written["kto"] / "README.md").read_bytes()
    assert main(["collect", "--kind", "kto", *FLAGS, "--out", str(written["kto"])]) == 2
    assert "is there already" in capsys.readouterr().err
    assert (written["kto"] / "README.md").read_bytes() == before


# -- trajectories of a run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a run of the train split that kept its trajectories."""
    root = tmp_path_factory.mktemp("run")
    strategies = '["step_routing:redacted", "adaptive_assistance:redacted", "on_demand_query", "cloud_only", "sketch_guided"]'
    (root / "own.toml").write_text(
        f'[own]\nabout = "x"\ntasks = ["forward_invoice"]\nsplit = "train"\nseeds = 2\ntrials = 1\nstrategies = {strategies}\n'
    )
    flags = ["--trajectories", "--quiet", "--workers", "1", "--out", str(root / "run")]
    assert main(["bench", "--suite", f"{root / 'own.toml'}:own", *flags]) == 0
    return root / "run"


def copied(run: Path, folder: Path) -> Path:
    folder.mkdir()
    for name in ("manifest.json", "results.jsonl", "trajectories.jsonl"):
        (folder / name).write_bytes((run / name).read_bytes())
    return folder


def test_a_stored_episode_gives_the_same_conversation_as_the_one_that_was_played(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", minversion="19", exc_type=ImportError)
    out = tmp_path / "stored"
    assert main(["collect", "--kind", "sft", "--trajectories", str(run), "--threshold", "0", "--quiet", "--out", str(out)]) == 0
    found = rows(out)
    env = DecisionEnv(task="forward_invoice")
    assert len(found) == 20
    for row in found:
        key = EpisodeKey(**{name: row[name] for name in ("task", "language", "split", "seed", "trial")})
        played = play(env, load_strategy(row["strategy"]), key)
        assert env.session is not None
        assert row["messages"] == conversation(played.instruction, row["language"], env.session.messages, played.events)
    assert f"manifest {read_digest(run)}" in (out / "README.md").read_text(encoding="utf-8")


def read_digest(run: Path) -> str:
    from ec2_env.bench.manifest import digest

    return digest(read_manifest(run / "manifest.json"))


def changed(line: dict[str, Any], how: str) -> Any:
    match how:
        case "another result of a call":
            next(event for event in line["events"] if event["type"] == "tool")["result"] = "[]"
        case "a better grade":
            line["events"][-1]["completion"] = line["result"]["completion"] = 0.99
        case "another instruction":
            line["instruction"] = "Ignore what was said before."
        case "no task":
            line["task"] = "no_such_task"
        case "another split":
            line["split"] = "test"
        case "a huge seed":
            line["seed"] = 2**70
        case "a line break in a name":
            line["strategy"] = "edge\n# Title"
        case "no such decision":
            next(event for event in line["events"] if event["type"] == "decision")["decision"] = 77
        case "no decisions":
            line["events"] = [event for event in line["events"] if event["type"] != "decision"]
        case "not an object":
            return [line]
    return line


@pytest.mark.parametrize(
    "how",
    [
        "another result of a call",
        "a better grade",
        "another instruction",
        "no task",
        "another split",
        "a huge seed",
        "a line break in a name",
        "no such decision",
        "no decisions",
        "not an object",
    ],
)
def test_a_changed_trajectory_is_refused_with_its_line(
    how: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow", minversion="19", exc_type=ImportError)
    folder = copied(run, tmp_path / "run")
    lines = (folder / "trajectories.jsonl").read_text(encoding="utf-8").splitlines()
    line = changed(json.loads(lines[0]), how)
    (folder / "trajectories.jsonl").write_text("\n".join([json.dumps(line), *lines[1:]]) + "\n", encoding="utf-8")
    out = tmp_path / "out"
    assert main(["collect", "--kind", "sft", "--trajectories", str(folder), "--threshold", "0", "--out", str(out)]) == 2
    assert "line 1" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("name", "value"), [("split", "../../x"), ("split", "test"), ("edges", None), ("cloud", "x"), ("strategies", ["a\nb"])]
)
def test_a_changed_manifest_is_refused(name: str, value: Any, run: Path, tmp_path: Path) -> None:
    folder = copied(run, tmp_path / "run")
    whole = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    whole["settings"][name] = value
    (folder / "manifest.json").write_text(json.dumps(whole), encoding="utf-8")
    assert main(["collect", "--kind", "sft", "--trajectories", str(folder), "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


# -- loading and training


@pytest.mark.filterwarnings("ignore")  # datasets and TRL warn about one another
@pytest.mark.parametrize("kind", KINDS)
def test_datasets_load_the_folder_and_the_files_alike(kind: str, written: dict[str, Path], tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", minversion="4.7", exc_type=ImportError)
    folder = datasets.load_dataset(str(written[kind]), split="train", cache_dir=str(tmp_path))
    pattern = str(written[kind] / "data" / "*.parquet")
    files = datasets.load_dataset("parquet", data_files=pattern, split="train", cache_dir=str(tmp_path))
    assert folder.features == files.features
    assert list(folder) == list(files) == rows(written[kind])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_trl_trains_a_step_on_them(kind: str, written: dict[str, Path], tiny: Path, tmp_path: Path) -> None:
    import datasets
    import torch
    import transformers
    import trl

    from ec2_env.training.grpo import QUIET

    torch.manual_seed(0)
    data = datasets.load_dataset(str(written[kind]), split="train", cache_dir=str(tmp_path / "cache"))
    size = 1 if kind == "sft" else 2
    named = {"preference": ("DPOTrainer", "DPOConfig"), "kto": ("KTOTrainer", "KTOConfig")}
    trainer, config = named.get(kind, ("SFTTrainer", "SFTConfig"))
    own = {"assistant_only_loss": True, "max_length": None} if kind == "sft" else {}
    made = getattr(trl, trainer)(
        model=transformers.AutoModelForCausalLM.from_pretrained(tiny),
        args=getattr(trl, config)(
            output_dir=str(tmp_path), max_steps=1, per_device_train_batch_size=size, logging_steps=1, **own, **QUIET
        ),
        train_dataset=data.select(range(size)),
        processing_class=transformers.AutoTokenizer.from_pretrained(tiny),
    )
    made.train()
    losses = [entry["loss"] for entry in made.state.log_history if "loss" in entry]
    assert len(losses) == 1 and losses[0] > 0
    if kind == "sft":
        text = made.processing_class.decode(made.train_dataset[0]["input_ids"])
        trained = [token for token in made.train_dataset[0]["labels"] if token != -100]
        assert '"name": "invoke_cloud"' in text
        assert "<tool_call>" in made.processing_class.decode(trained)
        assert "<tool_response>" not in made.processing_class.decode(trained)
