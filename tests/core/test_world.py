"""Worlds: seeded, consistent, and every secret is annotated, well formed and nobody's."""

from __future__ import annotations

import random
import re

import pytest

from ec2_env.errors import ConfigurationError
from ec2_env.sensitive import KINDS
from ec2_env.workspace import secrets
from ec2_env.workspace.dice import Dice
from ec2_env.workspace.world import World

LANGUAGES = pytest.mark.parametrize("language", ["en", "zh"])


@LANGUAGES
def test_the_same_key_draws_the_same_world(language: str) -> None:
    def drawn(key: str) -> list[object]:
        world = World(key, language, "train")  # type: ignore[arg-type]  # "en" or "zh"
        people = world.people(5)
        return [
            people,
            world.firm(),
            world.secret("iban", owner=people[0]),
            world.new_id("mail"),
            world.number(1, 900),
            world.today,
        ]

    assert drawn("a") == drawn("a") != drawn("b")


@LANGUAGES
def test_people_firms_and_ids_are_unique(language: str) -> None:
    world = World("unique", language, "train")  # type: ignore[arg-type]  # "en" or "zh"
    people = [*world.people(40), world.person(firm=world.firm())]
    assert len({person.email for person in people}) == 41
    assert len({person.name for person in people}) == 41
    firms = [world.firm() for _ in range(6)]
    assert len({firm.domain for firm in firms}) == 6
    assert all(person.email.isascii() for person in people)
    assert len({world.new_id("mail") for _ in range(500)}) == 500
    twin = world.person(like=people[0])
    assert twin.name != people[0].name
    assert (twin.name[0] == people[0].name[0]) if language == "zh" else (twin.name.split()[1] == people[0].name.split()[1])


@LANGUAGES
@pytest.mark.parametrize("kind", sorted(secrets.DRAW))
def test_every_kind_of_secret_can_be_drawn_and_is_annotated(language: str, kind: str) -> None:
    world = World(f"secret/{kind}", language, "test")  # type: ignore[arg-type]  # "en" or "zh"
    values = [world.secret(kind, owner="somebody", need="copy") for _ in range(3)]
    assert [unit.value for unit in world.units] == values
    assert {unit.kind for unit in world.units} == {kind}
    assert [unit.id for unit in world.units] == [f"{kind}-1", f"{kind}-2", f"{kind}-3"]
    assert all(unit.weight == KINDS[kind][1] for unit in world.units)


def test_checksums_hold_and_no_number_is_assigned() -> None:
    rng = random.Random(0)
    for _ in range(200):
        iban = secrets.iban(rng, "en").replace(" ", "")
        assert int(iban[4:] + "1314" + iban[2:4]) % 97 == 1
        card = [int(digit) for digit in secrets.card_number(rng, "en").replace(" ", "")]
        assert sum(d if i % 2 else (2 * d - 9 if d > 4 else 2 * d) for i, d in enumerate(card)) % 10 == 0
        citizen = secrets.national_id(rng, "zh")
        weights = [2 ** (17 - i) % 11 for i in range(17)]
        assert "10X98765432"[sum(int(d) * w for d, w in zip(citizen, weights, strict=False)) % 11] == citizen[17]
        assert re.fullmatch(r"9\d\d-\d\d-\d{4}", secrets.national_id(rng, "en"))
        assert "-555-01" in secrets.phone(rng, "en")
        assert secrets.phone(rng, "zh").startswith("190 0000 ")


def test_an_unknown_kind_of_secret_is_a_mistake() -> None:
    with pytest.raises(ConfigurationError, match="kinds are"):
        World("x", "en", "train").secret("nickname", owner="x")


def test_working_days_skip_the_weekend() -> None:
    world = World("days", "en", "train")
    assert world.today.weekday() < 5
    for offset in range(-12, 13):
        day = world.workday(offset)
        assert offset == 0 or day.weekday() < 5
        assert (day - world.today).days * offset >= 0


def test_amounts_lie_near_what_they_should_be_near() -> None:
    world = World("near", "en", "train")
    for _ in range(200):
        value = world.number(100, 900)
        assert 100 <= value < 909
        assert world.near(value, within=0.02, above=True) >= value
        assert value * 0.98 - 0.01 <= world.near(value, within=0.02, above=False) <= value
    assert world.money(1234.5) == "$1,234.50"
    assert World("near", "zh", "train").money(1234.5) == "1,234.50元"


def test_the_splits_use_other_phrasings() -> None:
    phrasings = {"en": [f"{word} {{x}}" for word in "abcdef"]}
    train = {World(str(i), "en", "train").phrase(phrasings, x=1) for i in range(60)}
    test = {World(str(i), "en", "test").phrase(phrasings, x=1) for i in range(60)}
    assert train == {"a 1", "b 1", "c 1", "d 1"}
    assert test == {"e 1", "f 1"}


def test_dice_draw_what_they_should() -> None:
    dice = Dice(1)
    assert {dice.randrange(3) for _ in range(100)} == {0, 1, 2}
    assert {dice.randrange(2, 9, 3) for _ in range(100)} == {2, 5, 8}
    assert {dice.choice("ab") for _ in range(50)} == {"a", "b"}
    with pytest.raises(ValueError, match="empty range"):
        dice.randrange(5, 5)
