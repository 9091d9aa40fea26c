"""Collaboration strategies: one file each, found by its name."""

if __name__ != "ec2_env.agents":
    raise ImportError(
        f"this folder is ec2_env.agents, and importing it as {__name__!r} would make a second copy of every class in it; "
        "write `import ec2_env.agents` (in a checkout, run `pip install -e .` once)"
    )
