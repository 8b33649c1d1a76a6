"""The pages of a database file, read without SQLite; pages in its log replace those in the file."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import NamedTuple

from hermes.state.sqlite.files.names import LOG, beside
from hermes.state.sqlite.repair.fileformat.page_size import SIZES, guess_page_size, has_reserve
from hermes.state.sqlite.repair.fileformat.wal import Log, read_log

MAGIC = b"SQLite format 3\0"
HEADER_SIZE = 100
MOST_CUT_OFF = 1_000
"""A header that claims more than this many times the existing pages is not trusted."""

_CODECS = {1: "utf-8", 2: "utf-16-le", 3: "utf-16-be"}
_FRACTIONS = bytes((64, 32, 32))


class Header(NamedTuple):
    """The fields of the file header."""

    is_sound: bool
    page_size: int
    """0 if the header has no valid size."""
    reserved: int
    pages: int
    first_free: int
    free_count: int
    codec: str


class Pages:
    """The pages of one file; no process may change it meanwhile."""

    def __init__(self, database: Path) -> None:
        self._file = os.open(database, os.O_RDONLY)
        self._log_file = -1
        self._log = Log()
        self._frames: dict[int, int] = {}
        try:
            self.bytes = os.fstat(self._file).st_size
            self.header = header_of(os.pread(self._file, HEADER_SIZE, 0))
            self._open_log(beside(database, LOG))
            self.size = self.header.page_size or self._log.page_size or guess_page_size(self._file, self.bytes)
            if self._frames.get(1) is not None:
                self.header = header_of(self.page(1))
        except BaseException:
            self.close()
            raise
        reserved = self.header.reserved
        if reserved and not has_reserve(self._file, self.bytes, self.size, reserved):
            self.header, reserved = self.header._replace(is_sound=False), 0
        self.usable = self.size - reserved
        self.count = self._log.count or -(-self.bytes // self.size)
        """How many pages the file has."""
        is_likely = self.header.is_sound and self.header.pages <= MOST_CUT_OFF * self.count
        self.expected = max(self.count, self.header.pages if is_likely else 0)
        """How many pages the file should have: a file that was cut off has fewer."""

    def close(self) -> None:
        """Close the files."""
        for file in (self._file, self._log_file):
            if file >= 0:
                os.close(file)
        self._file = self._log_file = -1

    def page(self, number: int) -> bytes:
        """The bytes of a page; missing bytes are zero."""
        data = self._read(number, self.size)
        return data if len(data) == self.size else data.ljust(self.size, b"\0")

    def kind(self, number: int) -> int:
        """The first byte of a page, which tells pages of trees from others."""
        return (self._read(number, 1) or b"\0")[0]

    def set_codec(self, codec: str) -> None:
        """Decode text with another codec than the header says."""
        self.header = self.header._replace(codec=codec, is_sound=False)

    @property
    def pages_after_damage(self) -> list[int]:
        """The pages that have a newer version after a damaged place in the log."""
        return sorted(self._log.after_damage)

    def page_after_damage(self, number: int) -> bytes:
        """The version of a page that comes after a damaged place in the log."""
        return os.pread(self._log_file, self.size, self._log.after_damage[number])

    def _read(self, number: int, size: int) -> bytes:
        at = self._frames.get(number)
        if at is None:
            return os.pread(self._file, size, (number - 1) * self.size)
        return os.pread(self._log_file, size, at)

    def _open_log(self, log: Path) -> None:
        if not log.exists():
            return
        self._log_file = os.open(log, os.O_RDONLY)
        found = read_log(self._log_file, self.header.page_size)
        if 0 in (self.header.page_size, found.page_size) or self.header.page_size == found.page_size:
            self._log, self._frames = found, found.pages


def header_of(page: bytes) -> Header:
    """Parse the header of a file, as far as it is valid."""
    data = page[:HEADER_SIZE].ljust(HEADER_SIZE, b"\0")
    (stored_size,) = struct.unpack_from(">H", data, 16)
    size = 65_536 if stored_size == 1 else stored_size
    reserved = data[20]
    has_size = size in SIZES
    if not has_size or size - reserved < 480:
        reserved = 0
    is_sound = data.startswith(MAGIC) and has_size and reserved == data[20] and data[21:24] == _FRACTIONS
    (pages,) = struct.unpack_from(">I", data, 28)
    first_free, free_count = struct.unpack_from(">2I", data, 32)
    (encoding,) = struct.unpack_from(">I", data, 56)
    return Header(
        is_sound,
        size if has_size else 0,
        reserved,
        pages,
        first_free,
        free_count,
        _CODECS.get(encoding, "utf-8"),
    )
