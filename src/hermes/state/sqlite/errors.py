"""Translation of SQLite's errors to ours, by result code, never by their English text."""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from hermes import errors

FULL_BELOW_BYTES = 65_536

_BY_CODE: dict[int, type[errors.StoreError]] = {
    apsw.SQLITE_BUSY: errors.StoreBusy,
    apsw.SQLITE_LOCKED: errors.StoreBusy,
    apsw.SQLITE_PROTOCOL: errors.StoreBusy,
    apsw.SQLITE_CORRUPT: errors.StoreCorrupt,
    apsw.SQLITE_FULL: errors.StoreFull,
    apsw.SQLITE_READONLY: errors.StoreReadOnly,
    apsw.SQLITE_PERM: errors.StoreReadOnly,
    apsw.SQLITE_NOTADB: errors.NotADatabase,
    apsw.SQLITE_CANTOPEN: errors.StoreUnavailable,
    apsw.SQLITE_IOERR: errors.StoreUnavailable,
    apsw.SQLITE_NOMEM: errors.StoreUnavailable,
    apsw.SQLITE_INTERRUPT: errors.StoreUnavailable,
}

_SENTENCES: dict[type[errors.StoreError], str] = {
    errors.StoreBusy: "the session database {path} is locked by another process",
    errors.StoreCorrupt: "the session database {path} is damaged",
    errors.StoreFull: "the disk of the session database {path} is full",
    errors.StoreReadOnly: "the session database {path} cannot be written",
    errors.NotADatabase: "{path} is not an SQLite database",
    errors.StoreUnavailable: "the session database {path} cannot be opened or read",
}


class FileReplaced(errors.StoreUnavailable):
    """The open file is no longer the one at its path: it was moved, removed or restored."""

    advice = "open the store again"


def is_busy(exc: BaseException) -> bool:
    """Whether a retry may help because another connection holds a lock."""
    return isinstance(exc, apsw.BusyError | apsw.LockedError)


def translate(exc: apsw.Error, path: Path) -> errors.HermesError:
    """Return the error of our tree for an SQLite error."""
    code = getattr(exc, "extendedresult", 0) & 0xFF or getattr(exc, "result", 0)
    kind = _BY_CODE.get(code)
    if code == apsw.SQLITE_IOERR and _is_full(path):
        kind = errors.StoreFull
    if kind is not None:
        return kind(f"{_SENTENCES[kind].format(path=path)}: {exc}", hint=_hint(kind, path))
    if code == apsw.SQLITE_CONSTRAINT:
        return errors.Conflict(f"the change contradicts what is stored: {exc}")
    if code == apsw.SQLITE_TOOBIG:
        return errors.InvalidValue("the value is larger than SQLite can store (1 GB)")
    return errors.StoreError(f"SQLite failed on {path}: {exc}")


def _is_full(path: Path) -> bool:
    """Whether a full disk probably caused an I/O error."""
    try:
        disk = os.statvfs(path.parent)
    except (OSError, AttributeError):
        return False
    return disk.f_bavail * disk.f_frsize < FULL_BELOW_BYTES


def _hint(kind: type[errors.StoreError], path: Path) -> str | None:
    if kind is errors.StoreReadOnly:
        return f"check the permissions of {path} and of its directory"
    if kind is errors.StoreUnavailable:
        return f"check that {path} and its directory exist, are readable and are on a working disk"
    return None
