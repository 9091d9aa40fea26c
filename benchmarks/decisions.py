"""What rules for the decision about the cloud bring, and what knowing more than a policy can see would bring.

Episodes of the train split, at the default weights, with simulated models; every rule begins with a plan. Rules with a star look
into the simulated edge: they are bounds, not policies.

    python benchmarks/decisions.py --episodes 16
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

from ec2_env.bench.landscape_episodes import episode_keys
from ec2_env.envs import DecisionEnv
from ec2_env.features import NAMES
from ec2_env.models.mind import Mind
from ec2_env.reward import RewardWeights
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import Decision
from ec2_env.task import task_domains
from ec2_env.training.evaluation import episode_terms

SEED = 77
Rule = Callable[[DecisionEnv], Decision]


def mind_of(env: DecisionEnv) -> Mind:
    """Returns the simulated edge of the running episode."""
    assert env.session is not None
    mind: Mind = env.session.minds["edge"]
    return mind


def seen(env: DecisionEnv, name: str) -> float:
    """Returns one feature."""
    return env.features()[NAMES.index(name)]


def fails(env: DecisionEnv) -> bool:
    """Says whether the edge would fail at its next step."""
    mind = mind_of(env)
    step = mind.standing
    return step is not None and mind._luck() >= mind.chance(step)


def reasons(env: DecisionEnv) -> bool:
    """Says whether its next step reasons about a value that redaction would hide."""
    step, session = mind_of(env).standing, env.session
    assert session is not None
    return step is not None and any(u.kind in step.reasons and u.necessity == "reason" for u in session.episode.units)


def act(env: DecisionEnv) -> Decision:
    """Lets the cloud act: in the clear where the step reasons about a hidden value, else redacted."""
    return Decision.ACT if reasons(env) else Decision.ACT_REDACTED


def when(test: Callable[[DecisionEnv], bool], then: Decision | Rule) -> Rule:
    """Returns a rule that uses the cloud where a test says so, and begins with a plan."""

    def rule(env: DecisionEnv) -> Decision:
        if not env.decisions:
            return Decision.PLAN
        if not test(env):
            return Decision.EDGE
        return then if isinstance(then, Decision) else then(env)

    return rule


def above(nats: float) -> Callable[[DecisionEnv], bool]:
    """Returns a test of the edge's entropy."""
    return lambda env: seen(env, "entropy") * 3 > nats


RULES: Mapping[str, Rule] = {
    "never": when(lambda env: False, Decision.EDGE),
    "advice, redacted, every third step": when(lambda env: seen(env, "steps_since_cloud") > 0.15, Decision.ADVISE_REDACTED),
    "advice, redacted, when it is wanted": when(lambda env: seen(env, "wants_help") > 0, Decision.ADVISE_REDACTED),
    "advice, redacted, above 1.7 nats": when(above(1.7), Decision.ADVISE_REDACTED),
    "acts, redacted, above 1.7 nats": when(above(1.7), Decision.ACT_REDACTED),
    "acts, redacted, above 1.3 nats before a change": when(
        lambda env: seen(env, "commits") > 0 and above(1.3)(env), Decision.ACT_REDACTED
    ),
    "* acts above 1.7 nats, in the clear where need be": when(above(1.7), act),
    "* acts, redacted, after an unnoticed mistake": when(lambda env: mind_of(env).astray, Decision.ACT_REDACTED),
    "* acts where the edge would fail, in the clear where need be": when(fails, act),
}


def played(edge: str, cloud: str, key: EpisodeKey) -> list[tuple[float, float, float]]:
    """Returns completion, cost and exposure of an episode under every rule."""
    env, found = DecisionEnv(edge=edge, cloud=cloud), []
    for rule in RULES.values():
        env.begin(key.task, key.language, key.split, key.seed, key.trial)
        while env.session is not None and not env.session.ended:
            env.take(rule(env))
        terms = episode_terms(env)
        found.append((terms.task, terms.cost, terms.exposure))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=16, help="of each domain (%(default)s)")
    parser.add_argument("--edge", default="sim:qwen3.5-9b")
    parser.add_argument("--cloud", default="sim:gpt-5.4")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    keys = [key for domain in task_domains() for key in episode_keys(domain, "train", arguments.episodes, SEED)]
    with ProcessPoolExecutor(arguments.workers) as pool:
        terms = np.array(list(pool.map(partial(played, arguments.edge, arguments.cloud), keys, chunksize=4)))
    weights = RewardWeights()
    returns = terms @ np.array([weights.task, -weights.cost, -weights.privacy])
    print(f"{len(keys)} episodes of the train split, {arguments.edge}, {arguments.cloud}; after a plan, the cloud ...")
    for place, name in enumerate(RULES):
        gains = returns[:, place] - returns[:, 0]
        margin = 1.96 * gains.std() / len(gains) ** 0.5
        completion, cost, exposure = terms[:, place].mean(axis=0)
        print(
            f"{name:62} return {returns[:, place].mean():.3f} ({gains.mean():+.3f} ± {margin:.3f})"
            f"  completion {completion:.3f}  cost {cost:.3f}  exposure {exposure:.3f}"
        )


if __name__ == "__main__":
    main()
