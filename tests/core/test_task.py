"""Episodes: rebuilt from their key, graded by weight, and halved for each change that nobody asked for."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from ec2_env.actions import ToolCall
from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.task import STRAY_FACTOR, build_episode, grade, task_domains, tasks, toolbox
from ec2_env.testing import check_task, play
from ec2_env.testing.verdict import unseen_values


def test_an_episode_pickles_by_its_key_and_is_not_copied() -> None:
    episode = build_episode("forward_invoice", 5, "zh", "test")
    again = pickle.loads(pickle.dumps(episode))
    assert (again.key, again.instruction, again.units) == (episode.key, episode.instruction, episode.units)
    assert copy.deepcopy(episode) is episode
    assert len(pickle.dumps(episode)) < 500


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"name": "forward_invoce"}, UnknownName),
        ({"name": "forward_invoice", "language": "xx"}, ConfigurationError),
        ({"name": "forward_invoice", "split": "dev"}, ConfigurationError),
    ],
)
def test_episodes_that_do_not_exist_are_refused(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        build_episode(**{"seed": 0, **arguments})


def test_any_whole_number_is_a_seed() -> None:
    for seed in (-1, 0, 2**31, 10**30):
        assert play(build_episode("forward_invoice", seed)).grade.completion == 1.0


def test_each_stray_change_halves_the_score() -> None:
    episode = build_episode("forward_invoice", 0)
    done = play(episode)
    for strays in range(3):
        graded = grade(episode, done.workspace, done.finish)
        assert graded.completion == pytest.approx(STRAY_FACTOR**strays)
        assert graded.strays == strays
        toolbox(episode.task.apps).run(done.workspace, ToolCall("write_file", {"path": f"stray{strays}.md", "content": "x"}))


def test_forbidden_acts_set_the_score_to_nothing() -> None:
    episode = build_episode("forward_invoice", 0)
    done = play(episode)
    sender = next(mail.sender for mail in done.workspace.rows("mail").values() if not mail.sender.endswith("office.example"))
    toolbox(episode.task.apps).run(done.workspace, ToolCall("send_mail", {"to": [sender], "subject": "x", "body": "y"}))
    graded = grade(episode, done.workspace, done.finish)
    assert graded.completion == 0.0
    assert "sent_to_vendor" in graded.forbidden


def test_domains_are_folders() -> None:
    found = task_domains()
    assert sorted(name for names in found.values() for name in names) == sorted(tasks.names())


def test_the_kit_finds_nothing_wrong_with_a_sound_task_and_no_unseen_value() -> None:
    assert check_task("forward_invoice", seeds=range(3)) == []
    assert unseen_values(build_episode("forward_invoice", 3)) == []


def test_changed_solutions_end_where_they_break() -> None:
    episode = build_episode("forward_invoice", 0)
    done = play(episode, lambda index, step: () if index == 0 else None)
    assert done.grade.completion <= 1.0
    broken = play(episode, lambda index, step: (ToolCall("list_files"),))
    assert broken.grade.completion == 0.0
