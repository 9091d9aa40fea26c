"""Undoing the encodings that anyone undoes in one step: base64, hex, URL-encoding, HTML entities, JSON escapes."""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from urllib.parse import unquote

from ec2_env.cloud.folding import Piece, View, unblocked

MAX_DEPTH = 3
"""Encodings inside encodings are undone this many times."""
MAX_VIEWS = 400
"""Most decoded pieces of one text that are looked at."""

_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])(?!(?:[A-Za-z][a-z]*|[0-9]+)(?![A-Za-z0-9+/_-]))[A-Za-z0-9+/_-]{8,}")
"""A run of base64 letters that is neither a word nor a number."""
_WRAPPED = re.compile(r"(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/]{40,}\r?\n[ \t]*)+[A-Za-z0-9+/]+")
_HEX = re.compile(r"[0-9a-fA-F]{8,}")
_BYTE = r"(?:[2-9a-fA-F][0-9a-fA-F]|0[9aAdD])"
"""A byte of readable text in hex: dates and times of day have others, and are passed over."""
_HEX_APART = re.compile(rf"(?:0x|\\x)?{_BYTE}(?:[ :,-]{{1,2}}(?:0x|\\x)?{_BYTE}|(?:0x|\\x){_BYTE}){{3,}}")
_HEX_HINT = re.compile(rf"[ :,-]{_BYTE}[ :,-]{{1,2}}{_BYTE}(?![0-9a-zA-Z])")
_HEX_NOISE = re.compile(r"0x|\\x|[ :,-]")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_ESCAPE = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\x[0-9a-fA-F]{2}|\\[nrtbf\"\\/']")
_SHORT_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


def decoded_views(text: str) -> list[View]:
    """Returns every other reading of `text`. Spans lead back into `text`; the work is bounded for any text."""
    found: list[View] = []
    frontier = [View(text)]
    for _ in range(MAX_DEPTH):
        frontier = [inner for view in frontier for inner in _readings(view)][: MAX_VIEWS - len(found)]
        if not frontier:
            break
        found += frontier
    return found


def _readings(view: View) -> Iterator[View]:
    text = view.text
    if "%" in text:
        yield from _replaced(view, "percent", _PERCENT, lambda run: unquote(run, errors="replace"))
    if "&" in text:
        yield from _replaced(view, "html", _ENTITY, html.unescape)
    if "\\" in text:
        yield from _replaced(view, "escaped", _ESCAPE, _unescape)
    for match in _RUN.finditer(text):
        run = match[0]
        if not _plain_word(run):
            yield from _decoded(view, "base64", match.start(), match.end(), _from_base64(run))
    if "\n" in text:
        for match in _WRAPPED.finditer(text):
            yield from _decoded(view, "base64", match.start(), match.end(), _from_base64("".join(match[0].split())))
    for match in _HEX.finditer(text):
        yield from _decoded(view, "hex", match.start(), match.end(), _from_hex(match[0]))
    apart = "0x" in text or "\\x" in text or _HEX_HINT.search(text)
    for match in _HEX_APART.finditer(text) if apart else ():
        yield from _decoded(view, "hex", match.start(), match.end(), _from_hex(match[0]))


@lru_cache(maxsize=50_000)
def _plain_word(run: str) -> bool:
    """Says whether a run is a name, an id or a date (`search_mail`, `mail-4821`, `2026-03-05`) and no base64.

    Base64 without any capital letter is rare (2% at eight characters, 0.01% at sixteen) and is only left out where it would have
    also to hold a dash or an underscore, the rarest of its letters.
    """
    return ("-" in run or "_" in run) and not any(c.isupper() for c in run)


def _replaced(view: View, form: str, pattern: re.Pattern[str], decode: Callable[[str], str]) -> Iterator[View]:
    """Yields the whole text with every match of `pattern` decoded, if there is any."""
    parts: list[str] = []
    pieces: list[Piece] = []
    size = last = 0
    for match in pattern.finditer(view.text):
        begin, end = match.span()
        for part, piece in (
            (view.text[last:begin], Piece(size, last, begin, True)),
            (unblocked(decode(match[0])), Piece(size + begin - last, begin, end, False)),
        ):
            if part:
                parts.append(part)
                pieces.append(piece)
                size += len(part)
        last = end
    if pieces and last:
        parts.append(view.text[last:])
        pieces.append(Piece(size, last, len(view.text), True))
        yield View("".join(parts), view.form or form, view, tuple(pieces))


def _decoded(view: View, form: str, start: int, end: int, text: str | None) -> Iterator[View]:
    if text:
        yield View(unblocked(text), view.form or form, view, (Piece(0, start, end, False),))


def _unescape(run: str) -> str:
    if run[1] in "ux":
        codes = [int(code, 16) for code in re.split(r"\\[ux]", run)[1:]]
        return b"".join(code.to_bytes(2, "big") for code in codes).decode("utf-16-be", "replace")
    return _SHORT_ESCAPES.get(run[1], run[1])


@lru_cache(maxsize=20_000)
def _from_base64(run: str) -> str | None:
    """Decodes a run in either alphabet, starting at the first of four positions that gives readable text."""
    plain = run.replace("-", "+").replace("_", "/")
    for skip in range(min(4, len(plain) - 7)):
        body = plain[skip:]
        body = body[: len(body) - (len(body) % 4 == 1)]
        try:
            text = _readable(base64.b64decode(body + "=" * (-len(body) % 4)))
        except (binascii.Error, ValueError):
            continue
        if text:
            return text
    return None


def _from_hex(run: str) -> str | None:
    digits = _HEX_NOISE.sub("", run)
    return _readable(bytes.fromhex(digits[: len(digits) // 2 * 2]))


def _readable(data: bytes) -> str | None:
    """Returns `data` as text if it is UTF-8 (cut off or not) and made of printable characters."""
    for cut in range(4):
        try:
            text = data[: len(data) - cut].decode("utf-8")
        except UnicodeDecodeError as error:
            if error.start < len(data) - 3:
                return None
            continue
        return text if text and text.replace("\n", "").replace("\t", "").replace("\r", "").isprintable() else None
    return None
