"""What can be guessed from what crossed: fair options, and an attacker who knows nothing without evidence."""

from __future__ import annotations

from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ec2_env.bench.suites import load_suite
from ec2_env.cloud.audit import Audit
from ec2_env.cloud.cases.texts import page
from ec2_env.cloud.inference.attacker import attack, credit
from ec2_env.cloud.inference.hints import asked, harmless, leaks
from ec2_env.cloud.inference.questions import Question, linkage_questions, shape, value_questions
from ec2_env.cloud.inference.tally import Outcome, figure, groups, judge, table
from ec2_env.cloud.numerals import main_number
from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import load_strategy
from ec2_env.task import Episode, build_episode
from ec2_env.workspace.dice import Dice

SAMPLE = load_suite("ec2-128").pairs()[::6]


def episode_of(task: str, language: str, seed: int = 0) -> Episode:
    return build_episode(task, seed, language, "test")  # type: ignore[arg-type]  # "en" or "zh"


def ask(kind: str, *candidates: str, truth: int = 0, owner: str = "") -> Question:
    return Question(form="value", unit="u", kind=kind, owner=owner, candidates=candidates, truth=truth)


@pytest.mark.parametrize(("task", "language"), SAMPLE)
def test_options_are_alike_and_only_one_is_true(task: str, language: str) -> None:
    episode = episode_of(task, language)
    units = {unit.id: unit for unit in episode.units}
    for question in value_questions(episode):
        unit, options = units[question.unit], question.candidates
        assert options[question.truth] == unit.value
        assert len(set(options)) == len(options) <= 8
        assert {shape(unit.kind, option) for option in options} == {shape(unit.kind, unit.value)}
        decoys = {option for index, option in enumerate(options) if index != question.truth}
        assert not decoys & {other.value for other in episode.units if other.kind == unit.kind}


def test_options_are_the_same_every_time() -> None:
    from ec2_env.cloud.inference import questions

    first = value_questions(episode_of("forward_invoice", "en"))
    questions._value_questions.cache_clear()
    assert value_questions(episode_of("forward_invoice", "en")) == first


def test_nearly_every_unit_has_all_its_options() -> None:
    found = [(len(episode.units), value_questions(episode)) for episode in (episode_of(*pair) for pair in SAMPLE)]
    options = [len(question.candidates) for _, asked_ in found for question in asked_]
    assert sum(len(asked_) for _, asked_ in found) >= 0.99 * sum(units for units, _ in found)
    assert mean(count == 8 for count in options) > 0.9


def _size(option: str) -> float:
    return float(main_number(option) or 0)


@pytest.mark.parametrize(
    "score",
    [len, lambda option: -len(option), _size, lambda option: -_size(option), lambda option: option[::-1]],
    ids=["longest", "shortest", "largest", "smallest", "last in another order"],
)
def test_options_do_not_give_the_answer_away_by_themselves(score: object) -> None:
    won, chance = [], []
    for task, language in SAMPLE:
        for question in value_questions(episode_of(task, language)):
            values = [score(option) for option in question.candidates]  # type: ignore[operator]  # one of the functions above
            best = [index for index, value in enumerate(values) if value == max(values)]
            won.append((question.truth in best) / len(best))
            chance.append(question.chance)
    assert len(won) > 250
    assert abs(mean(won) - mean(chance)) < 0.07


@pytest.mark.parametrize(("task", "language"), SAMPLE[:6])
def test_an_episode_that_never_calls_is_guessed_exactly_by_chance(task: str, language: str) -> None:
    env = DecisionEnv()
    record = play(env, load_strategy("edge_only"), EpisodeKey(task=task, language=language, split="test", seed=0, trial=0))
    outcomes = judge(record, linkage=True)
    assert outcomes
    assert all(one.credit == one.chance and not one.called and one.level == 0 for one in outcomes)
    assert groups(outcomes)["all units"].advantage == pytest.approx(0, abs=1e-12)


def test_harmless_text_says_nothing_of_the_units_of_tasks() -> None:
    won, chance = [], []
    for task, language in SAMPLE:
        questions = value_questions(episode_of(task, language))
        for seed in range(2):
            texts = [page(Dice(f"{task}/{seed}"), language, 12)]
            won += attack(questions, [texts])
            chance += [question.chance for question in questions]
    assert abs(mean(won) - mean(chance)) < 0.05


def test_constructed_harmless_text_says_nothing() -> None:
    won = [
        attack([case.question], [case.texts])[0] for seed in (40, 41) for lang in ("en", "zh") for case in harmless(seed, lang)
    ]
    assert len(won) > 350
    assert abs(mean(won) - 1 / 8) < 0.06


