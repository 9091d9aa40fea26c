"""What is built is complete, and works outside the checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

SOURCES = {"ec2_env": "ec2_env", "agents": "ec2_env/agents", "tasks": "ec2_env/tasks", "training": "ec2_env/training"}


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the source archive, and the wheel from that archive, in a copy of the checkout; returns the folder of both."""
    copy, out = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("dist")
    for folder in SOURCES:
        shutil.copytree(root / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, copy)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(copy)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    return out


@pytest.fixture(scope="module")
def shipped(root: Path) -> set[str]:
    """Returns every file of the package folders by its name inside the wheel."""
    return {
        f"{inside}/{path.relative_to(root / folder).as_posix()}"
        for folder, inside in SOURCES.items()
        for path in (root / folder).rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and not any(part.startswith(".") for part in path.relative_to(root).parts)
    }


def test_wheel_holds_every_file_of_the_package_folders(built: Path, shipped: set[str]) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = {name for name in wheel.namelist() if name.startswith("ec2_env/")}
    assert names == shipped, f"missing from the wheel: {sorted(shipped - names)}; only in the wheel: {sorted(names - shipped)}"


def test_wheel_holds_the_data_that_the_code_reads(built: Path, shipped: set[str]) -> None:
    data = {name for name in shipped if name.endswith((".toml", ".json", "py.typed"))}
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        assert data <= set(wheel.namelist())
    assert {name.rpartition("/")[0] for name in data} >= {
        "ec2_env/cloud",
        "ec2_env/models",
        "ec2_env/models/profiles",
        "ec2_env/bench",
    }


def test_wheel_owns_no_other_import_name(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        roots = {name.partition("/")[0] for name in wheel.namelist()}
    assert {name for name in roots if not name.endswith(".dist-info")} == {"ec2_env"}


def test_source_archive_holds_readme_license_and_code(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "pyproject.toml", "agents/__init__.py", "tasks/__init__.py", "training/__init__.py"} <= names


def test_installed_wheel_works_outside_the_checkout(built: Path, tmp_path: Path) -> None:
    target = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(target)]
    subprocess.run([*install, str(next(built.glob("*.whl")))], check=True, capture_output=True)
    # -S keeps the editable install's import hook away; the dependencies come in through PYTHONPATH.
    script = (
        "import ec2_env, ec2_env.agents, ec2_env.tasks, ec2_env.training, ec2_env.cli as cli; print(ec2_env.tasks.__file__); "
        "raise SystemExit(cli.main(['run', 'forward_invoice', '--strategy', 'sketch_guided', '--json']))"
    )
    paths = sysconfig.get_paths()
    environment = {
        "PYTHONPATH": os.pathsep.join([str(target), paths["purelib"], paths["platlib"]]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    run = subprocess.run(
        [sys.executable, "-S", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    path, trajectory = run.stdout.splitlines()
    assert path.startswith(str(target / "ec2_env" / "tasks"))
    assert json.loads(trajectory)["result"]["cloud_calls"] > 0
