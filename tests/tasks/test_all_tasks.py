"""What every task has to prove, whoever wrote it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import pytest

from ec2_env.task import Episode, build_episode, grade, task_domains, tasks
from ec2_env.testing import check_task, play
from ec2_env.workspace.world import Split, World

CHINESE = re.compile(r"[\u4e00-\u9fff]")
NAMES = pytest.mark.parametrize("name", tasks.names())
MANY = range(20)
SPLITS: tuple[Split, ...] = ("train", "test")


def episodes(name: str, seeds: range, split: str = "train") -> Iterator[Episode]:
    """Yields the episodes of a task in all its languages."""
    for language in tasks.get(name).languages:
        for seed in seeds:
            yield build_episode(name, seed, language, split)  # type: ignore[arg-type]  # "train" or "test"


@NAMES
def test_the_task_is_sound(name: str) -> None:
    assert check_task(name, seeds=range(2)) == []


@NAMES
def test_there_are_enough_phrasings_and_the_test_split_has_its_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Mapping[str, Sequence[str]]] = []
    phrase = World.phrase

    def noted(self: World, phrasings: Mapping[str, Sequence[str]], **values: object) -> str:
        asked.append(phrasings)
        return phrase(self, phrasings, **values)

    monkeypatch.setattr(World, "phrase", noted)
    for language in tasks.get(name).languages:
        asked.clear()
        rendered = {split: {build_episode(name, seed, language, split).instruction for seed in MANY} for split in SPLITS}
        assert not rendered["train"] & rendered["test"]
        assert min(map(len, rendered.values())) > 1
        assert asked, "the task draws its instruction with world.phrase, which keeps the splits apart"
        for phrasings in asked:
            options = phrasings[language]
            assert len(options) >= 6
            assert len(set(options)) == len(options)


@NAMES
def test_each_language_is_that_language(name: str) -> None:
    for episode in episodes(name, range(5)):
        request = episode.instruction.rpartition("\n")[0]
        letters = len(CHINESE.findall(request))
        if episode.language == "zh":
            assert letters > 10
            assert len(re.findall(r"[a-z]{3,} [a-z]{3,} [a-z]{3,}", request)) == 0, request
        else:
            assert letters == 0


@NAMES
def test_an_instruction_alone_rarely_gives_units_away(name: str) -> None:
    for episode in episodes(name, range(2)):
        told = [unit for unit in episode.units if unit.value in episode.instruction]
        assert len(told) < len(episode.units) or not episode.task.annotated


@NAMES
def test_the_solution_is_of_a_decent_length_and_each_step_says_what_it_takes(name: str) -> None:
    for episode in episodes(name, range(2)):
        done = play(episode)
        assert 4 <= len(done.actions) <= episode.task.max_steps * 3 // 4
        assert done.grade.completion == 1.0


@NAMES
def test_grading_looks_at_the_end_and_changes_nothing(name: str) -> None:
    episode = build_episode(name, 0)
    done = play(episode)
    first = grade(episode, done.workspace, done.finish)
    assert first == done.grade == grade(episode, done.workspace, done.finish)
    assert first.completion == 1.0
    assert grade(episode, done.workspace, None).completion < 1.0


@NAMES
def test_the_weights_add_up_and_names_are_unique(name: str) -> None:
    for episode in episodes(name, range(1)):
        assert abs(sum(check.weight for check in episode.checks) - 1) < 1e-9
        names = [check.name for check in episode.checks] + [act.name for act in episode.forbidden]
        assert len(set(names)) == len(names)
        assert len({slot.key for slot in episode.report}) == len(episode.report)


def test_every_task_is_in_the_folder_of_its_domain() -> None:
    for domain, names in task_domains().items():
        for name in names:
            assert tasks.get(name).domain == domain