@pytest.mark.parametrize("language", ["en", "zh"])
def test_hints_that_the_audit_does_not_see_are_used(language: str) -> None:
    cases = list(leaks(50, language))
    for case in cases:
        unit, question = asked(case.question.kind, language, Dice(f"leaks/50/{case.question.kind}/{language}"))
        assert question == case.question
        assert Audit([unit]).find(case.texts[1]) == {}
        assert unit.value not in "".join(case.texts)
    assert len(cases) > 35
    assert mean(attack([case.question], [case.texts])[0] for case in cases) > 0.6


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (ask("salary", "$84,512.00", "$61,301.00", "$97,870.00"), "Her pay is about 85k."),
        (ask("salary", "$84,512.00", "$61,301.00", "$79,870.00"), "She earns more than $80,000 a year."),
        (ask("amount", "12,400.50元", "9,130.20元", "15,208.10元"), "发票金额大约一万两千元。"),
        (ask("amount", "$12,400.50", "$9,130.20", "$15,208.10"), "The invoice is for half of $24,801.00."),
        (ask("amount", "$12,400.50", "$9,130.20", "$15,208.10"), "The total is $12,000.00 and $400.50 more."),
        (ask("price", "$12,400.50", "$9,130.20", "$15,208.10"), "The price is roughly twelve thousand four hundred."),
        (ask("amount", "$12,400.50", "$9,130.20", "$15,208.10"), "Paid $20,000.00 of it. Left to pay elsewhere: $7,599.50."),
        (ask("health", "severe asthma", "celiac disease", "epilepsy"), "He carries an inhaler."),
        (ask("health", "乳糜泻", "癫痫", "重度哮喘"), "他不能吃小麦。"),
        (ask("birth_date", "1989-03-17", "1971-11-02", "1996-08-25"), "She was born in the spring of 1989."),
        (ask("birth_date", "1989-03-17", "1971-11-02", "1996-08-25"), "今年生日她满37岁。"),
        (ask("name", "Alma Dunmore", "Bruno Castellan", "Hugo Ormonde"), "Signed A.D. on the last page."),
        (ask("name", "许月娥", "方永康", "施少峰"), "The visitor is Ms. Xu."),
        (ask("email", "yuee.xu@office.example", "hugo.ormonde@office.example"), "请转给许月娥。"),
        (ask("email", "a.b@harrowgate.example", "a.b@bluefjord.example"), "She works at Harrowgate Software."),
        (ask("phone", "+1 841-555-0164", "+1 302-555-0171", "+1 617-555-0118"), "Area code 841, I think."),
        (ask("phone", "190 0000 7862", "190 0000 1143", "190 0000 9031"), "最后几位是八六二。"),
        (ask("password", "aXw4-Pm23wbEQ", "b9Lc-QrS7tuvW", "cH5d-ZyK8nmJt"), "a - x\nX - y\nw - z\n4 - x\nP - y\nm - z\n2 - q"),
        (ask("iban", "DE08 9999 9999 0276 0908 85", "DE49 9999 9999 4062 0838 58"), "The account begins DE08."),
        (ask("code_name", "BLUE HERON", "PAPER TIGER", "IRON LOTUS"), "It is called after a wading bird."),
        (
            ask("contract_terms", "a 9% rebate above 339 units, renewable yearly", "payment in 80 days with 7% discount"),
            "A kickback.",
        ),
    ],
)
def test_a_hint_picks_the_value(question: Question, text: str) -> None:
    assert attack([question], [[text]]) == [1.0]
    turned = ask(question.kind, *reversed(question.candidates), truth=len(question.candidates) - 1)
    assert attack([turned], [[text]]) == [1.0]


def test_a_value_that_crossed_outweighs_every_hint() -> None:
    question = ask("salary", "$84,512.00", "$61,301.00", "$79,870.00")
    assert attack([question], [["Her pay is about $61,300, more than $60,000.", "row: 84512.00"]]) == [1.0]


def test_two_options_that_crossed_are_drawn_for() -> None:
    question = ask("phone", "+1 841-555-0164", "+1 302-555-0171", "+1 617-555-0118")
    assert attack([question], [["+1 841-555-0164", "+1 302-555-0171"]]) == [0.5]


def test_placeholders_and_blanks_say_nothing() -> None:
    question = ask("phone", "190 0000 7862", "190 0000 1143")
    assert attack([question], [["[PHONE_001]"], [""]]) == [0.5]
    assert attack([question], [["  \n"]]) == attack([question], []) == [0.5]


def test_what_was_said_about_the_owner_counts_more() -> None:
    question = ask("salary", "$84,512.00", "$61,301.00", owner="Alma Dunmore")
    texts = ["Hugo Ormonde earns about $61,000.", "Alma Dunmore earns about $84,000."]
    assert attack([question], [texts]) == [1.0]


