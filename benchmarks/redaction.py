"""Measures the redaction engines: what they remove, what they damage, whether they restore exactly, time, and effect on the work.

python benchmarks/redaction.py
python benchmarks/redaction.py --engines rules model:openai:NAME@base_url=URL --trials 0

`strong` is measured if Presidio is installed (pip install 'ec2-env[redaction]').
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import mean

from ec2_env.actions import ToolCall
from ec2_env.bench.suites import load_suite
from ec2_env.cloud import cases
from ec2_env.cloud.audit import Audit
from ec2_env.cloud.detection import detect
from ec2_env.cloud.engine import Surroundings, check_engine, make_redactor
from ec2_env.cloud.redaction import OracleRedactor, Redactor
from ec2_env.envs import DecisionEnv
from ec2_env.errors import MissingExtra
from ec2_env.rollout import EpisodeKey
from ec2_env.rollout import play as roll
from ec2_env.sensitive import KINDS
from ec2_env.strategy import load_strategy
from ec2_env.task import Episode, build_episode, tasks
from ec2_env.testing import play

ENGINES = ("none", "rules", "strong", "oracle")
CASE_SEEDS = (301, 302, 303, 304, 305)
"""Seeds of generated leaks, in sentences that were written for the audit and say nothing about the value in them."""
LANGUAGES = ("en", "zh")
SHOWN = re.compile(r'"\[[A-Z][A-Z_]*_\d+\]"|\[[A-Z][A-Z_]*_\d+\]')
"""A placeholder, with the quotes around it: they stand for nothing if it is a JSON number's."""


@dataclass
class Tally:
    """What one engine did to the transcripts.

    Attributes:
        seen, removed: Units that the plain transcripts expose, and those of which nothing is left, by kind and language.
        harmless, damaged: Characters in no unit, and those that were replaced, by language.
        people, money: Those that were replaced as e-mail addresses or names, and as amounts.
        texts, exact: Texts, and those that were restored exactly.
        size: Bytes of all texts in UTF-8.
        seconds: Processor time of redacting them.
    """

    seen: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    removed: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    harmless: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    damaged: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    people: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    money: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    texts: int = 0
    exact: int = 0
    size: int = 0
    seconds: float = 0.0


def transcript(episode: Episode) -> list[str]:
    """Returns the texts of the task's own solution: the instruction, then each call and what it returned."""
    played = play(episode)
    calls = [json.dumps(a.arguments, ensure_ascii=False) for a in played.actions if isinstance(a, ToolCall)]
    answers = [result.text for result in played.results]
    return [episode.instruction, *(text for pair in zip(calls, answers, strict=True) for text in pair)]


def replaced(redacted: str, redactor: Redactor) -> dict[int, str]:
    """Returns the positions, in the text before redaction, of the characters that placeholders stand for, with their types."""
    found: dict[int, str] = {}
    position = last = 0
    for match in SHOWN.finditer(redacted):
        value = redactor.restore(match[0])
        position += match.start() - last
        if value != match[0]:
            kind = match[0].strip('"')[1:].rpartition("_")[0]
            quotes = int(match[0][0] == '"' == value[0])
            found.update(dict.fromkeys(range(position + quotes, position + len(value) - quotes), kind))
        position += len(value)
        last = match.end()
    return found


def measure(redactor: Redactor, episode: Episode, texts: Sequence[str], tally: Tally) -> None:
    """Redacts one transcript and adds what happened to the tally."""
    language = episode.language
    detect.cache_clear()
    started = time.process_time()
    redacted = [redactor.redact(text) for text in texts]
    tally.seconds += time.process_time() - started
    tally.size += sum(len(text.encode()) for text in texts)
    tally.texts += len(texts)
    tally.exact += sum(redactor.restore(new) == text for text, new in zip(texts, redacted, strict=True))
    before, after = Audit(episode.units), Audit(episode.units)
    before.scan(texts)
    after.scan(redacted)
    for unit in episode.units:
        if unit.id in before.levels:
            tally.seen[unit.kind, language] += 1
            tally.removed[unit.kind, language] += unit.id not in after.levels
    oracle = OracleRedactor(episode.units)
    for text, new in zip(texts, redacted, strict=True):
        sensitive = replaced(oracle.redact(text), oracle)
        tally.harmless[language] += len(text) - len(sensitive)
        damaged = [kind for place, kind in replaced(new, redactor).items() if place not in sensitive]
        tally.damaged[language] += len(damaged)
        tally.people[language] += sum(kind in ("EMAIL", "NAME") for kind in damaged)
        tally.money[language] += sum(kind in ("AMOUNT", "PRICE", "SALARY") for kind in damaged)


def generated(engine: str) -> str:
    """Returns the shares of generated leaks, in English and Chinese, that an engine removes without any other text to go by."""
    kept, seen = dict.fromkeys(LANGUAGES, 0), dict.fromkeys(LANGUAGES, 0)
    for case in (case for seed in CASE_SEEDS for case in cases.leaks(seed) if case.form == "verbatim"):
        unit = next(unit for unit in case.units if unit.id == case.target)
        redactor = make_redactor(engine, Surroundings(units=case.units))
        seen[case.language] += 1
        kept[case.language] += bool(Audit((unit,)).find(redactor.redact(case.calls[0][0])))
    return " / ".join(share(seen[language] - kept[language], seen[language]) for language in LANGUAGES)


