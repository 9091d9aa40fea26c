"""`python -m ec2_env` is the program `ec2-env`."""

from __future__ import annotations

from ec2_env.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
