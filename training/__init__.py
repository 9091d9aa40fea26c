"""Training of edge policies for the cloud-invocation decision."""

if __name__ != "ec2_env.training":
    raise ImportError(
        f"this folder installs as ec2_env.training, and was imported as {__name__!r}, which would make a second copy of every class in it; "
        "write `import ec2_env.training` (from a checkout, once: pip install -e .)"
    )