def available(names: Sequence[str]) -> list[str]:
    """Returns the engines that can be used here, and says why the others cannot."""
    usable = []
    for name in names:
        try:
            check_engine(name)
            usable.append(name)
        except MissingExtra as error:
            print(f"{name} is left out: {error}")
    return usable


def tallies(engines: Sequence[str], pairs: Iterable[tuple[str, str]], seeds: int) -> dict[str, Tally]:
    """Measures every engine, as an env makes it, on the transcripts of tasks and languages."""
    env = {engine: DecisionEnv(edge=None, cloud_settings={"redactor": engine}) for engine in engines}
    found = {engine: Tally() for engine in engines}
    for task, language in pairs:
        for seed in range(seeds):
            episode = build_episode(task, seed, language, "test")  # type: ignore[arg-type]  # "en" or "zh"
            texts = transcript(episode)
            for engine in engines:
                env[engine].begin(task, language, "test", seed)
                session = env[engine].session
                assert session is not None
                assert session.gateway is not None
                measure(session.gateway.redactor, session.episode, texts, found[engine])
    return found


def effect(engine: str, strategy: str, pairs: Iterable[tuple[str, str]], trials: int) -> tuple[float, float]:
    """Returns mean completion and privacy, 0 to 1, of a redacted strategy with an engine."""
    env = DecisionEnv(cloud_settings={"redactor": engine})
    policy = load_strategy(strategy)
    keys = [
        EpisodeKey(task=task, language=language, split="test", seed=0, trial=trial)
        for task, language in pairs
        for trial in range(trials)
    ]
    results = [roll(env, policy, key).result for key in keys]
    return mean(result["completion"] for result in results), mean(result["privacy"] for result in results)


def share(part: float, whole: float, digits: int = 1) -> str:
    return f"{100 * part / whole:.{digits}f}" if whole else "-"


def rows(found: dict[str, Tally], effects: dict[str, list[str]], strategies: Sequence[str]) -> list[list[str]]:
    """Returns the rows of the table, each with a label and one cell an engine."""
    table: list[list[str]] = []
    for language in LANGUAGES:
        cells = []
        for tally in found.values():
            parts = [sum(n for (_, spoken), n in count.items() if spoken == language) for count in (tally.removed, tally.seen)]
            cells.append(share(*parts))
        table.append([f"units removed, % ({language}, {parts[1]} units)", *cells])
    for kind in KINDS:
        cells = []
        for tally in found.values():
            cells.append(" / ".join(share(tally.removed[kind, spoken], tally.seen[kind, spoken]) for spoken in LANGUAGES))
        counts = " / ".join(str(tally.seen[kind, spoken]) for spoken in LANGUAGES)
        table.append([f"- {kind}, % (en / zh; {counts} units)", *cells])
    for language in LANGUAGES:
        cells = [share(tally.damaged[language], tally.harmless[language], 2) for tally in found.values()]
        table.append([f"harmless characters replaced, % ({language})", *cells])
        table.append([f"- amounts, % ({language})", *(share(t.money[language], t.harmless[language], 2) for t in found.values())])
        cells = [share(t.damaged[language] - t.people[language], t.harmless[language], 2) for t in found.values()]
        table.append([f"- other than e-mail addresses and names, % ({language})", *cells])
    table.append(
        [f"generated sentences, seeds {CASE_SEEDS[0]}-{CASE_SEEDS[-1]}: units removed, % (en / zh)", *map(generated, found)]
    )
    table.append(["texts restored exactly, %", *(share(tally.exact, tally.texts) for tally in found.values())])
    table.append(["time, µs per kB", *(f"{1e9 * tally.seconds / tally.size:.0f}" for tally in found.values())])
    for index, strategy in enumerate(strategies):
        table.append([f"{strategy}: completion / privacy, %", *(cells[index] for cells in effects.values())])
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="instances of each task and language whose transcripts are redacted")
    parser.add_argument(
        "--trials", type=int, default=3, help="episodes of each task in its first language, for the effect; 0 for none"
    )
    parser.add_argument("--engines", nargs="+", default=ENGINES, metavar="ENGINE", help="engines to measure")
    chosen = parser.parse_args()
    suite = load_suite("ec2-128")
    spoken = [(name, language) for name in suite.tasks for language in tasks.get(name).languages]
    engines = available(chosen.engines)
    found = tallies(engines, spoken, chosen.seeds)
    strategies = ("cloud_only:redacted", "adaptive_assistance:redacted") if chosen.trials else ()
    effects: dict[str, list[str]] = {}
    for engine in engines:
        pairs = [effect(engine, strategy, suite.pairs(), chosen.trials) for strategy in strategies]
        effects[engine] = [f"{100 * completion:.1f} / {100 * privacy:.1f}" for completion, privacy in pairs]
    print(f"| {len(spoken) * chosen.seeds} transcripts of {len(suite.tasks)} tasks | {' | '.join(engines)} |")
    print("| --- |" + " ---: |" * len(engines))
    for row in rows(found, effects, strategies):
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
