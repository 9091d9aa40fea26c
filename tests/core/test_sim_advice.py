"""What advice, plans and a short memory do to a simulated model."""

from __future__ import annotations

from statistics import fmean

import pytest

from ec2_env.actions import Finish, ToolCall
from ec2_env.envs import DecisionEnv
from ec2_env.models.chances import ability_logit
from ec2_env.models.forgetting import cut, is_forgotten
from ec2_env.models.lookback import linked
from ec2_env.models.mind import Mind
from ec2_env.models.profile import load_profile
from ec2_env.rollout import EpisodeKey, play
from ec2_env.session import Session
from ec2_env.strategy import Always, Decision
from ec2_env.trace import ToolRan

ALONE = Always(name="alone", decision=Decision.EDGE)


def running(env: DecisionEnv) -> tuple[Session, Mind]:
    """Returns the episode that an env is in, and its edge."""
    assert env.session is not None
    return env.session, env.session.minds["edge"]


def after_a_mistake(edge: str, cloud: str, advise: Decision = Decision.ADVISE) -> list[bool]:
    """Returns, for episodes in which the edge has gone astray, whether it still is after one piece of advice."""
    found = []
    env = DecisionEnv(task="forward_invoice", edge=edge, cloud=cloud)
    for seed in range(60):
        env.begin("forward_invoice", "en", "train", seed, 0)
        session, mind = running(env)
        while not session.ended and not (mind.astray and not mind.queue):
            env.take(Decision.EDGE)
        if not session.ended:
            env.take(advise)
            found.append(mind.astray)
    return found


EDGE = "sim:qwen3.5-9b@ability=1,repair=0,follow=1,follow_asked=1"
CLOUD = "sim:gpt-5.4@ability=9"


def test_advice_undoes_a_mistake_only_if_the_cloud_notices_it() -> None:
    blind = after_a_mistake(EDGE, f"{CLOUD},fresh_look=0,repair=0")
    sharp = after_a_mistake(EDGE, f"{CLOUD},fresh_look=1")
    half = after_a_mistake(EDGE, f"{CLOUD},fresh_look=0,repair=0.5")
    assert len(blind) == len(sharp) == len(half) > 20
    assert all(blind) and not any(sharp)
    assert 0.25 < fmean(half) < 0.75


def test_wrong_advice_that_is_followed_leads_astray() -> None:
    led = 0
    env = DecisionEnv(
        task="forward_invoice", edge="sim:qwen3.5-9b@ability=9,follow=1,follow_asked=1", cloud="sim:gpt-5.4@ability=1"
    )
    for seed in range(40):
        env.begin("forward_invoice", "en", "train", seed, 0)
        session, mind = running(env)
        while not session.ended and not mind.astray:
            env.take(Decision.ADVISE)
        led += mind.astray
    assert led > 10


def test_advice_that_failed_three_times_is_not_followed_again() -> None:
    edge = "sim:qwen3.5-9b@ability=9,curiosity=0,follow=1,follow_asked=1"
    env = DecisionEnv(task="forward_invoice", edge=edge, cloud="sim:gpt-5.4@ability=-9")
    env.begin("forward_invoice", "en", "train", 0, 0)
    session, _ = running(env)
    for _ in range(4):
        env.take(Decision.ADVISE)
    assert [record.ok for record in session.records] == [False, False, False, True]


def test_who_asked_for_advice_follows_it_more_often() -> None:
    made = {}
    for rate in (0.0, 50.0):
        edge = f"sim:qwen3.5-9b@ability=-9,follow=0,follow_asked=1,help_rate={rate},help_spread=0"
        env = DecisionEnv(task="forward_invoice", edge=edge, cloud="sim:gpt-5.4@ability=9")
        done = 0
        for seed in range(5):
            env.begin("forward_invoice", "en", "train", seed, 0)
            env.take(Decision.ADVISE)
            done += running(env)[0].records[-1].ok
        made[rate] = done
    assert made[50.0] == 5
    assert made[0.0] < 5


def test_a_plan_helps_by_what_the_helper_is_better_at_in_general() -> None:
    env = DecisionEnv(task="forward_invoice", edge="sim:qwen3.5-9b@step_sd=3", cloud="sim:gpt-5.4@step_sd=3")
    env.begin("forward_invoice", "en", "train", 0, 0)
    session, mind = running(env)
    step = mind.standing
    assert step is not None
    gaps = {mind._gap(step, at) for at in range(12)}
    general = mind._gap(step, None)
    assert len(gaps) > 6 and general not in gaps
    assert general == pytest.approx(
        ability_logit(mind.better, session, step, None) - ability_logit(mind.profile, session, step, None)
    )


def test_steps_of_one_episode_differ_more_than_episodes_do() -> None:
    env = DecisionEnv(task="forward_invoice", edge="sim:qwen3.5-9b")
    within = []
    for seed in range(10):
        env.begin("forward_invoice", "en", "train", seed, 0)
        session, mind = running(env)
        step = mind.standing
        assert step is not None
        within.append([ability_logit(load_profile("qwen3.5-9b"), session, step, at) for at in range(40)])
    means = [fmean(row) for row in within]
    assert max(abs(mean - fmean(means)) for mean in means) < 1.7
    assert all(max(row) - min(row) > 4 for row in within)


def test_the_tool_that_an_edge_has_begun_to_write_is_the_one_that_it_calls_alone() -> None:
    env, told, called = DecisionEnv(), [], []
    for seed in range(6):
        env.begin("forward_invoice", "en", "train", seed, 0)
        session, _ = running(env)
        while not session.ended:
            tool = session.signals().tool
            env.take(Decision.EDGE)
            ran = [event.name for event in session.events if isinstance(event, ToolRan)]
            told.append(tool)
            called.append(ran[-1])
    assert told == called and len(told) > 40


# -- a short memory


def test_the_oldest_results_are_lost_first_and_the_newest_never() -> None:
    results = ["a" * 30, "b" * 30, "c" * 300]
    assert cut(results, 1000) == (results, [])
    assert cut(results, 110) == (results[1:], results[:1])
    assert cut(results, 5) == (results[2:], results[:2])
    assert cut([], 5) == ([], [])


def test_what_stands_only_in_results_out_of_the_window_is_forgotten() -> None:
    env = DecisionEnv(task="forward_invoice", edge="sim:qwen3.5-9b@ability=9,repair=0")
    env.begin("forward_invoice", "en", "train", 0, 0)
    session, _ = running(env)
    while not session.ended:
        env.take(Decision.EDGE)
    results = [event.result for event in session.events if isinstance(event, ToolRan)]
    kept = "\n".join([session.episode.instruction, results[-1]])
    early = next(found for result in results[:-1] for found in linked(result) if found not in kept)
    late = linked(kept)[0]
    assert not is_forgotten(ToolCall("send_mail", {"body": early}), session, 100_000)
    assert is_forgotten(ToolCall("send_mail", {"body": early}), session, 1)
    assert not is_forgotten(ToolCall("send_mail", {"body": late}), session, 1)
    assert not is_forgotten(Finish(), session, 1)


def test_a_short_window_costs_completion_and_a_long_one_nothing() -> None:
    def completion(window: int) -> float:
        env = DecisionEnv(edge=f"sim:qwen3.5-9b@ability=2,window={window}")
        keys = [EpisodeKey(task="month_end_close", language="zh", split="train", seed=seed, trial=0) for seed in range(12)]
        return fmean(play(env, ALONE, key).result["completion"] for key in keys)

    assert completion(32_768) == completion(10_000) > completion(200)
