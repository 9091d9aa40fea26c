"""Measures the audit on generated leaks and near-misses, beside plain substring search and Presidio, and how long it takes.

python benchmarks/audit.py
python benchmarks/audit.py --presidio --seeds 101
python benchmarks/audit.py --judge openai:MODEL@base_url=URL --judge-cases 200
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import msgspec

from ec2_env.cloud import cases
from ec2_env.cloud.audit import Audit
from ec2_env.cloud.cases import Case
from ec2_env.cloud.cases.judge import judged
from ec2_env.cloud.cases.texts import ordinary
from ec2_env.cloud.cases.values import world
from ec2_env.cloud.matching import Matcher
from ec2_env.models.base import Model
from ec2_env.models.loading import load_model
from ec2_env.sensitive import SensitiveUnit
from ec2_env.workspace.dice import Dice

HELD_OUT = (501, 502, 503, 504, 505)
"""Seeds that nothing was written or tuned on; the tests use others."""
Found = Callable[[Case], float]
"""Returns the level at which a method sees the case: that of its target for leaks, the highest of any unit for near-misses."""


def by_audit(case: Case) -> float:
    audit = Audit(case.units)
    for texts in case.calls:
        audit.scan(texts)
    return audit.levels.get(case.target, 0.0) if case.level else max(audit.levels.values(), default=0.0)


def by_substring(case: Case) -> float:
    """Looks for the values as they are, case aside."""
    sent = "\n".join(text for texts in case.calls for text in texts).casefold()
    looked_for = (case.unit,) if case.level else case.units
    return float(any(unit.value.casefold() in sent for unit in looked_for))


def presidio() -> Found:
    """Returns Presidio without a language model: its patterns alone. It knows no values, so anything that it reports counts."""
    import spacy
    import tldextract
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    tldextract.extract = tldextract.TLDExtract(suffix_list_urls=())  # the list that comes with it; nothing is fetched
    engine = SpacyNlpEngine()
    engine.nlp = {"en": spacy.blank("en")}
    analyzer = AnalyzerEngine(nlp_engine=engine, supported_languages=["en"])

    def found(case: Case) -> float:
        texts = (text for texts in case.calls for text in texts)
        return float(any(result.score >= 0.4 for text in texts for result in analyzer.analyze(text, language="en")))

    return found


def family(case: Case) -> str:
    """Returns the row that a case is counted in."""
    head, _, tail = case.form.partition(":")
    if case.level in (0.7, 0.3):
        return f"{case.level}, {case.unit.kind}"
    return head if case.level or head != "other value" else f"other value, {tail.strip().partition(':')[0]}"


def table(title: str, measured: Sequence[Case], methods: dict[str, Found]) -> None:
    """Prints the share of cases, in percent, seen at their level at least (near-misses: seen at all), by family."""
    seen = {name: [found(case) >= (case.level or 0.3) for case in measured] for name, found in methods.items()}
    rows: dict[str, list[int]] = defaultdict(list)
    for index, case in enumerate(measured):
        rows[family(case)].append(index)
    print(f"| {title} | cases | {' | '.join(methods)} |")
    print(f"| --- | ---: |{' ---: |' * len(methods)}")
    for row, members in (("**all**", range(len(measured))), *sorted(rows.items())):
        cells = [f"{100 * sum(hits[index] for index in members) / len(members):.2f}" for hits in seen.values()]
        print(f"| {row} | {len(members)} | {' | '.join(cells)} |", flush=True)
    print()


def sample(measured: Sequence[Case], size: int) -> list[Case]:
    """Returns `size` cases, a quarter of them of each level, at equal distances."""
    chosen: list[Case] = []
    for level in (1.0, 0.7, 0.3, 0.0):
        members = [case for case in measured if case.level == level]
        count = min(len(members), -(-size // 4))
        chosen += [members[len(members) * number // count] for number in range(count)]
    return chosen[:size]


def compared(measured: Sequence[Case], model: Model) -> Iterator[str]:
    """Yields the rows of the comparison with a judge: what it answers to each level, and how often it gives no level."""
    name = model.card.name
    yield f"| expected level | cases | {name}: no level, % | {name}: right if it gives one, % | {name}: mean | audit: right, % |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for level in (1.0, 0.7, 0.3, 0.0):
        members = [case for case in measured if case.level == level]
        answers = [judged(model, case.unit, case.calls) for case in members]
        given = [answer for answer in answers if answer is not None]
        right = f"{100 * sum(answer == level for answer in given) / len(given):.1f}" if given else "-"
        mean = f"{statistics.mean(given):.2f}" if given else "-"
        failed = 100 * (len(answers) - len(given)) / max(1, len(answers))
        audit = 100 * sum(by_audit(case) == level for case in members) / max(1, len(members))
        yield f"| {level} | {len(members)} | {failed:.1f} | {right} | {mean} | {audit:.1f} |"


def missed(measured: Sequence[Case]) -> Iterator[str]:
    """Yields what the audit gets wrong: the form, the value, and what was sent."""
    for case in measured:
        level = by_audit(case)
        if level != case.level:
            yield f"{case.level} seen as {level}: {case.form}: {case.unit.value!r} in {case.calls!r}"


def transcript(size: int, rng: Dice, units: Sequence[SensitiveUnit]) -> list[str]:
    """Returns messages of about 2,000 characters each, `size` characters in all, one value in every other message."""
    texts: list[str] = []
    while sum(map(len, texts)) < size:
        text = ""
        while len(text) < 2_000:
            text += ordinary(rng, "en") + " "
        texts.append(text + (rng.choice(units).value if len(texts) % 2 else ""))
    return texts


def times(repeat: int = 30) -> None:
    """Prints how long it takes to scan 100,000 characters against 200 units, and one message more (CPU time, median)."""
    units = tuple(
        msgspec.structs.replace(unit, id=f"{unit.id}-{index}")
        for index in range(12)
        for unit in world(0, index, "zh" if index % 3 == 2 else "en")
    )[:200]
    rng = Dice("times")
    full, further, built = [], [], []
    for number in range(repeat):
        texts, more = transcript(100_000, rng, units), transcript(2_000, rng, units)
        audit = Audit(units)
        audit.find("Once, so that everything is built.")
        started = time.process_time()
        audit.scan(texts)
        middle = time.process_time()
        audit.scan([*texts, *more])
        further.append(time.process_time() - middle)
        full.append(middle - started)
        if number < 5:
            started = time.process_time()
            Matcher(units).findings("new")
            built.append(time.process_time() - started)
    for what, seconds in (
        ("a transcript of 100,000 characters against 200 units, all new", full),
        ("the same transcript and one message more of 2,000 characters", further),
        ("building the matcher of 200 units, once", built),
    ):
        print(f"- {what}: {1e3 * statistics.median(seconds):.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="*", default=HELD_OUT)
    parser.add_argument("--presidio", action="store_true", help="measure Presidio as well (pip install presidio-analyzer)")
    parser.add_argument("--missed", action="store_true", help="print every case that the audit gets wrong")
    parser.add_argument("--judge", metavar="MODEL", help="ask a language model as well: a specification, as for --cloud")
    parser.add_argument("--judge-cases", type=int, default=100, help="how many cases the judge gets")
    chosen = parser.parse_args()
    methods: dict[str, Found] = {"audit": by_audit, "substring": by_substring}
    if chosen.presidio:
        methods["Presidio"] = presidio()
    leaks = [case for seed in chosen.seeds for case in cases.leaks(seed)]
    near_misses = [case for seed in chosen.seeds for case in cases.near_misses(seed)]
    if chosen.judge:
        model = load_model(chosen.judge)
        print("\n".join(compared(sample([*leaks, *near_misses], chosen.judge_cases), model)))
        return
    for level in (1.0, 0.7, 0.3):
        table(f"recall at level {level}, %", [case for case in leaks if case.level == level], methods)
    table("near-misses taken for a leak, %", near_misses, methods)
    unlisted = [case for seed in chosen.seeds for case in cases.unlisted(seed)]
    table("forms measured before anything was made for them, recall at level 1.0, %", unlisted, methods)
    others = [case for seed in chosen.seeds for case in cases.unlisted(seed, other=True)]
    table("other values in these forms taken for a leak, %", others, methods)
    over = sum(by_audit(case) > case.level for case in leaks)
    print(f"- leaks that the audit puts above their level: {over} of {len(leaks)}")
    times()
    if chosen.missed:
        print("\n".join(missed([*leaks, *near_misses])))


if __name__ == "__main__":
    main()
