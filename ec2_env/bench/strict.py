"""Reads files from elsewhere: bounded in size, without following links, and strict JSON."""

from __future__ import annotations

import json
import math
import stat
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ec2_env.errors import EC2Error

LARGEST_FILE, LARGEST_TEXT, LARGEST_LINE = 64 << 20, 256 << 20, 1 << 16
"""Bytes of a compressed file, of what is in it, and of one line."""


class Refused(EC2Error):
    """What came from elsewhere breaks a rule; the text says which."""


def read_bytes(file: Path, largest: int) -> bytes:
    """Returns a file's bytes; links are not followed.

    Raises:
        Refused: if it is missing, no plain file, or too large.
    """
    try:
        found = file.lstat()
    except OSError:
        raise Refused(f"{file.name} is missing") from None
    if not stat.S_ISREG(found.st_mode):
        raise Refused(f"{file.name} is no plain file")
    if found.st_size > largest:
        raise Refused(f"{file.name} has {found.st_size:,} bytes; at most {largest:,} are read")
    return file.read_bytes()


def read_lines(file: Path) -> Iterator[bytes]:
    """Yields the lines of a file compressed with gzip, without their line breaks. Only a part of it is unpacked at any time.

    Raises:
        Refused: if it is no such file, is cut off, or unpacks to too much.
    """
    packed, rest, left = memoryview(read_bytes(file, LARGEST_FILE)), b"", LARGEST_TEXT
    for part in _unpacked(packed, file.name):
        left -= len(part)
        *whole, rest = (rest + part).split(b"\n")
        yield from whole
        if left < 0 or len(rest) > LARGEST_LINE:
            limit = f"{LARGEST_TEXT:,} bytes" if left < 0 else f"a line of {LARGEST_LINE:,} bytes"
            raise Refused(f"{file.name} unpacks to more than {limit}")
    if rest:
        raise Refused(f"{file.name} does not end with a line break")


def _unpacked(packed: memoryview, name: str) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        for start in range(0, len(packed), LARGEST_LINE):
            piece = bytes(packed[start : start + LARGEST_LINE])
            while piece and not unpacker.eof:
                yield unpacker.decompress(piece, LARGEST_LINE)
                piece = unpacker.unconsumed_tail
            if unpacker.eof:
                if piece or unpacker.unused_data or start + LARGEST_LINE < len(packed):
                    raise Refused(f"{name} holds more than one stream")
                return
        while part := unpacker.decompress(b"", LARGEST_LINE):
            yield part
    except zlib.error as error:
        raise Refused(f"{name} is not compressed with gzip ({error})") from None
    if not unpacker.eof:
        raise Refused(f"{name} is cut off")


def read_object(text: bytes, where: str) -> dict[str, Any]:
    """Returns a JSON object in which every key stands once and every number is finite.

    Raises:
        Refused: if the text is something else.
    """
    try:
        found = json.loads(text.decode("utf-8"), object_pairs_hook=_once, parse_constant=_never, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{where} is no strict JSON ({str(error)[:120] or 'nested too deep'})") from None
    if not isinstance(found, dict):
        raise Refused(f"{where} is no JSON object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {key[:60]!r} stands there twice")
    return found


def _never(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _never(text[:20])


def label(value: object, what: str, least: int, longest: int) -> str:
    """Returns a text that can be shown.

    Raises:
        Refused: if it has control characters or line breaks, is too long, or is no text.
    """
    if not isinstance(value, str) or not least <= len(value) <= longest or not value.isprintable() or value != value.strip():
        raise Refused(f"{what} must be one line of {least} to {longest} printable characters")
    return value
