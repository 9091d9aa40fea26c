"""The checkout holds what pyproject.toml says, and imports point one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CONTENT = ("agents", "tasks", "training")

# From the ground up. A module may import from its own line and from those above it.
LAYERS = (
    "errors registry actions sensitive facts trace prompts command",
    "workspace",
    "task progress",
    "models",
    "cloud checks",
    "reward spaces strategy",
    "session",
    "features reference render",
    "episode_env",
    "envs cutoff registration",
    "rollout",
    "bench training serve testing",
    "report view",
    "commands cli __main__",
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names.split()}
MAY_IMPORT = {
    # models.choice decides for `learned`; `oracle_decision` follows the training teacher, `task_routing` a trained router.
    "agents": (
        "agents",
        "errors",
        "actions",
        "models.base",
        "models.choice",
        "cloud",
        "prompts",
        "strategy",
        "training.teacher",
        "training.router",
        "training.scored_runs",
        "training.features_policy",
        "training.encoder_policy",
    ),
    "tasks": ("tasks", "errors", "actions", "facts", "sensitive", "workspace", "task", "checks"),
}


def sources(root: Path) -> Iterator[Path]:
    for folder in ("ec2_env", *CONTENT):
        yield from sorted((root / folder).rglob("*.py"))


def own_imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the line and the name below ec2_env of each import in the file, those inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                targets = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module), names=names):
                targets = [f"{module}.{alias.name}" for alias in names]
            case _:
                continue
        yield from ((node.lineno, target.partition(".")[2]) for target in targets if target.startswith("ec2_env."))


def layer_of(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return parts[1] if parts[0] == "ec2_env" else parts[0]


def allowed(layer: str, target: str) -> bool:
    if layer in MAY_IMPORT:
        return any(f"{target}.".startswith(f"{prefix}.") for prefix in MAY_IMPORT[layer])
    head = target.partition(".")[0]
    return head == "__version__" or RANK.get(head, len(LAYERS)) <= RANK[layer]


def test_imports_point_one_way(root: Path) -> None:
    wrong = [
        f"{path.relative_to(root)}:{line}: {layer} must not import ec2_env.{target}"
        for path in sources(root)
        if (layer := layer_of(path, root)) != "__init__"
        for line, target in own_imports(path)
        if not allowed(layer, target)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_module_has_its_place_in_the_layers(root: Path) -> None:
    layers = {layer_of(path, root) for path in sources(root)} - {"__init__", *MAY_IMPORT}
    assert layers <= RANK.keys(), f"say in LAYERS of tests/test_layout.py where these stand: {sorted(layers - RANK.keys())}"


@pytest.mark.parametrize(
    ("layer", "target", "verdict"),
    [
        ("workspace", "cloud.gateway", False),
        ("cloud", "workspace.store.Workspace", True),
        ("models", "tasks.email.forward_invoice", False),
        ("commands", "agents", False),
        ("tasks", "task.Episode", True),
        ("tasks", "envs", False),
        ("agents", "models.base.Reply", True),
        ("agents", "models.simulated", False),
    ],
)
def test_layer_rule_tells_right_from_wrong(layer: str, target: str, verdict: bool) -> None:
    assert allowed(layer, target) is verdict


def test_every_folder_with_code_is_a_listed_package(root: Path) -> None:
    setuptools = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    on_disk = {path.parent.relative_to(root).as_posix() for path in sources(root)}
    expected = {folder if folder.startswith("ec2_env") else f"ec2_env/{folder}": folder for folder in on_disk}
    packages = {name.replace("/", ".") for name in expected}
    mapped = {name.replace("/", "."): folder for name, folder in expected.items() if name != folder}
    assert set(setuptools["packages"]) == packages, (
        f"in [tool.setuptools] packages of pyproject.toml add {sorted(packages - set(setuptools['packages']))} "
        f"and remove {sorted(set(setuptools['packages']) - packages)}"
    )
    assert setuptools["package-dir"] == mapped, "make [tool.setuptools.package-dir] in pyproject.toml match the folders"


def test_every_listed_package_has_an_init_file(root: Path) -> None:
    missing = sorted(
        {path.parent.relative_to(root).as_posix() for path in sources(root) if not (path.parent / "__init__.py").exists()}
    )
    assert not missing, f"add an __init__.py to {missing}"


@pytest.mark.parametrize("folder", CONTENT)
def test_content_folder_refuses_its_bare_name(root: Path, folder: str) -> None:
    run = subprocess.run([sys.executable, "-c", f"import {folder}"], cwd=root, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert f"import ec2_env.{folder}" in run.stderr
