"""What form a file of sessions has: told by what is in it, not by its name."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from hermes.errors import HermesError, InvalidValue, NotFound
from hermes.interop.database import MAGIC, Database
from hermes.interop.exported import HELD_WHOLE, Exported, is_exported
from hermes.interop.jsonl.lines import lines_of, parsed
from hermes.interop.jsonl.long_line import MESSAGES, LongLine
from hermes.interop.other_agents.claude_code import ClaudeCode, is_claude_code
from hermes.interop.other_agents.codex import Codex, is_codex
from hermes.interop.source import Source
from hermes.state.import_export.session_checks import EXPORT_SCHEMA

SESSION_FILE = ".jsonl"
TELLING_LINES = 100
"""So many lines are looked at for one that tells what the file is."""

Identity = tuple[int, int]
"""Which file it is, by whichever name: its device and its number there."""


class Found(NamedTuple):
    """A file to bring sessions in from."""

    path: Path
    size_bytes: int
    source: Source | HermesError
    """How it is read, or why it cannot be."""


def find(paths: Sequence[Path], untouchable: Collection[Identity] = ()) -> Iterator[Found]:
    """The files that are named, and those with sessions below directories that are named.

    `untouchable` are the files of the store itself: to open and close one would take SQLite's locks away.
    """
    for path in paths:
        if path.is_dir():
            yield from _below(path, untouchable)
        else:
            yield _look(path, untouchable)


def recognize(path: Path) -> Source | None:
    """How a file is read, or None if it is in no form that is known here."""
    size = path.stat().st_size
    with path.open("rb") as file:
        beginning = file.readline(HELD_WHOLE)
        if beginning.startswith(MAGIC):
            return Database(path)
        if len(beginning) == HELD_WHOLE and not beginning.endswith(b"\n"):
            return _source(path, {MESSAGES: [], **LongLine(path, 1, 0).head(EXPORT_SCHEMA)})
        file.seek(0)
        for line in islice(lines_of(file, path, size), TELLING_LINES):
            if (source := _source(path, parsed(line, path))) is not None:
                return source
    return None if size else Exported(path)


def identity_of(path: Path) -> Identity | None:
    """Which file there is at a path."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _below(directory: Path, untouchable: Collection[Identity]) -> Iterator[Found]:
    for parent, directories, names in os.walk(directory):
        directories.sort()
        for name in sorted(names):
            path = Path(parent, name)
            if not path.is_file() or identity_of(path) in untouchable:
                continue
            found = _look(path, untouchable)
            if isinstance(found.source, HermesError):
                is_meant = path.suffix == SESSION_FILE and not isinstance(found.source, NotFound)
            else:
                # A database has to be named: one that lies around may be a copy of what was deleted since.
                is_meant = found.size_bytes > 0 and not isinstance(found.source, Database)
            if is_meant:
                yield found


def _look(path: Path, untouchable: Collection[Identity]) -> Found:
    size = 0
    source: Source | HermesError | None
    try:
        size = path.stat().st_size
        if identity_of(path) in untouchable:
            raise InvalidValue(f"{path} belongs to the store itself")
        source = recognize(path) or NotFound(f"{path} is in no form that is known here")
    except FileNotFoundError:
        source = NotFound(f"there is no file {path}")
    except OSError as error:
        source = HermesError(f"{path} cannot be read: {error.strerror}")
    except HermesError as error:
        source = error
    return Found(path, size, source)


def _source(path: Path, record: Mapping[str, Any]) -> Source | None:
    if is_exported(record):
        return Exported(path)
    if is_codex(record):
        return Codex(path)
    return ClaudeCode(path) if is_claude_code(record) else None
