"""The tasks: one folder per domain, one file per task, found by its name."""

if __name__ != "ec2_env.tasks":
    raise ImportError(
        f"this folder is ec2_env.tasks, and importing it as {__name__!r} would make a second copy of every class in it; "
        "write `import ec2_env.tasks` (in a checkout, run `pip install -e .` once)"
    )
