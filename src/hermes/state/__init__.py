"""The session store: one set of operations over interchangeable database engines."""

from __future__ import annotations

from typing import Any

_MODULES = {
    "AsyncSessionDB": "hermes.state.asynchronous.session_db",
    "SessionDBProvider": "hermes.state.provider",
    "open_session_db": "hermes.state.provider",
    "SQLiteSessionDBProvider": "hermes.state.sqlite.provider",
    "PostgreSQLSessionDBProvider": "hermes.state.postgres.provider",
    "MySQLSessionDBProvider": "hermes.state.mysql.provider",
}

__all__ = [
    "AsyncSessionDB",
    "MySQLSessionDBProvider",
    "PostgreSQLSessionDBProvider",
    "SQLiteSessionDBProvider",
    "SessionDBProvider",
    "open_session_db",
]


def __getattr__(name: str) -> Any:
    # Late, because importing one module of this package must not import all of them.
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
