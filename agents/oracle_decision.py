"""Oracle decision: tries every decision on copies of the episode and takes the best: the upper reference."""

from __future__ import annotations

from dataclasses import dataclass

from ec2_env.errors import ConfigurationError
from ec2_env.strategy import Decision, Strategy, StrategyMaker, View, options
from ec2_env.training.teacher import Teacher


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleDecision:
    """Follows the teacher that learners are trained on.

    Attributes:
        teacher: Looks ahead.
    """

    teacher: Teacher
    name: str = "oracle_decision"
    uses_edge: bool = True

    def decide(self, view: View) -> Decision:
        """Returns the decision with the best mean return on copies of the episode.

        Raises:
            ConfigurationError: if the episode cannot be copied, because its models are real.
        """
        if view.fork is None:
            raise ConfigurationError("oracle_decision plays copies of the episode, which takes simulated models")
        return self.teacher.decide(view.fork())


def make(text: str) -> Strategy:
    """Takes the option `draws=NUMBER`: rollouts for each decision; default 4."""
    draws = int(options(text, draws=4)["draws"])
    if draws < 1:
        raise ConfigurationError(f"oracle_decision draws is {draws}, expected at least 1")
    return OracleDecision(teacher=Teacher(draws=draws))


STRATEGY = StrategyMaker(make=make, about="tries every decision on copies of the episode: the upper reference")
