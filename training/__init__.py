"""Training of edge policies for the cloud-invocation decision."""

if __name__ != "ec2_env.training":
    raise ImportError(
        f"this folder is ec2_env.training, and importing it as {__name__!r} would make a second copy of every class in it; "
        "write `import ec2_env.training` (in a checkout, run `pip install -e .` once)"
    )
