"""The conformance kit: what every task has to prove, for the tasks that ship and for yours.

`check_task("my_task", seeds=range(20)) == []` is all that a test of a task has to assert; `ec2-env doctor FOLDER` says the same
of a whole folder.
"""

from ec2_env.testing.agents import AGENTS
from ec2_env.testing.mutants import Mutant, mutants
from ec2_env.testing.play import Played, play
from ec2_env.testing.verdict import check_episode, check_task

__all__ = ["AGENTS", "Mutant", "Played", "check_episode", "check_task", "mutants", "play"]
