"""Lanes without a database: those of `sessions.json`, and their changes in the journal."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Unpack, cast

from hermes.clock import Clock
from hermes.errors import InvalidValue, StoreUnavailable
from hermes.gateway.config import GatewayConfig
from hermes.gateway.entry import COUNTERS
from hermes.gateway.store.files.journal import Journal, LockedJournal, Record
from hermes.gateway.store.files.sessions_file import load_entries
from hermes.gateway.store.lane_entries import IMPORTED_COUNTERS, fields_from_entry
from hermes.state.lanes.lane_rows import touched_fields
from hermes.state.lanes.types import Decide, Keep, LaneFields, LaneRow, NewSession, Resolved, Start
from hermes.state.owner import OwnerName

_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("platform", "display_name", "origin", "resume_reason", "last_resume_marked_at")),
    **dict.fromkeys(("auto_reset_reason", "estimated_cost_usd", "cost_status", "owner", "ended_at")),
    **dict.fromkeys(("suspended", "resume_pending", "is_fresh_reset", "was_auto_reset"), False),
    **dict.fromkeys(("reset_had_activity", "expiry_finalized"), False),
    **dict.fromkeys(("last_prompt_tokens", "expiry_failures", "restart_count", "message_count"), 0),
    **dict.fromkeys(("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"), 0),
    "chat_type": "dm",
}
OWN_COLUMNS = tuple(LaneFields.__annotations__)


class DatabaseIsBack(Exception):
    """The database has returned while an operation waited for the journal."""


class FileLanes:
    """The lanes of a store whose database is unavailable; raises `DatabaseIsBack` when it is not any more."""

    def __init__(
        self,
        sessions_dir: Path,
        config: GatewayConfig,
        journal: Journal,
        clock: Clock,
        unexported: Callable[[], Mapping[str, LaneRow]],
        is_needed: Callable[[], bool],
    ) -> None:
        self._sessions_dir = sessions_dir
        self._config = config
        self._journal = journal
        self._clock = clock
        self._unexported = unexported
        self._is_needed = is_needed
        self._mutex = threading.RLock()
        self._rows: dict[str, LaneRow] | None = None
        self._position = (b"", 0)

    def get(self, key: str) -> LaneRow | None:
        """Return a lane, or None."""
        with self._current() as (rows, _):
            return _copy(rows.get(key))

    def resolve(self, key: str, decide: Decide, *, now: float | None = None) -> Resolved:
        """Let `decide` choose between the lane's session and a new one, and store that."""
        moment = self._clock() if now is None else now
        with self._current() as (rows, journal):
            before = _copy(rows.get(key))
            decision = decide(before, moment)
            if isinstance(decision, Keep):
                if before is None:
                    raise InvalidValue(f"there is no lane {key!r} to keep", hint="return Start for a new lane")
                touched = touched_fields(moment) if decision.touch else {}
                row = self._store(journal, {**before, **touched, **decision.changes})
                return Resolved(row, before, is_new_session=False)
            row = self._start(journal, key, before, decision, moment)
            return Resolved(row, before, is_new_session=True)

    def update(
        self, key: str, *, now: float | None = None, touch: bool = True, **fields: Unpack[LaneFields]
    ) -> LaneRow | None:
        """Change columns of a lane and return it; None if there is none."""
        touched = touched_fields(self._clock() if now is None else now) if touch else {}
        with self._current() as (rows, journal):
            row = rows.get(key)
            return None if row is None else self._store(journal, {**row, **touched, **fields})

    def recent(
        self, *, active_since: float | None = None, after: str | None = None, limit: int | None = 100
    ) -> list[LaneRow]:
        """Return a page of lanes, the most recently active first."""
        with self._current() as (rows, _):
            chosen = [row for row in rows.values() if active_since is None or row["updated_at"] >= active_since]
        chosen.sort(key=_place, reverse=True)
        last = None if after is None else tuple(json.loads(after))
        return [_cursor(row) for row in chosen if last is None or _place(row) < last][:limit]

    def find_by_session(self, session_id: str) -> LaneRow | None:
        """Return the lane that uses a session."""
        with self._current() as (rows, _):
            using = [row for row in rows.values() if row["session_id"] == session_id]
        return _copy(max(using, key=_place, default=None))

    def idle(self, before: float, *, after: str | None = None, limit: int | None = 200) -> list[LaneRow]:
        """Return a page of lanes that were last active before a time and are not finalized."""
        with self._current() as (rows, _):
            chosen = [row for row in rows.values() if row["updated_at"] < before and not row["expiry_finalized"]]
        chosen.sort(key=_place)
        last = None if after is None else tuple(json.loads(after))
        return [_cursor(row) for row in chosen if last is None or _place(row) > last][:limit]

    def resume_candidates(
        self, marked_since: float | None = None, *, after: str | None = None, limit: int | None = 200
    ) -> list[LaneRow]:
        """Return a page of lanes that are marked to continue after a restart and not suspended, by id."""
        with self._current() as (rows, _):
            marked = [row for row in rows.values() if row["resume_pending"] and not row["suspended"]]
        last = "" if after is None else json.loads(after)[1]
        chosen = [
            row
            for row in sorted(marked, key=lambda row: row["session_key"])
            if row["session_key"] > last and (marked_since is None or _marked_at(row) >= marked_since)
        ]
        return [_cursor(row) for row in chosen][:limit]

    def count(self) -> int:
        """Return the number of lanes."""
        with self._current() as (rows, _):
            return len(rows)

    def suspend(self, key: str) -> bool:
        """Mark a lane so that its next message starts a new session."""
        return self.update(key, touch=False, suspended=True) is not None

    def mark_resume_pending(self, key: str, reason: str, *, now: float | None = None) -> bool:
        """Mark a lane so that its session continues after a restart; False if it is unknown or suspended."""
        row = self.get(key)
        if row is None or row["suspended"]:
            return False
        at = self._clock() if now is None else now
        marked = self.update(key, touch=False, resume_pending=True, resume_reason=reason, last_resume_marked_at=at)
        return marked is not None

    def clear_resume_pending(self, key: str) -> bool:
        """Remove that mark; False if there is none."""
        row = self.get(key)
        if row is None or not row["resume_pending"]:
            return False
        self.update(key, touch=False, resume_pending=False, resume_reason=None, last_resume_marked_at=None)
        return True

    def mark_recently_active(
        self, since: float, *, reason: str = "restart_interrupted", now: float | None = None
    ) -> int:
        """Mark all lanes that were active since a time and are neither marked nor suspended; return how many."""
        rows = [row for row in self.recent(active_since=since, limit=None) if not row["resume_pending"]]
        return sum(self.mark_resume_pending(row["session_key"], reason, now=now) for row in rows)

    def rebind(self, key: str, expected_session_id: str, session_id: str) -> bool:
        """Raise, because the session cannot be checked."""
        raise _impossible("a lane cannot use a compressed session")

    def switch(
        self,
        key: str,
        session_id: str,
        *,
        owner: OwnerName = None,
        end_reason: str = "session_switch",
        now: float | None = None,
    ) -> LaneRow | None:
        """Raise, because the session cannot be checked, unless the lane is unknown or uses it already."""
        row = self.get(key)
        if row is None or row["session_id"] == session_id:
            return row
        raise _impossible("a lane cannot switch to another session")

    def prune(self, before: float, *, skip: Callable[[str], bool] | None = None) -> int:
        """Delete lanes that were last active before a time; suspended ones and those that `skip` names stay."""
        with self._current() as (rows, _):
            old = [row for row in rows.values() if row["updated_at"] < before and not row["suspended"]]
        keys = [row["session_key"] for row in old if skip is None or not skip(row["session_key"])]
        if keys:
            with self._current() as (rows, journal):
                record = {"kind": "pruned", "before": before, "keys": keys}
                self._append(journal, record)
                _apply(rows, record)
        return len(keys)

    def note_message(self, session_id: str, record: Record) -> None:
        """Store a record about a transcript in the journal, and count a message."""
        with self._current() as (rows, journal):
            for row in rows.values():
                if row["session_id"] == session_id and record["kind"] == "message":
                    row["message_count"] += 1
            self._append(journal, record)

    def forget(self) -> None:
        """Read the files again at the next use, because the database has served in between."""
        with self._mutex:
            self._rows = None

    def _start(self, journal: LockedJournal, key: str, before: LaneRow | None, decision: Start, now: float) -> LaneRow:
        session = decision.session
        fresh = {**_DEFAULTS, "extra": {}, "created_at": now, "updated_at": now, **decision.fields}
        fresh |= {"session_key": key, "session_id": session.session_id, "owner": session.owner}
        ended = [before["session_id"], decision.end_reason] if before and decision.end_reason else None
        return self._store(journal, fresh, session, ended)

    def _store(
        self,
        journal: LockedJournal,
        row: Any,
        session: NewSession | None = None,
        ended: list[str] | None = None,
    ) -> LaneRow:
        record = {
            "kind": "lane",
            "session_key": row["session_key"],
            "session_id": row["session_id"],
            "fields": {name: row[name] for name in OWN_COLUMNS},
            "session": asdict(session) if session else None,
            "ended": ended,
        }
        self._append(journal, record)
        assert self._rows is not None
        stored = self._rows[row["session_key"]] = _cursor(cast("LaneRow", row))
        return _cursor(stored)

    def _append(self, journal: LockedJournal, record: Record) -> None:
        position = journal.append(record)
        self._position = (journal.name, position)

    @contextmanager
    def _current(self) -> Iterator[tuple[dict[str, LaneRow], LockedJournal]]:
        """Yield the lanes with all changes of other processes, and the locked journal."""
        with self._mutex, self._journal.locked() as journal:
            if not self._is_needed():
                journal.delete_if_empty()
                raise DatabaseIsBack
            name, position = self._position
            if self._rows is None or name != journal.name:
                self._rows, position = self._read_file(), 0
            records, position = journal.read(position)
            for record in records:
                with suppress(KeyError, TypeError):  # a damaged record, which the replay sets aside
                    _apply(self._rows, record)
            self._position = (journal.name, position)
            yield self._rows, journal

    def _read_file(self) -> dict[str, LaneRow]:
        rows: dict[str, LaneRow] = {}
        for key, entry in load_entries(self._sessions_dir, self._config).items():
            counters = {name: getattr(entry, name) for name in COUNTERS}
            row: Any = {**_DEFAULTS, "extra": {IMPORTED_COUNTERS: counters}, **_as_dict(fields_from_entry(entry))}
            row |= {"session_key": key, "session_id": entry.session_id}
            rows[key] = _cursor(row)
        for key, newer in self._unexported().items():
            if key not in rows or rows[key]["updated_at"] <= newer["updated_at"]:
                rows[key] = _cursor(newer)
        return rows


