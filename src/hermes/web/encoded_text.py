"""Texts inside of an address that are written in base64, base32 or hexadecimal digits."""

from __future__ import annotations

import binascii
import re
from base64 import b32decode
from collections.abc import Iterator

_MIN_BYTES = 8
"""Shorter texts are no secrets, and too much looks like one."""
_BASE64 = re.compile(r"[A-Za-z0-9+/]{11,}|[A-Za-z0-9_-]{11,}")
_BASE32 = re.compile(r"[A-Z2-7]{13,}|[a-z2-7]{13,}")
_HEXADECIMAL = re.compile(r"(?:[0-9a-fA-F]{2}[:-]?){8,}")
_WITHOUT_SEPARATORS = str.maketrans("", "", ":-")
_FROM_URL = str.maketrans("-_", "+/")


def decode_parts(text: str) -> Iterator[bytes]:
    """Yield what the parts of a text mean if they are encoded; most of it is meaningless."""
    for found in _BASE64.finditer(text):
        # A slash may belong to the address instead of the encoded text.
        for part in {found[0], *found[0].split("/")}:
            # The first characters may belong to something else.
            for start in range(min(4, len(part))):
                yield from _long_enough(_decode_base64(part[start:].translate(_FROM_URL)))
    for found in _BASE32.finditer(text):
        for start in range(8):
            yield from _long_enough(_decode_base32(found[0][start:].upper()))
    for found in _HEXADECIMAL.finditer(text):
        digits = found[0].translate(_WITHOUT_SEPARATORS)
        for start in (0, 1):
            yield from _long_enough(bytes.fromhex(digits[start : start + (len(digits) - start) // 2 * 2]))


def _decode_base64(part: str) -> bytes:
    rest = len(part) % 4
    whole = part[: len(part) - 1] if rest == 1 else part + "=" * (-len(part) % 4)
    try:
        return binascii.a2b_base64(whole)
    except binascii.Error:
        return b""


def _decode_base32(part: str) -> bytes:
    # Only these lengths of the last group exist: 2, 4, 5 and 7 characters.
    spare = {1: 1, 3: 1, 6: 1}.get(len(part) % 8, 0)
    whole = part[: len(part) - spare]
    return b32decode(whole + "=" * (-len(whole) % 8))


def _long_enough(data: bytes) -> Iterator[bytes]:
    if len(data) >= _MIN_BYTES:
        yield data
