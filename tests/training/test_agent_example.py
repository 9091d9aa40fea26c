"""The example that trains the agent with TRL's own generation runs as `accelerate launch` starts it, in two processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


def test_two_processes_train_one_adapter_on_the_attempts_of_both(root: Path, tiny: Path, tmp_path: Path) -> None:
    launch = "-m accelerate.commands.launch --multi_gpu --num_processes 2 --num_machines 1 --main_process_port 0".split()
    sizes = "--cpu --steps 1 --batch 2 --generations 4 --max-tokens 16 --tasks forward_invoice,largest_text".split()
    example = [str(root / "examples" / "train_agent_grpo.py"), "--model", str(tiny), "--out", str(tmp_path), *sizes]
    run = subprocess.run(
        [sys.executable, *launch, *example],
        cwd=tmp_path,
        env={**os.environ, "ACCELERATE_USE_CPU": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "adapter_model.safetensors").is_file()
    (state,) = tmp_path.glob("checkpoint-1/trainer_state.json")
    logged = json.loads(state.read_text(encoding="utf-8"))["log_history"][0]
    assert logged["completions/max_length"] == 16
    assert logged["num_tokens"] > 4 * 400, "a group of four attempts, two of each process, each behind a prompt with its tools"
