"""The lines of a JSON lines file: numbered, limited in length, with an error that names the bad line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from hermes.errors import InvalidValue
from hermes.interop.jsonl.encoding import decode

LONGEST_LINE = 64 << 20
"""Longer lines are refused: no real message is that long, and it would have to fit in memory."""

MOST_PARTS = 4_000_000
"""The most lists and dicts in one line or message: each takes twenty times as much memory as bytes in the file."""


class Line(NamedTuple):
    """A line that is not blank, with its number and offset."""

    number: int
    start: int
    data: bytes


def lines_of(file: BinaryIO, path: Path, upto: int) -> Iterator[Line]:
    """Yield the lines that are not blank, up to an offset."""
    number, start = 0, 0
    while start < upto:
        number += 1
        data = file.readline(LONGEST_LINE + 1)
        if not data:
            return
        if len(data) > LONGEST_LINE:
            raise too_long(path, number)
        if not data.isspace():
            yield Line(number, start, data)
        start += len(data)


def parse_line(line: Line, path: Path) -> dict[str, Any]:
    """Return the object on a line."""
    if line.data.count(b"[") + line.data.count(b"{") > MOST_PARTS:
        raise too_many_parts(path, line.number)
    try:
        value = decode(line.data)
    except RecursionError:
        raise bad_line(path, line.number, "nested too deeply") from None
    except ValueError as error:
        raise unreadable(path, line.number, error, is_cut=not line.data.endswith(b"\n")) from None
    if not isinstance(value, dict):
        raise bad_line(path, line.number, f"expected an object, found {_name_of(value)}")
    return value


def bad_line(path: Path, number: int, why: str) -> InvalidValue:
    """The error for a line that cannot be imported."""
    return InvalidValue(f"{path}:{number}: {why}", hint="")


def unreadable(path: Path, number: int, error: ValueError, *, is_cut: bool) -> InvalidValue:
    """The error for a line that is not JSON."""
    if is_cut:
        return bad_line(path, number, "the line is incomplete: the file was cut off, or is still being written")
    if isinstance(error, UnicodeDecodeError):
        return bad_line(path, number, f"not UTF-8 (byte {error.start + 1})")
    # Python's messages end with a place that only `str(error)` has.
    return bad_line(path, number, f"not JSON ({str(getattr(error, 'msg', error)).removesuffix(' at')})")


def changed_line(path: Path, number: int) -> InvalidValue:
    """The error for a line that changed between checking and importing."""
    return bad_line(path, number, "the line has changed since the file was checked")


def too_long(path: Path, number: int) -> InvalidValue:
    """The error for a line, or a message in it, that is too long for memory."""
    return bad_line(path, number, f"longer than {LONGEST_LINE >> 20} MB")


def too_many_parts(path: Path, number: int) -> InvalidValue:
    """The error for a line, or a message in it, that would need too much memory."""
    return bad_line(path, number, f"more than {MOST_PARTS} lists and dicts in one message")


def _name_of(value: object) -> str:
    names = {list: "a list", str: "a string", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "null")
