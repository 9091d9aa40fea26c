"""Undoing the encodings that anyone undoes in one step: base64, base32, hex, URL-encoding, HTML entities, escapes.

Most texts hold none of them. What is looked for first is cheap: each character becomes the letter of its class, and one pass over
the classes finds where an encoded run can stand at all.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from urllib.parse import unquote

from ec2_env.cloud.folding import Piece, View, unblocked

MAX_DEPTH = 3
"""Encodings inside encodings are undone this many times."""
MAX_VIEWS = 400
"""Most decoded pieces of one text that are looked at."""


def _classes(other: str, **members: str) -> bytes:
    """Returns a table for `bytes.translate` that gives each of `members` the letter it is named with, and all else `other`."""
    table = bytearray(other.encode() * 256)
    for name, chars in members.items():
        for char in chars:
            table[ord(char)] = ord(name)
    return bytes(table)


_LOWER, _UPPER, _DIGITS = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
_LETTER_CLASSES = _classes(" ", a=_LOWER, A=_UPPER, d=_DIGITS, s="/+", j="-_")
_RUN = re.compile(rb" (?=([^ ]{8,}))(?!A?a* |d+ |[ads]*j[adsj]* |A{0,5}a*j?d{3,}(?:jd+)* )")
"""A run of base64 letters that is no word, number, id or date (`search_mail`, `mail-4821`, `INV4821`, `2026-03-05`).

