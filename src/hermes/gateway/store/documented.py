"""The documented internal helpers of a session store, for programs that were written for an index in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator, MutableMapping
from typing import Any

from hermes.gateway.entry import SessionEntry
from hermes.gateway.store.backend import LaneBackend, all_lanes
from hermes.gateway.store.base import StoreBase
from hermes.gateway.store.lane_entries import fields_from_entry
from hermes.state.lanes.types import Decision, Keep, LaneRow, NewSession, Start
from hermes.state.provider import SessionDBProvider


class DocumentedHelpers(StoreBase):
    """`_entries`, `_save` and `_ensure_loaded`, over the database."""

    @property
    def _entries(self) -> Entries:
        return Entries(self)

    @_entries.setter
    def _entries(self, entries: MutableMapping[str, SessionEntry]) -> None:
        view = Entries(self)
        for key in set(view) - set(entries):
            del view[key]
        view.update(entries)

    @property
    def _db(self) -> SessionDBProvider | None:
        return self._connection.database()

    @_db.setter
    def _db(self, db: SessionDBProvider | None) -> None:
        if db is None:
            self._connection.use_files()
        else:
            self._connection.use_database(db)

    @property
    def _lock(self) -> threading.RLock:
        return self._connection.mutex

    def _ensure_loaded(self) -> None:
        """Open the database, and import `sessions.json` if it has no lanes."""
        self._connection.database()

    _ensure_loaded_locked = _ensure_loaded

    def _save(self) -> None:
        """Store what callers have changed in entries, and write `sessions.json`."""
        self._handed_out.store_all()
        self._exporter.mark()
        self._exporter.flush()


class Entries(MutableMapping[str, SessionEntry]):
    """All lanes as a mapping; every access reads or writes the rows."""

    def __init__(self, store: StoreBase) -> None:
        self._store = store

    def __getitem__(self, key: str) -> SessionEntry:
        self._store._handed_out.store_changes(key)
        row = self._store._connection.run_lanes(lambda lanes: lanes.get(key))
        if row is None:
            raise KeyError(key)
        return self._store._handed_out.give(row, keep=True)

    def __setitem__(self, key: str, entry: SessionEntry) -> None:
        def choose(row: LaneRow | None, now: float) -> Decision:
            fields: Any = fields_from_entry(entry)
            if row is not None and row["session_id"] == entry.session_id:
                return Keep(fields, touch=False)
            source = entry.platform.value if entry.platform else "unknown"
            return Start(NewSession(entry.session_id, source, owner=key), fields, end_reason=None)

        self._store._connection.run_lanes(lambda lanes: lanes.resolve(key, choose))
        self._store._handed_out.follow(key, entry)
        self._store._exporter.mark()

    def __delitem__(self, key: str) -> None:
        def delete(lanes: LaneBackend) -> int:
            return lanes.prune(float(2**53), skip=lambda other: other != key)

        self._store._handed_out.forget(key)
        if not self._store._connection.run_lanes(delete):
            raise KeyError(key)
        self._store._exporter.mark()

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._store._connection.run_lanes(all_lanes)))

    def __len__(self) -> int:
        return self._store._connection.run_lanes(lambda lanes: lanes.count())
