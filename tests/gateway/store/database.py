"""A database that a test can take away, and a clock that it can set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hermes.errors import StoreUnavailable
from hermes.state.engine import Engine
from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB
from tests.support.clock import FakeClock


class Time(FakeClock):
    """A clock that only the test moves."""

    def pass_(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0) -> None:
        """Let time pass."""
        self.advance(seconds + 60 * minutes + 3600 * hours + 86_400 * days)


class Database:
    """Opens a SQLite store whose engine fails while the database is down."""

    def __init__(self, path: Path, time: Time) -> None:
        self.path = path
        self.time = time
        self.is_down = False
        self.writes_left: int | None = None
        """After so many writes the database goes down; None for never."""

    def open(self) -> SessionDBProvider:
        """Open the store, or raise while it is down."""
        self.check()
        store = SessionDB(self.path, clock=self.time)
        store._engine = _Switch(store._engine, self)
        return store

    def check(self) -> None:
        """Raise while the database is down."""
        if self.is_down:
            raise StoreUnavailable("the test has taken the database away")


class _Switch:
    """An engine that can be switched off."""

    def __init__(self, engine: Engine, database: Database) -> None:
        self._engine = engine
        self._database = database

    def write(self, *args: Any, **kwargs: Any) -> Any:
        self._database.check()
        left = self._database.writes_left
        if left is not None:
            self._database.is_down = left <= 0
            self._database.check()
            self._database.writes_left = left - 1
        return self._engine.write(*args, **kwargs)

    def read(self, *args: Any, **kwargs: Any) -> Any:
        self._database.check()
        return self._engine.read(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)
