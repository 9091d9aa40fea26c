"""Folding: the form of a text in which case, width, accents, separators and look-alike letters make no difference.

A folded text is made of lower-case letters and digits only, so a value is found in it by plain substring search however it was
spaced or punctuated. Offsets lead back to the characters of the text it came from.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import cached_property
from itertools import compress
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Codes: TypeAlias = npt.NDArray[np.uint32]

BLOCK = "\x1e"
"""Stands where a placeholder was. It survives folding, so that no match reaches across a placeholder."""
_NO_BLOCK = "\x1f"
"""Stands for a `BLOCK` that was in a text from the start. Folding drops it like any other control character."""

PLACEHOLDER = re.compile(r"\[[A-Z][A-Z_]*_\d+\]")
"""What redaction leaves in place of a value, such as [PHONE_001]. It never counts as exposure."""

_LOOKALIKES = dict(
    zip(
        "аеорсухіјѕһԁԛԝвкмнтαορνικτυχβεημγѵзɑɡıᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢ",
        "aeopcyxijshdqwbkmhtaopviktuxbenmyv3agiabcdefghijklmnopqrstuvwyz",
        strict=True,
    )
)
_GREEK_CAPITALS = {"Η": "h", "Ν": "n", "Υ": "y", "Ζ": "z"}
"""Capitals that look like another letter than their small forms do."""
_DROPPED = bytes(code for code in range(128) if not chr(code).isalnum() and chr(code) != BLOCK)
_KEPT = bytes(code < 128 and (chr(code).isalnum() or chr(code) == BLOCK) for code in range(256))


class _Folds(dict[str, str]):
    """Maps a character to its folded form, which may be empty or longer than one character."""

    def __missing__(self, char: str) -> str:
        folded = "".join(map(_fold_part, unicodedata.normalize("NFKD", _GREEK_CAPITALS.get(char, char).casefold()).casefold()))
        if len(self) < 100_000:
            self[char] = folded
        return folded


def _fold_part(char: str) -> str:
    if char == BLOCK:
        return char
    if unicodedata.category(char) == "Mn" or not char.isalnum():
        return ""
    digit = unicodedata.decimal(char, None)
    return str(digit) if digit is not None else _LOOKALIKES.get(char, char)


_FOLDS = _Folds()


_TABLE_SIZE = 0x20000
_UNKNOWN, _SEVERAL = 0xFFFFFFFF, 0xFFFFFFFE
_TABLE: Codes = np.full(_TABLE_SIZE, _UNKNOWN, dtype=np.uint32)
"""Folded code of each code point, 0 if it is dropped; filled in as characters turn up."""
LONG = 100
"""Texts of this many characters are folded with the table, which takes a while to start."""


def _codes(text: str) -> Codes | None:
    """Returns the folded code of each character, 0 where it is dropped, or None if a character folds to several."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    try:
        folded = _TABLE[codes]
    except IndexError:
        return None
    highest = folded.max()
    if highest == _UNKNOWN:
        for code in np.unique(codes[folded == _UNKNOWN]).tolist():
            chars = _FOLDS[chr(code)]
            _TABLE[code] = 0 if not chars else ord(chars) if len(chars) == 1 else _SEVERAL
        folded = _TABLE[codes]
        highest = folded.max()
    return folded if highest < _SEVERAL else None


def fold(text: str) -> str:
    """Returns `text` folded. Never raises, and folding twice changes nothing."""
    if text.isascii():
        return text.lower().encode().translate(None, _DROPPED).decode()
    codes = _codes(text) if len(text) >= LONG else None
    return "".join(map(_FOLDS.__getitem__, text)) if codes is None else _text_of(codes)


def _text_of(codes: Codes) -> str:
    text: str = codes[codes != 0].tobytes().decode("utf-32-le")
    return text


def fold_offsets(text: str) -> list[int]:
    """Returns, for each character of `fold(text)`, the index of the character of `text` that it comes from."""
    if text.isascii():
        return list(compress(range(len(text)), text.encode().translate(_KEPT)))
    return [index for index, folded in enumerate(map(_FOLDS.__getitem__, text)) for _ in folded]


def unblocked(text: str) -> str:
    """Returns `text`, equally long, without the character that this module reserves for itself."""
    return text.replace(BLOCK, _NO_BLOCK)


def without_placeholders(text: str) -> str:
    """Returns `text`, equally long, with placeholders overwritten."""
    if "[" not in text:
        return text
    return PLACEHOLDER.sub(lambda match: BLOCK * len(match[0]), text)


class Piece(NamedTuple):
    """Where a stretch of a decoded text comes from: `begin` to `end` in its source, character by character if `linear`."""

    start: int
    begin: int
    end: int
    linear: bool


class View:
    """One reading of a text: as it stands, or decoded.

    Args:
        text: The text as read, in which placeholders do not count.
        form: How it was decoded ("base64"), or "" for the text as it stands.
        source: For decoded texts, the reading that was decoded.
        pieces: For decoded texts, the stretches it is made of, in order.
    """

    def __init__(self, text: str, form: str = "", source: View | None = None, pieces: tuple[Piece, ...] = ()) -> None:
        self.text = without_placeholders(text)
        self.form = form
        self._source = source
        self._pieces = pieces

    @cached_property
    def _folded_codes(self) -> Codes | None:
        return _codes(self.text) if len(self.text) >= LONG and not self.text.isascii() else None

    @cached_property
    def folded(self) -> str:
        return fold(self.text) if self._folded_codes is None else _text_of(self._folded_codes)

    @cached_property
    def offsets(self) -> npt.NDArray[np.intp]:
        """For each character of `folded`, the index of the character of `text` that it comes from."""
        if self._folded_codes is not None:
            return np.flatnonzero(self._folded_codes)
        if self.text.isascii():
            return np.flatnonzero(np.frombuffer(self.text.encode().translate(_KEPT), dtype=np.uint8))
        return np.array(fold_offsets(self.text), dtype=np.intp)

    def origins(self, start: int, end: int) -> list[int]:
        """Returns the indices in `text` of the characters `start` to `end` of `folded`."""
        found: list[int] = self.offsets[start:end].tolist()
        return found

    def origins_of(self, places: list[int]) -> list[int]:
        """Returns the indices in `text` of the characters of `folded` at `places`."""
        found: list[int] = self.offsets[places].tolist()
        return found

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Returns the half-open range of the original text that the half-open range `start`, `end` of this reading comes from."""
        if self._source is None:
            return start, end
        head, tail = self._piece(start), self._piece(end - 1)
        begin = head.begin + (start - head.start if head.linear else 0)
        final = tail.begin + (end - tail.start) if tail.linear else tail.end
        return self._source.span(begin, final)

    def _piece(self, index: int) -> Piece:
        return self._pieces[bisect_right(self._starts, index) - 1]

    @cached_property
    def _starts(self) -> list[int]:
        return [piece.start for piece in self._pieces]
