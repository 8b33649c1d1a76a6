"""Fresh stores, one way per engine: an engine joins the contract by adding a line to `ENGINES`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from hermes.clock import Clock
from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB


class Opener(Protocol):
    """Opens a store; the same name within a test means the same database."""

    def __call__(self, name: str = "main", *, read_only: bool = False) -> SessionDBProvider: ...


class Stores(Protocol):
    """Makes stores of one engine, for a whole run of tests."""

    def open(self, directory: Path, name: str, clock: Clock, *, read_only: bool) -> SessionDBProvider:
        """A store that belongs to one test's directory: empty at first, the same one for the same name."""
        ...


class SqliteStores:
    """Stores in files. Each begins as a copy of one empty store, which takes a quarter of the time of making one."""

    def __init__(self, directory: Path) -> None:
        self._empty = directory / "empty.db"
        SessionDB(self._empty).close()

    def open(self, directory: Path, name: str, clock: Clock, *, read_only: bool) -> SessionDBProvider:
        """A store in a file of the test's own directory."""
        path = directory / f"{name}.db"
        if not read_only and not path.exists():
            shutil.copyfile(self._empty, path)
        return SessionDB(path, read_only=read_only, clock=clock)


ENGINES: dict[str, Callable[[Path], Stores]] = {"sqlite": SqliteStores}
