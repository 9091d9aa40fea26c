"""What a command of `ec2-env` is; `ec2_env/commands/` holds them, one file each."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command: `ec2_env/commands/NAME.py` defines it as `COMMAND`, and it is `ec2-env NAME`.

    The module is imported to list the commands, so it must be light: what is slow to import belongs into `run`.
    """

    help: str
    """One line, a verb first, without a full stop."""
    add_arguments: Callable[[argparse.ArgumentParser], None]
    """Declares the command's flags on the parser it is given."""
    run: Callable[[argparse.Namespace], int]
    """Does the work and returns the exit status: 0 for success, 1 for a finding, such as a failed check."""
