"""EC2-Env: Gymnasium environments for edge-cloud collaboration of language-model agents."""

from __future__ import annotations

__version__ = "0.1.0"

# Gymnasium registration goes below this line, as one import of `ec2_env.registration` and one call. Keep it light: string
# entry points only, so that `import ec2_env` loads no task, no app and no model.
