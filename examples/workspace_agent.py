"""An agent that works through tools, asks the cloud once, and finishes: first in the clear, then redacted.

    python examples/workspace_agent.py

The policy is fixed, so the two episodes differ only in what the one call to the cloud gives away, and in the reward for it.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import gymnasium as gym

import ec2_env  # noqa: F401  # registers the environments


def agent(redact: bool) -> Generator[dict[str, Any], str, None]:
    """Yields tool calls and is sent what each returned: reads the policy and the newest invoice, asks, and finishes."""
    files = json.loads((yield {"name": "list_files", "arguments": {}}))
    policy = next(file["path"] for file in files if "invoice" in file["path"])
    yield {"name": "read_file", "arguments": {"path": policy}}
    mails = json.loads((yield {"name": "search_mail", "arguments": {"query": "Invoice"}}))
    yield {"name": "read_mail", "arguments": {"mail_id": mails[0]["id"]}}
    request = {"request": "Who has to approve this invoice?", "mode": "advise", "share": "transcript", "redact": redact}
    yield {"name": "invoke_cloud", "arguments": request}
    yield {"name": "finish", "arguments": {"answer": "I have read everything and done nothing yet.", "data": {}}}


def main() -> None:
    env = gym.make("EC2/Email-v0", cloud="sim:gpt-5.4", language="en")
    for redact in (False, True):
        observation, _ = env.reset(seed=4, options={"task": "forward_invoice"})
        print(f"\n{'redacted' if redact else 'in the clear'}: {observation['instruction'].splitlines()[0]}")
        calls, total, over = agent(redact), 0.0, False
        action = next(calls)
        while not over:
            observation, reward, terminated, truncated, info = env.step(action)
            total, over = total + float(reward), terminated or truncated
            exposed = ", ".join(f"{one['unit']} at {one['level']}" for one in info["exposures"])
            print(f"  {action['name']:13} reward {float(reward):+.3f}" + (f"  exposes {exposed}" if exposed else ""))
            if action["name"] == "invoke_cloud":
                print(f"    {observation['result'].splitlines()[0][:110]}")
            if not over:
                action = calls.send(observation["result"])
        result = info["result"]
        privacy, usd = result["privacy"], result["cloud_usd"]
        print(f"  return {total:+.3f}, completion {result['completion']:g}, privacy {privacy:.2f}, ${usd:.4f}")


if __name__ == "__main__":
    main()
