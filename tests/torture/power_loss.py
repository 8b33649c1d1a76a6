"""The files after a power failure: everything that was synced, and a random part of the rest.

Killing a process loses nothing that it wrote, because the kernel still has it. So each write is recorded, and the files
are rebuilt from the record as they would be on a disk that lost power.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.torture.disk import SECTOR, Access

SENT = "said"
_KEPT, _WHOLE = 0.5, 0.7
"""The odds that an unsynced write survives, and that it survives as a whole."""


class Entry(NamedTuple):
    """One access to a file, as it is recorded."""

    action: str
    name: str
    offset: int
    size: int


class Recorder:
    """Records every access of SQLite to its files, as a disk fault for `Disk`, and the writers' reports."""

    def __init__(self, record: Path) -> None:
        self._out = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def __call__(self, access: Access) -> None:
        self._note(Entry(access.action, access.name, access.offset, len(access.data)), access.data)

    def record_line(self, line: str) -> None:
        """Record a report of a writer."""
        self._note(Entry(SENT, "", 0, len(line.encode())), line.encode())

    def _note(self, entry: Entry, data: bytes) -> None:
        os.write(self._out, json.dumps(entry).encode() + b"\n" + data)


def read_record(record: Path) -> Iterator[tuple[Entry, bytes]]:
    """The entries of a record. The last entry may be missing if its writer was killed."""
    data = record.read_bytes()
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        entry = Entry(*json.loads(data[start:end]))
        start = end + 1 + entry.size
        if start > len(data):
            return
        yield entry, data[end + 1 : start]


def lines_sent(record: Iterable[tuple[Entry, bytes]]) -> Iterator[str]:
    """The reports of writers in a record."""
    return (data.decode() for entry, data in record if entry.action == SENT)


def after_power_cut(files: dict[str, bytes], record: Iterable[tuple[Entry, bytes]], random: Random) -> dict[str, bytes]:
    """The files after a record, if the power fails at its end."""
    images = {name: bytearray(content) for name, content in files.items()}
    pending: dict[str, list[tuple[Entry, bytes]]] = {}
    for entry, data in record:
        if entry.action == "delete":
            images.pop(entry.name, None)
            pending.pop(entry.name, None)
        elif entry.action == "synced":
            for each in pending.pop(entry.name, []):
                _apply(images.setdefault(entry.name, bytearray()), *each)
        elif entry.action in ("write", "truncate"):
            pending.setdefault(entry.name, []).append((entry, data))
    for name, entries in pending.items():
        for entry, data in entries:
            if random.random() < _KEPT:
                _apply(images.setdefault(name, bytearray()), entry, data, random)
    return {name: bytes(image) for name, image in images.items()}


def _apply(image: bytearray, entry: Entry, data: bytes, random: Random | None = None) -> None:
    """Repeat a recorded access on a file; with `random`, perhaps only some sectors of a write."""
    if entry.action == "truncate":
        del image[entry.offset :]
        image.extend(bytes(entry.offset - len(image)))
        return
    image.extend(bytes(max(0, entry.offset + len(data) - len(image))))
    is_whole = random is None or random.random() < _WHOLE
    for start in range(0, len(data), SECTOR):
        if is_whole or (random is not None and random.random() < _KEPT):
            piece = data[start : start + SECTOR]
            image[entry.offset + start : entry.offset + start + len(piece)] = piece
