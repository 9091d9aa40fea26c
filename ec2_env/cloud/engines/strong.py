"""`strong`: what Presidio finds, and what the rules find.

Presidio is asked in English with its own patterns, and for names, places and organizations if a spaCy model for English is
installed (`en_core_web_lg`, `_md` or `_sm`). Nothing is downloaded. Texts without Latin letters are left to the rules.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

from ec2_env.cloud.engine import Engine
from ec2_env.cloud.finding import Found
from ec2_env.cloud.redaction import RuleRedactor
from ec2_env.errors import ConfigurationError
from ec2_env.registry import require

MIN_SCORE = 0.4
"""Presidio's confidence, 0 to 1, from which a value is hidden: its patterns without context stay below."""
MAX_CHARS = 100_000
SPACY_MODELS = ("en_core_web_lg", "en_core_web_md", "en_core_web_sm")
KINDS: dict[str, str] = {
    "PERSON": "name",
    "EMAIL_ADDRESS": "email",
    "PHONE_NUMBER": "phone",
    "LOCATION": "home_address",
    "ORGANIZATION": "firm",
    "CREDIT_CARD": "card_number",
    "IBAN_CODE": "iban",
    "US_BANK_NUMBER": "iban",
    "US_SSN": "national_id",
    "US_ITIN": "national_id",
    "US_PASSPORT": "national_id",
    "US_DRIVER_LICENSE": "national_id",
    "UK_NHS": "national_id",
    "CRYPTO": "other",
    "IP_ADDRESS": "other",
    "MEDICAL_LICENSE": "national_id",
}
"""What of Presidio's types is hidden, and as what. Dates and web addresses are not: hardly any work can be done without them."""
_LATIN = re.compile(r"[A-Za-z0-9]{2}")


@cache
def _analyzer() -> Any:
    presidio = require("presidio_analyzer", extra="redaction")
    nlp_engine = require("presidio_analyzer.nlp_engine", extra="redaction")
    spacy = require("spacy", extra="redaction")
    tldextract: Any = require("tldextract", extra="redaction")
    tldextract.extract = tldextract.TLDExtract(suffix_list_urls=())  # the list that comes with it; nothing is fetched
    installed = [name for name in SPACY_MODELS if spacy.util.is_package(name)]
    nlp = nlp_engine.SpacyNlpEngine()
    nlp.nlp = {"en": spacy.load(installed[0]) if installed else spacy.blank("en")}
    return presidio.AnalyzerEngine(nlp_engine=nlp, supported_languages=["en"])


@lru_cache(maxsize=1_024)
def by_presidio(text: str) -> tuple[Found, ...]:
    """Returns what Presidio takes for sensitive; ranges may overlap.

    Raises:
        ConfigurationError: if the text is longer than Presidio can be asked for.
    """
    if not _LATIN.search(text):
        return ()
    if len(text) > MAX_CHARS:
        raise ConfigurationError(f"a text of {len(text)} characters is too long for Presidio; at most {MAX_CHARS} are redacted")
    results = _analyzer().analyze(text, language="en", entities=list(KINDS), score_threshold=MIN_SCORE)
    return tuple(sorted(Found(one.start, one.end, KINDS[one.entity_type]) for one in results))


def _check(rest: str) -> None:
    if rest:
        raise ConfigurationError(f"redactor 'strong' takes nothing after its name, got {rest!r}")
    require("presidio_analyzer", extra="redaction")


ENGINE = Engine(make=lambda surroundings, rest: RuleRedactor(surroundings.directory, by_presidio), check=_check)
