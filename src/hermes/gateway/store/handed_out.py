"""Entries that callers have.

An entry is a record that callers may change, for example to clear a flag that they have shown. What they change is
stored before the lane is used again.
"""

from __future__ import annotations

import weakref
from typing import Any

from hermes.errors import UnknownSession
from hermes.gateway.entry import COUNTERS, SessionEntry
from hermes.gateway.store.backend import LaneBackend, change_lane
from hermes.gateway.store.connection import Connection
from hermes.gateway.store.lane_entries import IMPORTED_COUNTERS, entry_from_row, fields_from_entry
from hermes.log import warn
from hermes.state.lanes.types import LaneRow

_BEFORE = "_before"


class HandedOut:
    """The latest entry of each lane that a caller still has."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._entries: weakref.WeakValueDictionary[str, SessionEntry] = weakref.WeakValueDictionary()
        self._kept: dict[str, SessionEntry] = {}
        self._followed: dict[str, SessionEntry] = {}

    def give(self, row: LaneRow, *, keep: bool = False) -> SessionEntry:
        """Return the entry of a row, and remember it as long as the caller has it.

        With `keep`, remember it until its changes are stored, because the caller changes it in the same expression.
        """
        entry = entry_from_row(row)
        self.adopt(row["session_key"], entry)
        if keep:
            self._kept[row["session_key"]] = entry
        return entry

    def adopt(self, key: str, entry: SessionEntry) -> None:
        """Remember the entry of a caller, which is stored as it is."""
        setattr(entry, _BEFORE, _values(entry))
        self._entries[key] = entry

    def follow(self, key: str, entry: SessionEntry) -> None:
        """Adopt an entry that also shows later changes of its lane, like an entry of an index in memory."""
        self.adopt(key, entry)
        self._followed[key] = entry

    def refresh(self, key: str | None = None) -> None:
        """Update the followed entry of a lane, or of all, unless the lane has another session by now."""
        for name, entry in list(self._followed.items()):
            if key is None or name == key:
                self._refresh(name, entry)

    def store_changes(self, key: str) -> bool:
        """Store what the caller has changed in the entry of a lane; return whether there was anything."""
        entry = self._entries.get(key)
        self._kept.pop(key, None)
        if entry is None:
            return False
        before, after = vars(entry)[_BEFORE], _values(entry)
        if after == before:
            return False
        setattr(entry, _BEFORE, after)
        names = {name for name, value in after.items() if value != before[name]}
        self._connection.run_lanes(lambda lanes: _store(lanes, key, entry, names, before["session_id"]))
        return True

    def store_all(self) -> bool:
        """Store the changes in all entries."""
        changed = [key for key in list(self._entries) if self.store_changes(key)]
        return bool(changed)

    def _refresh(self, key: str, entry: SessionEntry) -> None:
        row = self._connection.run_lanes(lambda lanes: lanes.get(key))
        if row is None or row["session_id"] != entry.session_id:
            del self._followed[key]
        else:
            vars(entry).update(vars(entry_from_row(row)))
            setattr(entry, _BEFORE, _values(entry))

    def forget(self, key: str) -> None:
        """Do not store later changes of an entry."""
        for entries in (self._entries, self._kept, self._followed):
            entries.pop(key, None)


def _values(entry: SessionEntry) -> dict[str, Any]:
    return {name: value for name, value in vars(entry).items() if name != _BEFORE}


def _store(lanes: LaneBackend, key: str, entry: SessionEntry, names: set[str], session_id: str) -> None:
    wanted: dict[str, Any] = dict(fields_from_entry(entry))
    fields: Any = {name: wanted[name] for name in names if name in wanted}
    if names & set(COUNTERS):
        row = lanes.get(key)
        counters = {name: getattr(entry, name) for name in COUNTERS}
        fields["extra"] = {**(row["extra"] if row else {}), IMPORTED_COUNTERS: counters}
    if fields:
        # The entry of a session that the lane has left says nothing about the next one.
        change_lane(lanes, key, fields, lambda row: row["session_id"] == session_id)
    if "session_id" in names:
        try:
            lanes.rebind(key, session_id, entry.session_id)
        except UnknownSession as error:
            warn(__name__, "the lane %s keeps its session: %s", key, error)
