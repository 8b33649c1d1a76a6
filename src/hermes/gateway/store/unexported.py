"""Lanes that have changed since the last export, so that they are known if the database goes away before the next."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hermes.state.lanes.types import LaneRow


class Unexported:
    """The latest rows of a process; an export empties it."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiting: dict[str, LaneRow] = {}
        self._exporting: dict[str, LaneRow] = {}

    def add(self, row: LaneRow) -> None:
        """Remember a row that has changed."""
        with self._mutex:
            self._waiting[row["session_key"]] = row

    def rows(self) -> dict[str, LaneRow]:
        """Return the rows that the file may not have."""
        with self._mutex:
            return {**self._exporting, **self._waiting}

    @contextmanager
    def exporting(self) -> Iterator[None]:
        """Forget the present rows if the export inside the block succeeds."""
        with self._mutex:
            self._exporting, self._waiting = {**self._exporting, **self._waiting}, {}
        yield
        with self._mutex:
            self._exporting = {}
