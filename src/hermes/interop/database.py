"""Database files of sessions, ours and those of other versions: read as they are, never changed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from hermes.errors import HermesError, InvalidValue, StoreError
from hermes.interop.source import Examined, Tell
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
        """How many of its sessions can be read, one after the other."""

    def examine(self, now: float, tell: Tell) -> Examined:
        """Go through the whole file and check all that is in it."""
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
        tell(bytes_of(self._path))
        return Examined(ids, trouble=trouble)

    def sessions(self, now: float, tell: Tell) -> Iterator[CheckedSession]:
        """The sessions that were found; only after they were."""
        try:
            with SQLiteSessionDBProvider(self._path, read_only=True) as store:
                yield from islice(read_checked_sessions(store, now), self._good)
        except StoreError as error:
            # Whoever puts them into another store must not take it for a failure of that one.
            raise InvalidValue(error.message, hint=error.hint) from error
        tell(bytes_of(self._path))