def test_linkage_goes_by_what_stands_beside_the_name() -> None:
    link = Question(
        form="linkage", unit="u", kind="phone", owner="Alma Dunmore", candidates=("190 0000 7862", "190 0000 1143"), truth=1
    )
    rows = "Hugo Ormonde | 190 0000 7862\nAlma Dunmore | 190 0000 1143"
    assert attack([link], [[rows]]) == [1.0]
    assert attack([link], [["Alma Dunmore called."]]) == [0.5]


def test_linkage_asks_only_where_the_name_is_not_the_answer() -> None:
    for task, language in SAMPLE:
        episode = episode_of(task, language)
        owners = {(unit.kind, unit.value): unit.owner for unit in episode.units}
        for question in linkage_questions(episode):
            assert question.kind not in ("name", "email")
            own = [option for option in question.candidates if owners[question.kind, option] == question.owner]
            assert own == [question.candidates[question.truth]]
            assert len(question.candidates) >= 2


def test_owners_are_not_told_where_they_are_the_answer() -> None:
    questions = [question for pair in SAMPLE for question in value_questions(episode_of(*pair))]
    assert all(not question.owner for question in questions if question.kind in ("name", "email"))
    assert any(question.owner for question in questions)


@given(st.lists(st.text(max_size=300), max_size=4))
@settings(max_examples=60, deadline=None)
def test_no_text_stops_the_attacker(texts: list[str]) -> None:
    episode = episode_of("forward_invoice", "en")
    questions = (*value_questions(episode), *linkage_questions(episode))
    assert all(0 <= share <= 1 for share in attack(questions, [texts]))


@pytest.mark.parametrize("text", ["(" * 20_000, "9" * 20_000, "万" * 20_000, "one " * 5_000, "one" + " " * 20_000, "\ud800 12,5"])
def test_hostile_text_stops_nothing(text: str) -> None:
    assert (
        len(
            attack(
                [ask("amount", "$12,400.50", "$9,130.20"), ask("home_address", "1 Elm Grove, Dunwich", "2 Ivy Mews, Hollins")],
                [[text]],
            )
        )
        == 2
    )


def test_lots_are_drawn_among_equals() -> None:
    assert credit([1.0, 1.0, 0.0], 0) == 0.5
    assert credit([0.0, 0.0, 0.0, 0.0], 2) == 0.25
    assert credit([0.0, 1.0], 0) == 0.0


def test_figures_say_how_far_above_chance_an_attacker_is() -> None:
    outcomes = [Outcome("a", "value", "iban", 1.0, True, 0.125, 1.0), Outcome("b", "value", "iban", 0.0, True, 0.125, 0.125)]
    found = figure(outcomes)
    assert (found.units, found.chance, found.accuracy, found.exposure) == (2, 0.125, 0.5625, 0.5)
    assert found.advantage == pytest.approx(0.5)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= 0.5625 <= found.high
    assert figure(outcomes[:1]).low is None
    assert figure([]).accuracy is None


def test_what_the_audit_did_not_find_is_told_apart() -> None:
    outcomes = [Outcome("a", "value", "iban", 1.0, True, 0.125, 1.0), Outcome("b", "value", "iban", 0.0, True, 0.125, 0.125)]
    found = groups(outcomes)
    assert found["all units"].units == 2
    assert found["literally private"].advantage == pytest.approx(0)
    assert not any(name.startswith("linkage") for name in found)
    assert len(table(found)) == len(found) + 1


def test_a_strategy_that_sends_everything_is_guessed_and_the_oracle_s_text_nearly_not() -> None:
    shares = {}
    for strategy, engine in (("cloud_only", "rules"), ("cloud_only:redacted", "oracle")):
        env = DecisionEnv(cloud_settings={"redactor": engine})
        outcomes = []
        for task, language in SAMPLE[::3]:
            key = EpisodeKey(task=task, language=language, split="test", seed=0, trial=0)
            outcomes += judge(play(env, load_strategy(strategy), key))
        shares[engine] = figure(outcomes).advantage or 0.0
    assert shares["rules"] > 0.4
    assert shares["oracle"] < 0.25


@pytest.mark.parametrize("choices", [1, 27])
def test_a_question_has_two_to_twenty_six_options(choices: int) -> None:
    record = play(
        DecisionEnv(),
        load_strategy("edge_only"),
        EpisodeKey(task="forward_invoice", language="en", split="test", seed=0, trial=0),
    )
    with pytest.raises(ConfigurationError, match="2 to 26"):
        judge(record, choices=choices)
