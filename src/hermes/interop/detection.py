"""Detection of a session file's format, by its content and not by its name."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from hermes.errors import HermesError, InvalidValue, NotFound
from hermes.interop.database import MAGIC, Database
from hermes.interop.exported import MAX_LINE_IN_MEMORY, Exported, is_exported
from hermes.interop.jsonl.lines import lines_of, parse_line
from hermes.interop.jsonl.long_line import MESSAGES, LongLine
from hermes.interop.other_agents.claude_code import ClaudeCode, is_claude_code
from hermes.interop.other_agents.codex import Codex, is_codex
from hermes.interop.source import Source
from hermes.state.import_export.session_checks import EXPORT_SCHEMA

SESSION_FILE = ".jsonl"
INSPECTED_LINES = 100
"""How many lines are inspected to detect the format of a file."""

Identity = tuple[int, int]
"""A file independent of its name: its device and inode number."""


class FoundFile(NamedTuple):
    """A file to import sessions from."""

    path: Path
    size_bytes: int
    source: Source | HermesError
    """The reader for the file, or the error that says why it cannot be read."""


def find(paths: Sequence[Path], untouchable: Collection[Identity] = ()) -> Iterator[FoundFile]:
    """Yield the given files, and the session files below the given directories.

    `untouchable` are the files of the store itself: opening and closing one would release SQLite's locks.
    """
    for path in paths:
        if path.is_dir():
            yield from _below(path, untouchable)
        else:
            yield _inspect(path, untouchable)


def recognize(path: Path) -> Source | None:
    """Return the reader for a file, or None if its format is unknown."""
    size = path.stat().st_size
    with path.open("rb") as file:
        beginning = file.readline(MAX_LINE_IN_MEMORY)
        if beginning.startswith(MAGIC):
            return Database(path)
        if len(beginning) == MAX_LINE_IN_MEMORY and not beginning.endswith(b"\n"):
            return _source(path, {MESSAGES: [], **LongLine(path, 1, 0).head(EXPORT_SCHEMA)})
        file.seek(0)
        for line in islice(lines_of(file, path, size), INSPECTED_LINES):
            if (source := _source(path, parse_line(line, path))) is not None:
                return source
    return None if size else Exported(path)


def identity_of(path: Path) -> Identity | None:
    """Return the identity of the file at a path, or None if there is no such file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _below(directory: Path, untouchable: Collection[Identity]) -> Iterator[FoundFile]:
    for parent, directories, names in os.walk(directory):
        directories.sort()
        for name in sorted(names):
            path = Path(parent, name)
            if not path.is_file() or identity_of(path) in untouchable:
                continue
            found = _inspect(path, untouchable)
            if isinstance(found.source, HermesError):
                is_importable = path.suffix == SESSION_FILE and not isinstance(found.source, NotFound)
            else:
                # A database must be given by name: one in a directory may be an old copy that has deleted sessions.
                is_importable = found.size_bytes > 0 and not isinstance(found.source, Database)
            if is_importable:
                yield found


def _inspect(path: Path, untouchable: Collection[Identity]) -> FoundFile:
    size = 0
    source: Source | HermesError | None
    try:
        size = path.stat().st_size
        if identity_of(path) in untouchable:
            raise InvalidValue(f"{path} belongs to the store itself")
        source = recognize(path) or NotFound(f"{path} has an unknown format")
    except FileNotFoundError:
        source = NotFound(f"there is no file {path}")
    except OSError as error:
        source = HermesError(f"{path} cannot be read: {error.strerror}")
    except HermesError as error:
        source = error
    return FoundFile(path, size, source)


def _source(path: Path, record: Mapping[str, Any]) -> Source | None:
    if is_exported(record):
        return Exported(path)
    if is_codex(record):
        return Codex(path)
    return ClaudeCode(path) if is_claude_code(record) else None
