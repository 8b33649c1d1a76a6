"""Records of SQLite's file format: the values of one row, or of one entry of an index.

Nothing here raises, whatever the bytes are: invalid bytes give None.
"""

from __future__ import annotations

import math
import struct

Value = None | int | float | str | bytes

LOST_TEXT = "\ufffd"
"""Replaces text that cannot be read."""

OVERFLOW_POINTER = 4
"""The size of the number of the next page, after the part of a record that is on its own page."""

_LENGTHS = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
"""How many bytes values of the first types take; two more types are reserved and never stored."""
_FLOAT = 7
_ZERO, _ONE = 8, 9
_FIRST_OF_ANY_LENGTH = 12
_SIGN = 1 << 63

_float = struct.Struct(">d").unpack_from


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length and the offset of its end, which is past the data if it is cut off."""
    value = 0
    for end in range(at, min(at + 8, len(data))):
        byte = data[end]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, end + 1
    if at + 8 < len(data):
        return value << 8 | data[at + 8], at + 9
    return 0, len(data) + 1


def to_signed(value: int) -> int:
    """Return a number of variable length as the key of a row."""
    return value - (_SIGN << 1) if value >= _SIGN else value


def size_on_page(size: int, usable: int, *, of_index: bool = False) -> int:
    """How many bytes of a record of `size` bytes are on the page of its row; the others overflow."""
    most = (usable - 12) * 64 // 255 - 23 if of_index else usable - 35
    if size <= most:
        return size
    least = (usable - 12) * 32 // 255 - 23
    here = least + (size - least) % (usable - OVERFLOW_POINTER)
    return here if here <= most else least


def decode(payload: bytes, size: int, codec: str) -> list[Value] | None:
    """Return the values of a record of `size` bytes, or None if these bytes are no record.

    If the end of a record is missing, its values are returned as far as they can be read; text that is cut off ends
    with `LOST_TEXT`.
    """
    header, at = varint(payload, 0)
    if not at <= header <= len(payload):
        return None
    there = len(payload)
    values: list[Value] = []
    start = header
    while at < header:
        kind = payload[at]
        if kind < 0x80:
            at += 1
        else:
            kind, at = varint(payload, at)
        if kind >= _FIRST_OF_ANY_LENGTH:
            end = start + (kind - _FIRST_OF_ANY_LENGTH >> 1)
            if end > there:
                values.append(_beginning(payload[start:], codec if kind & 1 else ""))
            elif kind & 1:
                values.append(payload[start:end].decode(codec, "replace"))
            else:
                values.append(payload[start:end])
        elif kind == 0:
            values.append(None)
            continue
        elif kind < len(_LENGTHS):
            end = start + _LENGTHS[kind]
            values.append(None if end > there else _number(payload, kind, start, end))
        else:
            return None
        start = end
    return values if at == header and start == size else None


def _number(payload: bytes, kind: int, start: int, end: int) -> int | float | None:
    if kind == _FLOAT:
        number: float = _float(payload, start)[0]
        return None if math.isnan(number) else number
    if kind >= _ZERO:
        return kind - _ZERO
    return int.from_bytes(payload[start:end], "big", signed=True)


def _beginning(data: bytes, codec: str) -> str | None:
    """The readable part of a value that is cut off; None for bytes, because a part of them is of no use."""
    return data.decode(codec, "replace") + LOST_TEXT if data and codec else None
