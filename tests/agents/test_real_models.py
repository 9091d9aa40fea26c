"""Every strategy with a real model at either end: SmolLM2, served twice by llama.cpp on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError
from ec2_env.models.loading import load_model
from ec2_env.models.smollm2 import gguf_path
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import Prepared, load_strategy
from ec2_env.trace import CloudCall, EdgeTurn, from_json, to_json

KEY = EpisodeKey(task="largest_text", language="en", split="test", seed=0, trial=0)
STRATEGIES = (
    "edge_only",
    "cloud_only",
    "sketch_guided",
    "task_routing:ratio=1",
    "step_routing",
    "adaptive_assistance",
    "on_demand_query",
    "cloud_orchestrator:steps=1",
)


def served(server: Any, **options: Any) -> Any:
    """Returns the model behind a server."""
    words = {"tools": "text", "temperature": 0, "max_tokens": 12, "max_context_tokens": 2048, "retries": 0, "timeout_s": 120}
    return load_model(f"openai:smollm2@base_url={server}/v1," + ",".join(f"{k}={v}" for k, v in {**words, **options}.items()))


@pytest.fixture(scope="module")
def addresses() -> Iterator[tuple[str, str]]:
    """Serves the model twice, as two machines would: once as the edge, once as the cloud."""
    xllamacpp = pytest.importorskip("xllamacpp", reason="the extra 'dev' is not installed", exc_type=ImportError)
    pytest.importorskip("openai", reason="the extra 'llm' is not installed")
    try:
        path = str(gguf_path())
    except ConfigurationError as error:
        pytest.skip(str(error))
    servers = []
    for _ in range(2):
        parameters = xllamacpp.CommonParams()
        parameters.model.path = path
        parameters.n_ctx = 2048
        parameters.n_parallel = 1
        parameters.cpuparams.n_threads = 1
        servers.append(xllamacpp.Server(parameters))
    yield servers[0].listening_address, servers[1].listening_address
    del servers


@pytest.mark.parametrize("spec", STRATEGIES)
def test_every_strategy_runs_end_to_end_on_two_real_servers(spec: str, addresses: tuple[str, str]) -> None:
    edge, cloud = served(addresses[0], parameters=135e6), served(addresses[1], price="gpt-5.4")
    strategy = load_strategy(spec)
    if isinstance(strategy, Prepared):
        strategy = strategy.prepare({(KEY.task, KEY.language): 1.0})
    done = play(DecisionEnv(edge=edge, cloud=cloud, max_episode_steps=2 if "orchestrator" in spec else 1), strategy, KEY)
    assert done.result["status"] in ("pass", "fail", "invalid"), done.result["problem"]
    calls = [event for event in done.events if isinstance(event, CloudCall)]
    if spec in ("cloud_only", "sketch_guided", "task_routing:ratio=1", "cloud_orchestrator:steps=1"):
        assert calls, "these ask whatever the models say"
    assert all(call.status == "ok" and call.tokens_raw + call.tokens_cached > 0 for call in calls)
    assert (done.result["cloud_usd"] > 0) == bool(calls)
    assert strategy.uses_edge or not any(isinstance(event, EdgeTurn) for event in done.events)
    assert from_json(to_json(done)) == done
