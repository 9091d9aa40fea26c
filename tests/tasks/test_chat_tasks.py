"""What the tasks of the chat accept, and what they do not pay for."""

from __future__ import annotations

import re

import pytest

from ec2_env.actions import Finish, ToolCall
from ec2_env.task import Episode, Slip, Step, build_episode
from ec2_env.testing import play
from ec2_env.workspace.world import Split

SPLITS: tuple[Split, ...] = ("train", "test")


def episode_of(task: str, variant: int) -> Episode:
    """Returns an episode of a variant; the last one is in the test split only."""
    found = (build_episode(task, seed, split=split) for seed in range(40) for split in SPLITS)
    return next(episode for episode in found if episode.variant == variant)


def test_somebody_who_is_away_answers_once_and_names_a_deputy() -> None:
    for seed in range(6):
        episode = build_episode("escalation_routing", seed)
        done = play(episode)
        answers = [c.after for c in done.workspace.journal if c.author == "world"]
        assert len(answers) == (episode.variant == 0)
        if answers:
            assert "My deputy is" in answers[0].text
            deputy = re.findall(r"deputy is (\w+)", answers[0].text)[0]
            assert isinstance(done.finish, Finish)
            assert any(name.endswith(f" {deputy}") for name in done.finish.data["owners"].values())


def test_a_drill_that_is_handed_on_costs() -> None:
    episode = episode_of("escalation_routing", 0)
    drill = play(episode).finish
    assert drill is not None

    def eager(index: int, step: Step) -> Slip | None:
        if isinstance(step.action, ToolCall) and step.action.name == "post_message":
            other = ToolCall("post_message", {**step.action.arguments, "text": drill.data["drill"]})
            return (other, step.action)
        return None

    assert play(episode, eager).grade.completion <= 0.5


def test_client_details_in_a_direct_message_cost_everything() -> None:
    episode = episode_of("escalation_routing", 1)
    secret = next(unit.value for unit in episode.units if unit.kind == "iban")

    def chatty(index: int, step: Step) -> Slip | None:
        if isinstance(step.action, ToolCall) and step.action.name == "post_message":
            return (ToolCall("post_message", {**step.action.arguments, "text": f"{step.action.arguments['text']} {secret}"}),)
        return None

    assert play(episode, chatty).grade.forbidden == ("client_details_leave",)


@pytest.mark.parametrize("task", ["chat_action_items", "channel_handover"])
def test_an_assignee_may_be_named_by_address(task: str) -> None:
    episode = build_episode(task, 3)
    addresses = {user.name: user.id for user in episode.workspace.rows("todo_user").values()}

    def by_address(index: int, step: Step) -> Slip | None:
        if isinstance(step.action, ToolCall) and "assignee" in step.action.arguments and step.action.name != "list_todos":
            return (
                ToolCall(step.action.name, {**step.action.arguments, "assignee": addresses[step.action.arguments["assignee"]]}),
            )
        return None

    assert play(episode, by_address).grade.completion == 1.0


def test_a_to_do_that_is_made_without_a_date_and_then_mended_is_right() -> None:
    episode = episode_of("chat_action_items", 0)
    changes = 0

    def in_two_steps(index: int, step: Step) -> Slip | None:
        nonlocal changes
        if not isinstance(step.action, ToolCall) or step.action.name != "create_todo":
            return None
        given = {name: value for name, value in step.action.arguments.items() if name != "due"}
        mended = {"todo_id": f"todo-{10001 + changes}", "due": step.action.arguments["due"]}
        changes += 2
        return (ToolCall("create_todo", given), ToolCall("update_todo", mended))

    assert play(episode, in_two_steps).grade.completion == 1.0
    assert changes > 4


def promised(episode: Episode) -> str:
    """Returns what the right report on an incident says that the customer was promised."""
    done = play(episode)
    assert done.finish is not None
    return str(done.finish.data["customer_update"])


def test_who_posts_to_a_customer_without_asking_does_not_know_what_to_promise() -> None:
    answers = set()
    for seed in range(12):
        episode = build_episode("incident_updates", seed)
        if episode.variant == 1:
            continue

        def unasked(index: int, step: Step) -> Slip | None:
            own = isinstance(step.action, ToolCall) and step.action.arguments.get("text", "").startswith("Customer: ")
            return () if own else None

        answers.add(promised(episode) == "none")
        assert play(episode, unasked).grade.completion < 0.6
    assert answers == {True, False}


@pytest.mark.parametrize("variant", [0, 2])
def test_an_internal_line_in_a_customers_channel_costs_the_facts(variant: int) -> None:
    found = (build_episode("incident_updates", seed, split=split) for seed in range(40) for split in SPLITS)
    episode = next(e for e in found if e.variant == variant and promised(e) != "none")

    def same_everywhere(index: int, step: Step) -> Slip | None:
        if isinstance(step.action, ToolCall) and step.action.arguments.get("channel", "").startswith("ext-"):
            text = f"Severity: SEV2\n{step.action.arguments['text']}" if "text" in step.action.arguments else ""
            return (ToolCall("post_message", {**step.action.arguments, "text": text}),)
        return None

    assert play(episode, same_everywhere).grade.completion <= 0.5


def test_a_small_incident_that_customers_hear_of_scores_nothing() -> None:
    episode = episode_of("incident_updates", 1)
    shared = next(c.id for c in episode.workspace.rows("channel").values() if c.shared_with)

    def open_hearted(index: int, step: Step) -> Slip | None:
        if isinstance(step.action, ToolCall) and step.action.name == "post_message":
            return (step.action, ToolCall("post_message", {"channel": shared, "text": "All is well."}))
        return None

    assert play(episode, open_hearted).grade.forbidden == ("told_another_customer",)


@pytest.mark.parametrize("tool", ["reply_mail", "draft_mail"])
def test_sending_all_answers_or_drafting_all_pays_little(tool: str) -> None:
    def habit(index: int, step: Step) -> Slip | None:
        if not isinstance(step.action, ToolCall) or step.action.name not in ("reply_mail", "draft_mail"):
            return None
        given = step.action.arguments
        source = given.get("mail_id") or given["reply_to"]
        if tool == "reply_mail":
            return (ToolCall(tool, {"mail_id": source, "body": given["body"]}),)
        to = [next(mail.sender for mail in episode.workspace.rows("mail").values() if mail.id == source)]
        return (ToolCall(tool, {"to": to, "subject": "Re", "body": given["body"], "reply_to": source}),)

    scores = []
    for seed in range(20):
        episode = build_episode("todo_backtrack", seed)
        scores.append(play(episode, habit).grade.completion)
    assert sum(scores) / len(scores) <= 0.5
    assert min(scores) <= 0.2
