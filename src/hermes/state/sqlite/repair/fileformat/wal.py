"""The frames of a write-ahead log: which committed pages of the database it has."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from hermes.state.sqlite.repair.fileformat.page_size import SIZES

MAGIC = 0x377F0682
"""The last bit gives the byte order of the words in the checksum."""

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MASK = 0xFFFFFFFF

Sums = tuple[int, int]


@dataclass(slots=True)
class Log:
    """Where a log has the newest committed version of each page."""

    page_size: int = 0
    """The page size in the header of the log; 0 if there is no log or the size is not valid."""
    pages: dict[int, int] = field(default_factory=dict)
    count: int = 0
    """How many pages the database has after the last commit; 0 if nothing was committed."""
    after_damage: dict[int, int] = field(default_factory=dict)
    """Pages of commits after a damaged place in the log: SQLite does not read these."""


class _Frame(NamedTuple):
    at: int
    page: int
    size: int
    """How many pages the database has after this frame if it ends a transaction, else 0."""
    salts: Sums
    sums: Sums
    data: bytes


def read_log(file: int, page_size: int) -> Log:
    """Read the log that is open as `file`; `page_size` is that of the database, 0 if it is not known."""
    header = os.pread(file, _HEADER.size, 0)
    if len(header) < _HEADER.size:
        return Log()
    magic, _, own_size, _, *rest = _HEADER.unpack(header)
    salts, sums = (rest[0], rest[1]), (rest[2], rest[3])
    order = ">" if magic & 1 else "<"
    is_sound = magic & ~1 == MAGIC and running_sums(header[:24], order, (0, 0)) == sums
    page_size = own_size if is_sound else page_size
    if page_size not in SIZES:
        return Log()
    log = Log(page_size if is_sound else 0)
    pending: dict[int, int] = {}
    is_whole = is_sound
    before: _Frame | None = None
    for frame in _frames(file, page_size):
        if not is_sound and before is None:
            salts = frame.salts  # only this still tells the frames of this log from older ones
        follows = frame.salts == salts and frame.sums == _sums_of(frame, order, sums)
        sums = frame.sums
        if is_whole and not follows:
            is_whole, pending = False, {}
        elif not is_whole and follows and before is not None and before.page not in pending:
            # Whatever is wrong with the frame before this one, it was once written completely.
            pending[before.page] = before.at
        if follows:
            pending[frame.page] = frame.at
            if frame.size:
                (log.pages if is_whole else log.after_damage).update(pending)
                log.count = frame.size if is_whole else log.count
                pending = {}
        before = frame if frame.salts == salts else None
    return log


def running_sums(data: bytes, order: str, sums: Sums) -> Sums:
    """Continue the two running sums of a log with more bytes."""
    first, second = sums
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for word, next_word in zip(words, words, strict=True):
        first = first + word + second & _MASK
        second = second + next_word + first & _MASK
    return first, second


def _sums_of(frame: _Frame, order: str, sums: Sums) -> Sums:
    return running_sums(frame.data, order, running_sums(struct.pack(">2I", frame.page, frame.size), order, sums))


def _frames(file: int, page_size: int) -> Iterator[_Frame]:
    at = _HEADER.size
    while True:
        raw = os.pread(file, _FRAME.size + page_size, at)
        if len(raw) < _FRAME.size + page_size:
            return
        page, size, *rest = _FRAME.unpack_from(raw)
        yield _Frame(at + _FRAME.size, page, size, (rest[0], rest[1]), (rest[2], rest[3]), raw[_FRAME.size :])
        at += len(raw)
