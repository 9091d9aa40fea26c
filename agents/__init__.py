"""Collaboration strategies: one file each, found by its name."""

if __name__ != "ec2_env.agents":
    raise ImportError(
        f"this folder installs as ec2_env.agents, and was imported as {__name__!r}, which would make a second copy of every class in it; "
        "write `import ec2_env.agents` (from a checkout, once: pip install -e .)"
    )