def _apply(rows: dict[str, LaneRow], record: Record) -> None:
    """Repeat in memory what another process has stored, or this one before a restart."""
    if record["kind"] == "message":
        for row in rows.values():
            if row["session_id"] == record["session_id"]:
                row["message_count"] += 1
    if record["kind"] == "pruned":
        for key in record["keys"]:
            if key in rows and rows[key]["updated_at"] < record["before"]:
                del rows[key]
    if record["kind"] != "lane":
        return
    key, session = record["session_key"], record["session"]
    before: Any = rows.get(key) if session is None else None
    changed: Any = {**(before or _DEFAULTS), **record["fields"], "session_key": key, "session_id": record["session_id"]}
    if session is not None:
        changed["owner"] = session["owner"]
    rows[key] = _cursor(changed)


def _as_dict(fields: LaneFields) -> dict[str, Any]:
    return cast("dict[str, Any]", fields)


def _place(row: LaneRow) -> tuple[float, str]:
    return row["updated_at"], row["session_key"]


def _marked_at(row: LaneRow) -> float:
    """The time of the mark of a lane; without it, of its last activity."""
    marked = row["last_resume_marked_at"]
    return row["updated_at"] if marked is None else marked


def _cursor(row: LaneRow) -> LaneRow:
    """Return a copy of a row with its place in lists."""
    return cast("LaneRow", {**row, "cursor": json.dumps(_place(row))})


def _copy(row: LaneRow | None) -> LaneRow | None:
    return None if row is None else _cursor(row)


def _impossible(problem: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"{problem} while the database is unavailable", hint="try again when the database works again"
    )
