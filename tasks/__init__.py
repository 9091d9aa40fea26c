"""The tasks: one folder per domain, one file per task, found by its name."""

if __name__ != "ec2_env.tasks":
    raise ImportError(
        f"this folder installs as ec2_env.tasks, and was imported as {__name__!r}, which would make a second copy of every class in it; "
        "write `import ec2_env.tasks` (from a checkout, once: pip install -e .)"
    )
