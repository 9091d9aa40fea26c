"""EC2-Env: Gymnasium environments for edge-cloud collaboration of language-model agents."""

from __future__ import annotations

from ec2_env.registration import register

__version__ = "0.1.0"

register()
