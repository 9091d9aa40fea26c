"""Measures what can be guessed from what crossed: of strategies, of constructed hints, and of the options alone.

python benchmarks/inference.py
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import mean

from ec2_env.bench.suites import load_suite
from ec2_env.cloud.forms import MONEY_KINDS
from ec2_env.cloud.inference.asking import Asked
from ec2_env.cloud.inference.attacker import attack, credit
from ec2_env.cloud.inference.hints import Case, harmless, leaks
from ec2_env.cloud.inference.questions import CHOICES, Question, value_questions
from ec2_env.cloud.inference.tally import Figure, Guess, Outcome, figure, judge
from ec2_env.cloud.numerals import main_number
from ec2_env.envs import DecisionEnv
from ec2_env.models.loading import load_model
from ec2_env.rollout import EpisodeKey, play
from ec2_env.sensitive import KINDS
from ec2_env.strategy import load_strategy
from ec2_env.task import build_episode, tasks

LANGUAGES = ("en", "zh")
STRATEGIES = (
    ("edge_only", "rules"),
    ("cloud_only", "rules"),
    ("cloud_only:redacted", "rules"),
    ("cloud_only:redacted", "oracle"),
    ("adaptive_assistance", "rules"),
    ("adaptive_assistance:redacted", "rules"),
    ("adaptive_assistance:redacted", "oracle"),
    ("sketch_guided", "rules"),
)
"""Strategies, and the engine that redacts for them."""


def played(strategy: str, engine: str, pairs: Sequence[tuple[str, str]], guess: Guess) -> list[Outcome]:
    """Returns what an attacker makes of one episode of each task, with simulated models."""
    env = DecisionEnv(edge=None if strategy.startswith("cloud_only") else "sim:qwen3.5-9b", cloud_settings={"redactor": engine})
    policy = load_strategy(strategy)
    keys = [EpisodeKey(task=task, language=language, split="test", seed=0, trial=0) for task, language in pairs]
    return [outcome for key in keys for outcome in judge(play(env, policy, key), guess, linkage=True)]


def cells(found: Figure) -> str:
    """Returns the cells of a figure: units, chance, guessed with its interval, advantage, in percent."""
    if found.accuracy is None or found.chance is None or found.advantage is None:
        return "0 | - | - | -"
    interval = f" ({100 * found.low:.1f} to {100 * found.high:.1f})" if found.low is not None and found.high is not None else ""
    return f"{found.units} | {100 * found.chance:.1f} | {100 * found.accuracy:.1f}{interval} | {100 * found.advantage:.1f}"


def strategies(pairs: Sequence[tuple[str, str]], guess: Guess, chosen: Sequence[tuple[str, str]]) -> None:
    """Prints the tables of strategies, and of kinds over all of them."""
    found = {f"{name}, {engine}" if "redacted" in name else name: played(name, engine, pairs, guess) for name, engine in chosen}
    value = {name: [one for one in outcomes if one.form == "value"] for name, outcomes in found.items()}
    linkage = {name: [one for one in outcomes if one.form == "linkage"] for name, outcomes in found.items()}
    print(f"{len(pairs)} tasks, one episode each; chance {100 / CHOICES:.1f} with {CHOICES} options\n")
    print("| strategy | units | literal exposure | chance | guessed (95%) | advantage |")
    print("| --- |" + " ---: |" * 5)
    for name, outcomes in value.items():
        units, rest = cells(figure(outcomes)).split(" | ", 1)
        print(f"| {name} | {units} | {100 * mean(one.level for one in outcomes):.1f} | {rest} |")
    for title, group in (
        ("literally private, something sent", {n: [o for o in os if o.level == 0 and o.called] for n, os in value.items()}),
        ("whose is it?", {n: [o for o in os if o.called] for n, os in linkage.items()}),
        ("whose is it?, literally private", {n: [o for o in os if o.called and o.level == 0] for n, os in linkage.items()}),
    ):
        print(f"\n| {title} | units | chance | guessed (95%) | advantage |")
        print("| --- |" + " ---: |" * 4)
        for name, outcomes in group.items():
            print(f"| {name} | {cells(figure(outcomes))} |")
    private = [one for outcomes in value.values() for one in outcomes if one.level == 0 and one.called]
    print("\n| literally private, something sent, all strategies | units | chance | guessed (95%) | advantage |")
    print("| --- |" + " ---: |" * 4)
    for kind in KINDS:
        print(f"| {kind} | {cells(figure(one for one in private if one.kind == kind))} |")


def constructed(seeds: int, guess: Guess) -> None:
    """Prints the tables of constructed texts: hints, and texts that say nothing."""
    for title, make in (("hint", leaks), ("harmless text", harmless)):
        found: dict[str, list[Outcome]] = defaultdict(list)
        for seed in range(seeds):
            for language in LANGUAGES:
                for case in make(seed, language):
                    for label in _labels(case):
                        found[label].append(_outcome(case, seed, guess))
        print(f"\n| {title} | texts | chance | guessed (95%) | advantage |")
        print("| --- |" + " ---: |" * 4)
        for label in ("all", *LANGUAGES, *(label for label in found if label not in ("all", *LANGUAGES))):
            print(f"| {label} | {cells(figure(found[label]))} |")


def _labels(case: Case) -> Iterator[str]:
    kind = case.question.kind
    yield from ("all", case.language)
    yield (
        f"{'amount, price, salary' if kind in MONEY_KINDS else kind}: {case.hint}"
        if ":" not in case.hint and (case.hint not in ("ordinary text", "topic", "public value", "placeholder"))
        else "a hint to another's value"
        if ":" in case.hint
        else case.hint
    )


def _outcome(case: Case, seed: int, guess: Guess) -> Outcome:
    share = guess([case.question], [case.texts])[0]
    cluster = f"{case.question.kind}/{case.language}/{seed}"
    return Outcome(cluster, "value", case.question.kind, 0.0, True, case.question.chance, share)


def _number(value: str) -> float:
    return float(main_number(value) or 0)


def _alike(question: Question) -> list[float]:
    """Returns how many pairs of characters each option has in common with the others."""
    pairs = [{one[i : i + 2] for i in range(len(one) - 1)} for one in question.candidates]
    counts = Counter(pair for found in pairs for pair in found)
    return [sum(counts[pair] for pair in found) / max(1, len(found)) for found in pairs]


def _central(question: Question) -> list[float]:
    values = sorted(map(_number, question.candidates))
    return [-abs(_number(one) - values[len(values) // 2]) for one in question.candidates]


BLIND: dict[str, Callable[[Question], list[float]]] = {
    "the first": lambda question: [-float(index) for index in range(len(question.candidates))],
    "the longest": lambda question: [float(len(one)) for one in question.candidates],
    "the shortest": lambda question: [-float(len(one)) for one in question.candidates],
    "the largest number": lambda question: [_number(one) for one in question.candidates],
    "the smallest number": lambda question: [-_number(one) for one in question.candidates],
    "the middle number": _central,
    "the most like the others": _alike,
    "the least like the others": lambda question: [-score for score in _alike(question)],
}
"""Ways to pick an option without having read anything."""


def blind(pairs: Sequence[tuple[str, str]], seeds: int) -> None:
    """Prints what the options give away by themselves."""
    print("\n| picked without reading anything | units | chance | guessed (95%) | advantage |")
    print("| --- |" + " ---: |" * 4)
    asked = [
        (name, question)
        for name, language in pairs
        for seed in range(seeds)
        for question in value_questions(build_episode(name, seed, language, "test"))  # type: ignore[arg-type]  # "en" or "zh"
    ]
    for label, scores in BLIND.items():
        outcomes = [
            Outcome(name, "value", one.kind, 0.0, False, one.chance, credit(scores(one), one.truth)) for name, one in asked
        ]
        print(f"| {label} | {cells(figure(outcomes))} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=2, help="play every Nth task of ec2-128 (default: 2)")
    parser.add_argument("--seeds", type=int, default=40, help="seeds of the constructed texts (default: 40)")
    parser.add_argument("--blind-seeds", type=int, default=2, help="seeds of each task for the options alone (default: 2)")
    parser.add_argument("--model", help="let this model guess, instead of the fixed scorer")
    chosen = parser.parse_args()
    suite = load_suite("ec2-128")
    guess: Guess = Asked(load_model(chosen.model)) if chosen.model else attack
    strategies(tuple(suite.pairs())[:: chosen.every], guess, STRATEGIES)
    constructed(chosen.seeds, guess)
    blind([(name, language) for name in suite.tasks for language in tasks.get(name).languages], chosen.blind_seeds)


if __name__ == "__main__":
    main()
