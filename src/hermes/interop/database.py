"""Import from SQLite database files of any version; they are never changed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from hermes.errors import HermesError, InvalidValue, StoreError
from hermes.interop.source import ByteProgress, Examined
from hermes.state.import_export.session_checks import CheckedSession, iter_drafts
from hermes.state.import_export.session_writer import read_checked_sessions
from hermes.state.sqlite.files.names import bytes_of
from hermes.state.sqlite.provider import SQLiteSessionDBProvider
from hermes.state.sqlite.schema.foreign_file import require_sound

MAGIC = b"SQLite format 3\0"


class Database:
    """A database file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._good = 0
        """How many sessions can be read before the first bad one."""

    def examine(self, now: float, progress: ByteProgress) -> Examined:
        """Read and check the whole file."""
        ids: list[str] = []
        trouble: HermesError | None = None
        try:
            require_sound(self._path)
            with SQLiteSessionDBProvider(self._path, read_only=True) as store:
                for session in read_checked_sessions(store, now):
                    for _ in iter_drafts(session, now):
                        pass
                    ids.append(session.id)
        except HermesError as error:
            trouble = error
        self._good = len(ids)
        progress(bytes_of(self._path))
        return Examined(ids, trouble=trouble)

    def sessions(self, now: float, progress: ByteProgress) -> Iterator[CheckedSession]:
        """Yield the sessions that `examine` found; call `examine` first."""
        try:
            with SQLiteSessionDBProvider(self._path, read_only=True) as store:
                yield from islice(read_checked_sessions(store, now), self._good)
        except StoreError as error:
            # The caller writes to another store and must not take this for a failure of that one.
            raise InvalidValue(error.message, hint=error.hint) from error
        progress(bytes_of(self._path))
