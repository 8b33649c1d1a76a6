"""Lines of a file of JSON: numbered, bounded, and never a mystery when one of them cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from hermes.errors import InvalidValue
from hermes.interop.jsonl.encoding import decode

LONGEST_LINE = 64 << 20
"""What is longer is refused: nothing that somebody said is, and it would have to be held whole."""


MOST_PARTS = 4_000_000
"""So many lists and dicts may be in one piece: each takes twenty times as much memory as it takes bytes."""


class Line(NamedTuple):
    """A line that is not blank, and where it stands."""

    number: int
    start: int
    data: bytes


def lines_of(file: BinaryIO, path: Path, upto: int) -> Iterator[Line]:
    """The lines up to an offset."""
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


def parsed(line: Line, path: Path) -> dict[str, Any]:
    """The object that a line stands for."""
    if line.data.count(b"[") + line.data.count(b"{") > MOST_PARTS:
        raise too_many_parts(path, line.number)
    try:
        value = decode(line.data)
    except RecursionError:
        raise bad_line(path, line.number, "it is nested too deeply") from None
    except ValueError as error:
        raise unreadable(path, line.number, error, is_cut=not line.data.endswith(b"\n")) from None
    if not isinstance(value, dict):
        raise bad_line(path, line.number, f"it is {_name_of(value)}, not an object")
    return value


def bad_line(path: Path, number: int, why: str) -> InvalidValue:
    """The error for a line that cannot be taken."""
    return InvalidValue(f"{path}:{number}: {why}", hint="")


def unreadable(path: Path, number: int, error: ValueError, *, is_cut: bool) -> InvalidValue:
    """The error for a line that is not JSON."""
    if is_cut:
        return bad_line(path, number, "it breaks off: the file is not whole, or is still being written")
    if isinstance(error, UnicodeDecodeError):
        return bad_line(path, number, f"it is not UTF-8 (byte {error.start + 1})")
    return bad_line(path, number, f"it is not JSON ({getattr(error, 'msg', error)})")


def changed_line(path: Path, number: int) -> InvalidValue:
    """The error for a line that is not what it was a moment ago."""
    return bad_line(path, number, "it has changed since the file was checked")


def too_long(path: Path, number: int) -> InvalidValue:
    """The error for a line, or a message in it, that would have to be held whole."""
    return bad_line(path, number, f"more than {LONGEST_LINE >> 20} MB in one piece")


def too_many_parts(path: Path, number: int) -> InvalidValue:
    """The error for a line, or a message in it, that would take up too much memory."""
    return bad_line(path, number, f"more than {MOST_PARTS} lists and dicts in one piece")


def _name_of(value: object) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "nothing")
