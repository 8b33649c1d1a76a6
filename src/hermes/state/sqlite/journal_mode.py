"""The journal mode of a file: a WAL where its file system can share memory, a rollback journal elsewhere."""

from __future__ import annotations

from pathlib import Path

import apsw

from hermes.log import warn
from hermes.state.sqlite.filesystem import file_system_of

_CANNOT_SHARE = (apsw.ProtocolError, apsw.CantOpenError, apsw.PermissionsError, apsw.AuthError)
"""SQLite's errors on file systems that lock or share memory in their own ways."""

_warned: set[Path] = set()


def choose_journal(connection: apsw.Connection, path: Path) -> str:
    """Set the journal mode of a file that is being opened for writing, and return the mode."""
    file_system = file_system_of(path)
    present = _mode(connection)
    if file_system.is_shared:
        if present == "wal":
            present = _try(connection, "delete")
        if present != "wal":
            _warn_once(path, f"is on {file_system.kind}, which other machines may write to: it is kept without a WAL")
        else:
            _warn_once(
                path,
                f"is on {file_system.kind} with a WAL that other processes use; it is switched off once they close it",
            )
        return present
    if present == "wal":
        return present  # setting it again could disturb processes that have it open
    try:
        return _try(connection, "wal")
    except _CANNOT_SHARE as exc:
        if _mode(connection) == "wal":
            raise  # other processes use a WAL on this file; two modes at once would damage it
        _warn_once(path, f"is on a file system that cannot share memory ({exc}): it is kept without a WAL")
        return _try(connection, "delete")


def _mode(connection: apsw.Connection) -> str:
    return str(connection.execute("PRAGMA journal_mode").fetchall()[0][0])


def _try(connection: apsw.Connection, mode: str) -> str:
    try:
        return str(connection.execute(f"PRAGMA journal_mode = {mode}").fetchall()[0][0])
    except apsw.BusyError:
        return _mode(connection)


def _warn_once(path: Path, what: str) -> None:
    if path not in _warned:
        _warned.add(path)
        warn(__name__, "%s %s", path, what)