Base64 without any capital letter is rare (2% at eight characters, 0.01% at sixteen) and is only left out where it would have
also to hold a dash or an underscore, the rarest of its letters, or to end in three digits after letters alone.
"""
_LINE_CLASSES = _classes(" ", x=_LOWER + _UPPER + _DIGITS + "/+")
_WRAPPED = re.compile(r"(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/]{40,}\r?\n[ \t]*)+[A-Za-z0-9+/]+")
_LOWER_HEX = re.compile(r"[0-9a-f]+")
_BASE32 = re.compile(r"[A-Z2-7]{8,}")
_ONLY_HEX = _classes(" ", h="0123456789abcdefABCDEF")
_HEX = re.compile(rb"hhhhhhhh+")
_CODE_CLASSES = _classes(".", n=_LOWER + _UPPER, h="2345678bcefBCEF", k="9adAD", o="0", i="1", s=" :,-;")
_CODE = rb"(?:[hk][hkoi]|ok|i[hkoi][hkoi]|[hki][hkoi]{4})"
_CODES_HINT = re.compile(rb"s(?=[hkoi][hkoi])%bs{1,2}%bs{1,2}%b(?:[hkoi]|s{1,2}[hkoi])*" % (_CODE, _CODE, _CODE))
"""Three codes of readable characters in a row, in hex or decimal, and what follows; dates and times of day have others."""
_BYTE = r"(?:[2-9a-fA-F][0-9a-fA-F]|0[9aAdD])"
"""A byte of readable text in hex."""
_HEX_APART = re.compile(rf"(?:0x|\\x)?{_BYTE}(?:[ :,-]{{1,2}}(?:0x|\\x)?{_BYTE}|(?:0x|\\x){_BYTE}){{3,}}")
_HEX_NOISE = re.compile(r"0x|\\x|[ :,-]")
_CODES = re.compile(r"(?<![\d.])\d{2,5}(?:[ ,;]{1,2}\d{2,5}){3,}(?!\d|\.\d)")
_BITS = re.compile(r"(?<!\d)[01]{8}(?:[ ,]{0,2}[01]{8}){2,}(?!\d)")
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}(?:%[0-9A-Fa-f]{2})*")
_QUOTED = re.compile(r"=[0-9A-F]{2}(?:=[0-9A-F]{2})+|=(?:20|2[CDE]|3[AD]|40)(?![0-9])|=\r?\n")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_ESCAPE = re.compile(
    r"\\(?:u[0-9a-fA-F]{4}(?:\\u[0-9a-fA-F]{4})*|x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|u\{[0-9a-fA-F]{1,6}\}"
    r"|[0-3][0-7]{2}(?:\\[0-3][0-7]{2})*|[nrtbf\"\\/'])"
)
_SHORT_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_TAG = re.compile(r"<(?:/?(?:b|i|u|s|em|strong|span|mark|font|small|code|wbr)\b[^<>]{0,80})>")
_TAG_IN_WORD = re.compile(r"\w<(?:/?(?:b|i|u|s|em|strong|span|mark|font|small|code|wbr)\b[^<>]{0,80})>")
_JOINT = re.compile(r"\" ?\+ ?\"|' ?\+ ?'")


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
    if "=" in text:
        yield from _replaced(view, "quoted-printable", _QUOTED, _unquote)
    if "&" in text:
        yield from _replaced(view, "html", _ENTITY, html.unescape)
    if "\\" in text:
        yield from _replaced(view, "escaped", _ESCAPE, _unescape)
    if "<" in text and _TAG_IN_WORD.search(text):
        yield from _replaced(view, "markup", _TAG, lambda _: "")
    if "+" in text and ('+ "' in text or '+"' in text or "+ '" in text or "+'" in text):
        yield from _replaced(view, "joined", _JOINT, lambda _: "")
    if len(text) >= 8:
        yield from _runs(view, text.encode("ascii", "replace"))


def _runs(view: View, chars: bytes) -> Iterator[View]:
    """Yields what the runs of letters and digits in a text are when decoded. `chars` is the text, one byte a character."""
    text = view.text
    for match in _RUN.finditer(b" %b " % chars.translate(_LETTER_CLASSES)):
        start, end = match.start(1) - 1, match.end(1) - 1
        run = text[start:end]
        if not _LOWER_HEX.fullmatch(run):  # one in ten thousand base64 texts of eight characters
            yield from _decoded(view, "base64", start, end, _from_base64(run))
        if _BASE32.fullmatch(run):
            yield from _decoded(view, "base32", start, end, _from_base32(run))
    if "\n" in text and b"x" * 40 in chars.translate(_LINE_CLASSES):
        for lines in _WRAPPED.finditer(text):
            yield from _decoded(view, "base64", lines.start(), lines.end(), _from_base64("".join(lines[0].split())))
    bits = False
    only_hex = chars.translate(_ONLY_HEX)
    for match in _HEX.finditer(only_hex) if b"hhhhhhhh" in only_hex else ():
        run = text[match.start() : match.end()]
        bits = bits or not run.strip("01")
        yield from _decoded(view, "hex", match.start(), match.end(), _from_hex(run))
    if bits:
        yield from _each(view, "binary", _BITS, _from_bits)
    prefixed = "0x" in text or ("\\" in text and "\\x" in text)
    if prefixed:
        yield from _each(view, "hex", _HEX_APART, _from_hex)
    for hint in _CODES_HINT.finditer(chars.translate(_CODE_CLASSES)):
        around = max(0, hint.start() - 4), hint.end() + 4
        if not prefixed:
            yield from _each(view, "hex", _HEX_APART, _from_hex, *around)
        yield from _each(view, "codes", _CODES, _from_codes, *around)


def _each(
    view: View, form: str, pattern: re.Pattern[str], decode: Callable[[str], str | None], start: int = 0, end: int = sys.maxsize
) -> Iterator[View]:
    """Yields every match of `pattern` between `start` and `end`, decoded."""
    for match in pattern.finditer(view.text, start, end):
        yield from _decoded(view, form, match.start(), match.end(), decode(match[0]))


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
    kind = run[1]
    if kind == "u" and run[2] != "{":
        codes = [int(code, 16) for code in run.split("\\u")[1:]]
        return b"".join(code.to_bytes(2, "big") for code in codes).decode("utf-16-be", "replace")
    if kind in "uUx":
        code = int(run[2:].strip("{}"), 16)
        return chr(code) if code < 0x110000 else "\ufffd"
    if kind.isdigit():
        return bytes(int(code, 8) for code in run.split("\\")[1:]).decode("utf-8", "replace")
    return _SHORT_ESCAPES.get(kind, kind)


def _unquote(run: str) -> str:
    return "" if run[1] in "\r\n" else bytes.fromhex(run.replace("=", "")).decode("utf-8", "replace")


@lru_cache(maxsize=20_000)
def _from_base64(run: str) -> str | None:
    """Decodes a run in either alphabet, starting at the first of four positions that gives readable text."""
    plain = run.translate(_PLAIN_ALPHABET)
    for skip in range(min(4, len(plain) - 7)):
        size = len(plain) - skip
        data = binascii.a2b_base64(plain[skip : skip + size - (size % 4 == 1)] + "==")
        text = _readable(data) or (_readable_wide(data) if not skip or 0 in data else None)
        if text:
            return text
    return None


@lru_cache(maxsize=20_000)
def _from_base32(run: str) -> str | None:
    try:
        return _readable(base64.b32decode(run + "=" * (-len(run) % 8)))
    except (binascii.Error, ValueError):
        return None


def _from_hex(run: str) -> str | None:
    digits = _HEX_NOISE.sub("", run)
    return _readable(bytes.fromhex(digits[: len(digits) // 2 * 2]))


def _from_bits(run: str) -> str | None:
    digits = "".join(char for char in run if char in "01")
    return _readable(int(digits, 2).to_bytes(len(digits) // 8, "big"))


def _from_codes(run: str) -> str | None:
    codes = [int(code) for code in re.findall(r"\d+", run)]
    text = _readable(bytes(codes)) if max(codes) < 256 else "".join(map(chr, codes))
    return text if text and text.isprintable() else None


_PLAIN_ALPHABET = str.maketrans("-_", "+/")
_WIDE_HIGH = bytes((0x00, 0x30, *range(0x4E, 0xA0), 0xFF))
_AGAIN = rb"[\x80-\xbf]"
_READABLE = re.compile(rb"(?:[\t\n\r\x20-\x7e]+|[\xc2-\xdf]%b|[\xe0-\xef]%b%b|[\xf0-\xf4]%b%b%b)*" % ((_AGAIN,) * 6))
"""Characters in UTF-8 other than control characters."""


def _readable(data: bytes) -> str | None:
    """Returns `data` as text if it is UTF-8 (cut off or not) and made of printable characters."""
    match = _READABLE.match(data)
    if match is None or match.end() < len(data) - 3:  # the last three bytes may be the start of a character that is cut off
        return None
    for cut in range(4):
        try:
            text = data[: len(data) - cut].decode("utf-8")
        except UnicodeDecodeError as error:
            if error.start < len(data) - 3:
                return None
            continue
        return text if text and text.replace("\n", "").replace("\t", "").replace("\r", "").isprintable() else None
    return None


def _readable_wide(data: bytes) -> str | None:
    """Returns `data` as text if it is UTF-16 and made of Latin or Chinese characters."""
    if len(data) < 6:
        return None
    even = data[: len(data) // 2 * 2]
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        if not even[first::2].translate(None, _WIDE_HIGH):
            text = even.decode(encoding, "replace")
            return text if text.isprintable() else None
    return None
