"""The session store on SQLite."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hermes.clock import Clock, system_clock
from hermes.errors import InvalidValue
from hermes.state.provider import SessionDBProvider, default_path
from hermes.state.sqlite.amounts import checked_timeout
from hermes.state.sqlite.engine import WRITE_TIMEOUT_S, SqliteEngine
from hermes.state.sqlite.store.open_file import CHECKPOINT_EVERY_N_WRITES
from hermes.state.sqlite.store.writer import WRITE_MAX_RETRIES, WRITE_RETRY_MAX_S, WRITE_RETRY_MIN_S

_last_init_error: str | None = None


class SQLiteSessionDBProvider(SessionDBProvider):
    """A session store in one file; safe for threads, shared within a process, fair between processes."""

    _WRITE_MAX_RETRIES = WRITE_MAX_RETRIES
    _WRITE_RETRY_MIN_S = WRITE_RETRY_MIN_S
    _WRITE_RETRY_MAX_S = WRITE_RETRY_MAX_S
    _CHECKPOINT_EVERY_N_WRITES = CHECKPOINT_EVERY_N_WRITES

    def __init__(
        self,
        db_path: str | os.PathLike[str] | None = None,
        read_only: bool = False,
        *,
        write_timeout_s: float = WRITE_TIMEOUT_S,
        clock: Clock = system_clock,
    ) -> None:
        global _last_init_error
        try:
            self._is_read, self._write_timeout_s = read_only, checked_timeout("write_timeout_s", write_timeout_s)
            super().__init__(self._open(db_path, None), clock)
        except Exception as exc:
            _last_init_error = f"{type(exc).__name__}: {exc}"
            raise

    def _open(self, dsn: str | os.PathLike[str] | None, pool: Any) -> SqliteEngine:
        if pool is not None:
            raise InvalidValue("a file has no pool of connections", hint="initialize it with the path of the file")
        path = default_path() if dsn is None else checked_path(dsn)
        engine = SqliteEngine(path, read_only=self._is_read, write_timeout_s=self._write_timeout_s)
        self.db_path = path
        return engine

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.db_path)!r})"


def get_last_init_error() -> str | None:
    """The reason why a store could not be opened, the last time that happened in this process."""
    return _last_init_error


def format_session_db_unavailable(prefix: str = "Session database not available") -> str:
    """A sentence for the user: the store is not available, and why."""
    return f"{prefix}: {_last_init_error}." if _last_init_error else f"{prefix}."


def checked_path(db_path: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a database file, or raise `InvalidValue` if it cannot be one."""
    if not isinstance(db_path, str | os.PathLike):
        raise InvalidValue(f"db_path must be a path, not {type(db_path).__name__}")
    text = os.fspath(db_path)
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidValue(f"db_path must be a path: {text!r}")
    if text.startswith((":", "file:")):
        raise InvalidValue(f"{text!r} is not a path of a file", hint="use a file in a temporary directory")
    path = Path(text).expanduser().absolute()
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise InvalidValue(f"{str(path)!a} is not UTF-8, which SQLite requires", hint="rename it") from None
    return path
