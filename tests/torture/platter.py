"""What is left of files when the power fails: all that was synced, and of the rest anything.

A process that is killed loses nothing of what it wrote, because the system has it. So what it writes is recorded, and
the files are made anew from the record as a disk without power would have them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.torture.disk import SECTOR, Access

SAID = "said"
_KEPT, _WHOLE = 0.5, 0.7
"""The odds that a write survives that was not synced, and that it does so in one piece."""


class Entry(NamedTuple):
    """One access to a file, as it is recorded."""

    deed: str
    name: str
    offset: int
    size: int


class Recorder:
    """Notes what SQLite does to files, as a mishap for a `Disk`, and what is said meanwhile."""

    def __init__(self, record: Path) -> None:
        self._out = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def __call__(self, access: Access) -> None:
        self._note(Entry(access.deed, access.name, access.offset, len(access.data)), access.data)

    def say(self, line: str) -> None:
        """Note something that was said."""
        self._note(Entry(SAID, "", 0, len(line.encode())), line.encode())

    def _note(self, entry: Entry, data: bytes) -> None:
        os.write(self._out, json.dumps(entry).encode() + b"\n" + data)


def recorded(record: Path) -> Iterator[tuple[Entry, bytes]]:
    """What a record holds; of one whose writer was killed the last may be missing."""
    data = record.read_bytes()
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        entry = Entry(*json.loads(data[start:end]))
        start = end + 1 + entry.size
        if start > len(data):
            return
        yield entry, data[end + 1 : start]


def said(record: Iterable[tuple[Entry, bytes]]) -> Iterator[str]:
    """What was said in the course of a record."""
    return (data.decode() for entry, data in record if entry.deed == SAID)


def after_power_cut(files: dict[str, bytes], record: Iterable[tuple[Entry, bytes]], random: Random) -> dict[str, bytes]:
    """The files as they are after a record, when the power fails at its end."""
    images = {name: bytearray(content) for name, content in files.items()}
    pending: dict[str, list[tuple[Entry, bytes]]] = {}
    for entry, data in record:
        if entry.deed == "delete":
            images.pop(entry.name, None)
            pending.pop(entry.name, None)
        elif entry.deed == "synced":
            for each in pending.pop(entry.name, []):
                _apply(images.setdefault(entry.name, bytearray()), *each)
        elif entry.deed in ("write", "truncate"):
            pending.setdefault(entry.name, []).append((entry, data))
    for name, entries in pending.items():
        for entry, data in entries:
            if random.random() < _KEPT:
                _apply(images.setdefault(name, bytearray()), entry, data, random)
    return {name: bytes(image) for name, image in images.items()}


def _apply(image: bytearray, entry: Entry, data: bytes, random: Random | None = None) -> None:
    """Do to a file what was done to it; with chance, only to some of the sectors of a write."""
    if entry.deed == "truncate":
        del image[entry.offset :]
        image.extend(bytes(entry.offset - len(image)))
        return
    image.extend(bytes(max(0, entry.offset + len(data) - len(image))))
    is_whole = random is None or random.random() < _WHOLE
    for start in range(0, len(data), SECTOR):
        if is_whole or (random is not None and random.random() < _KEPT):
            piece = data[start : start + SECTOR]
            image[entry.offset + start : entry.offset + start + len(piece)] = piece
