"""What is known of a task before the work begins, as numbers: what a router may look at.

A task is described by how its train-split instances are worded and by what its agent is given. Nothing here has seen a run, a
solution or the test split. What the task's author wrote about its difficulty (`Task.patterns`) is left out: a request has no
such note.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import cast

import numpy as np

from ec2_env.cloud.tokens import count
from ec2_env.task import Task, build_episode, tasks, toolbox
from ec2_env.training.estimators import Floats
from ec2_env.workspace.world import Language

Pair = tuple[str, str]
"""A task and one of its languages."""

NUMBERS = ("log tokens", "log sentences", "facts to report", "figures", "apps", "log tools")
CATEGORIES = ("office", "search", "safety", "data", "operations", "automation")
BUCKETS = 256
"""Places for hashed words and character 3-grams each."""
KINDS = 64
"""Places for hashed names: category, domain, apps, language."""
INSTANCES = 3
"""Train seeds whose wordings are averaged."""
SIZE = len(NUMBERS) + KINDS + 2 * BUCKETS

_WORD = re.compile(r"[^\W\d_]+")
_ENDS = re.compile(r"[.!?。！？;；\n]")
_FIGURE = re.compile(r"\d+")
_SLOT = re.compile(r'"\w+": <')


def features(pairs: Sequence[Pair]) -> Floats:
    """Returns the features of tasks, shape (len(pairs), SIZE): plain numbers first, then names, words and 3-grams in unit length.

    Raises:
        UnknownName: if there is no such task.
        ConfigurationError: if a task does not exist in that language.
    """
    return np.array([_features(name, cast(Language, language)) for name, language in pairs]).reshape(-1, SIZE)


@cache
def _features(name: str, language: Language) -> tuple[float, ...]:
    task = tasks.get(name)
    texts = [build_episode(name, seed, language, "train").instruction for seed in range(INSTANCES)]
    parts = (
        np.mean([_numbers(text, task) for text in texts], axis=0),
        _hashed(("category " + task.category, "domain " + task.domain, language, *task.apps), KINDS),
        np.mean([_hashed(_words(text), BUCKETS) for text in texts], axis=0),
        np.mean([_hashed(_grams(text), BUCKETS) for text in texts], axis=0),
    )
    return tuple(np.concatenate(parts).tolist())


def _numbers(text: str, task: Task) -> list[float]:
    return [
        float(np.log(count(text, "o200k"))),
        float(np.log(1 + len(_ENDS.findall(text)))),
        float(len(_SLOT.findall(text))),
        float(len(_FIGURE.findall(text))),
        float(len(task.apps)),
        float(np.log(len(toolbox(task.apps).tools))),
    ]


def _words(text: str) -> Iterator[str]:
    """Yields words, and pairs of neighboring characters where words are not spaced."""
    for word in _WORD.findall(text.lower()):
        if word.isascii():
            yield word
        else:
            yield from (word[place : place + 2] for place in range(max(1, len(word) - 1)))


def _grams(text: str) -> Iterator[str]:
    plain = " ".join(_WORD.findall(text.lower()))
    return (plain[place : place + 3] for place in range(len(plain) - 2))


def _hashed(words: Iterable[str], size: int) -> Floats:
    """Returns the words as a vector of unit length: each has a place and a sign by its digest, and counts once."""
    vector = np.zeros(size)
    for word in dict.fromkeys(words):
        place, sign = _place(word)
        vector[place % size] += sign
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector


@cache
def _place(word: str) -> tuple[int, int]:
    digest = hashlib.blake2b(word.encode(), digest_size=5).digest()
    return int.from_bytes(digest[:4], "big"), 1 - 2 * (digest[4] & 1)
