"""Registers one environment of each kind for every task, every domain and the whole suite."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import WrapperSpec

from ec2_env.task import task_domains

WORKSPACE, DECISION = "ec2_env.envs:WorkspaceEnv", "ec2_env.envs:DecisionEnv"
BUDGET: dict[str, Any] = {"reward": "constraint", "max_cost": 0.75, "max_exposure": 0.2}
"""Settings of the budgeted envs: three quarters of what the task costs cloud-only, and a fifth of what is sensitive."""
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "": (WORKSPACE, {}),
    "Decision": (DECISION, {}),
    "Budget": (WORKSPACE, BUDGET),
    "DecisionBudget": (DECISION, BUDGET),
}
"""Ending of the name, the class and its settings."""
CUTOFF = WrapperSpec("Cutoff", "ec2_env.cutoff:Cutoff", {})
"""Grades what an outer time limit cuts off."""


ACRONYMS = {"crm": "CRM"}


def camel(name: str) -> str:
    """Returns "ForwardInvoice" for "forward_invoice", and "CRM" for "crm"."""
    return ACRONYMS.get(name) or "".join(part.capitalize() for part in name.split("_"))


def env_ids() -> dict[str, dict[str, str]]:
    """Returns every id with the settings that it stands for."""
    ids: dict[str, dict[str, str]] = {"Workspace": {}}
    for domain, names in task_domains().items():
        ids[camel(domain)] = {"domain": domain}
        ids.update({camel(name): {"task": name} for name in names})
    return ids


def register() -> None:
    """Registers all ids with Gymnasium; a second call does nothing."""
    for name, settings in env_ids().items():
        for ending, (entry_point, more) in KINDS.items():
            env_id = f"EC2/{name}{ending}-v0"
            if env_id not in gym.registry:
                gym.register(
                    env_id,
                    entry_point=entry_point,
                    kwargs={**settings, **more},
                    additional_wrappers=(CUTOFF,),
                    disable_env_checker=True,  # it knows scalar rewards only; the tests run the full check on every id
                )
