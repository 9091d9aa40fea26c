"""The manifest changes with everything that can change a result, files that specifications name among it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ec2_env.bench import manifest as module
from ec2_env.bench.grid import BenchConfig
from ec2_env.bench.manifest import code_digest, digest, manifest


def scripted(tmp_path: Path, config: BenchConfig) -> BenchConfig:
    """Returns the settings with an edge model that reads its replies from a file."""
    (tmp_path / "replies.json").write_text(json.dumps(["done"]), encoding="utf-8")
    return replace(config, edges=(f"scripted:{tmp_path / 'replies.json'}",), strategies=("edge_only",))


def test_the_same_settings_have_the_same_digest(config: BenchConfig) -> None:
    assert digest(manifest(config)) == digest(manifest(config))
    assert digest(manifest(config)) != digest(manifest(replace(config, cloud="sim:qwen3.5-27b")))


def test_a_file_that_a_specification_names_belongs_to_the_settings(config: BenchConfig, tmp_path: Path) -> None:
    config = scripted(tmp_path, config)
    first = manifest(config)
    assert list(first["files"]) == [str(tmp_path / "replies.json")]
    (tmp_path / "replies.json").write_text(json.dumps(["gone"]), encoding="utf-8")
    assert digest(manifest(config)) != digest(first)


def test_a_folder_changes_with_any_file_in_it_and_with_the_end_of_a_large_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EDGE_BYTES", 4)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "weights").write_bytes(b"0123456789ab")
    found = {module._path_digest(tmp_path)}
    for content in (b"x123456789ab", b"0123456789ax", b"0123456789abc"):
        (tmp_path / "sub" / "weights").write_bytes(content)
        found.add(module._path_digest(tmp_path))
    (tmp_path / "other").touch()
    assert len(found | {module._path_digest(tmp_path)}) == 5


def test_the_code_of_whatever_can_decide_is_in_the_digest() -> None:
    assert len(code_digest()) == 64
    assert {"ec2_env", "ec2_env.agents", "ec2_env.tasks", "ec2_env.training"} == set(module.CODE)  # a strategy uses the teacher
