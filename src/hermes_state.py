"""The documented import path of the session store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.errors import *  # noqa: F403
from hermes.errors import __all__ as _errors
from hermes.state.provider import default_path
from hermes.state.sqlite.provider import (
    SQLiteSessionDBProvider,
    format_session_db_unavailable,
    get_last_init_error,
)
from hermes.state.sqlite.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from hermes.state.asynchronous import AsyncSessionDB

DEFAULT_DB_PATH: Path

SessionDB = SQLiteSessionDBProvider

__all__ = [
    "DEFAULT_DB_PATH",
    "SCHEMA_VERSION",
    "AsyncSessionDB",
    "SessionDB",
    "format_session_db_unavailable",
    "get_last_init_error",
    *_errors,
]


def __getattr__(name: str) -> Any:
    # Asked for late, so that HERMES_HOME counts as it is now and not as it was at import.
    if name == "DEFAULT_DB_PATH":
        return default_path()
    if name == "AsyncSessionDB":
        # Late, because most programs have no event loop.
        from hermes.state.asynchronous import AsyncSessionDB

        return AsyncSessionDB
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
