"""Lanes and the sessions that they use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Unpack

from hermes.errors import Conflict, HermesError, InvalidValue
from hermes.state.engine import Reading, Transaction
from hermes.state.lanes.identity import require_name, short_form
from hermes.state.lanes.lane_rows import (
    SELECT,
    assignments,
    changed_row,
    encode_fields,
    lane_row,
    parse_cursor,
    read_lane,
    touched_fields,
)
from hermes.state.lanes.lane_sessions import add_session, import_lane, point_lane
from hermes.state.lanes.pruning import prune_lanes
from hermes.state.lanes.types import ImportedLane, Keep, Resolved, Start
from hermes.state.operations import (
    Operations,
    has_session,
    row_limit,
    unknown_session,
)
from hermes.state.owner import EVERYBODY, OwnerName, parse_asker
from hermes.state.rows import require_identifier, require_number

if TYPE_CHECKING:
    from hermes.state.lanes.types import Decide, LaneFields, LaneRow

IMPORTED = "lanes_imported"
"""The key of `state_meta` that says that lanes were imported once."""

_LOCK = "SELECT id AS locked FROM lanes WHERE id = :id {for_update}"
_READ = f"{SELECT} WHERE l.id = :locked"
_END = "UPDATE sessions SET ended_at = :now, end_reason = :reason WHERE id = :session AND ended_at IS NULL"


class Lanes(Operations):
    """Operations on lanes: which session each uses, and how it continues."""

    def get(self, key: str) -> LaneRow | None:
        """Return a lane, or None; this changes nothing."""
        lane_id = short_form(require_name(key, "key"))
        return self._engine.read(lambda tx: read_lane(tx, lane_id))

    def resolve(self, key: str, decide: Decide, *, now: float | None = None) -> Resolved:
        """Let `decide` choose between the lane's session and a new one, and store that, in one transaction.

        `decide` gets None for a lane that does not exist or whose session was deleted.
        """
        lane_id = short_form(require_name(key, "key"))
        moment = self._moment(now)

        def work(tx: Transaction) -> Resolved:
            row, is_stored = _lock(tx, lane_id)
            decision = decide(row, moment)
            if isinstance(decision, Keep):
                if row is None:
                    raise InvalidValue(f"there is no lane {key!r} to keep", hint="return Start for a new lane")
                touch = touched_fields(moment) if decision.touch else {}
                return Resolved(_change(tx, lane_id, row, {**touch, **decision.changes}), row, is_new_session=False)
            if not isinstance(decision, Start):
                raise InvalidValue(f"decide must return Keep or Start, not {type(decision).__name__}")
            if row is not None and decision.end_reason is not None:
                tx.send(_END, session=row["session_id"], reason=decision.end_reason, now=moment)
            add_session(tx, lane_id, decision.session, moment)
            point_lane(tx, key, decision.session.session_id, decision.fields, moment, is_stored=is_stored)
            return Resolved(_read(tx, lane_id), row, is_new_session=True)

        return self._engine.write(work)

    def update(
        self, key: str, *, now: float | None = None, touch: bool = True, **fields: Unpack[LaneFields]
    ) -> LaneRow | None:
        """Change columns of a lane and return it; None if there is none. `touch` notes activity at the time."""
        lane_id = short_form(require_name(key, "key"))
        touched = touched_fields(self._moment(now)) if touch else {}

        def work(tx: Transaction) -> LaneRow | None:
            row, _ = _lock(tx, lane_id)
            return None if row is None else _change(tx, lane_id, row, {**touched, **fields})

        return self._engine.write(work)

    def recent(
        self, *, active_since: float | None = None, after: str | None = None, limit: int | None = 100
    ) -> list[LaneRow]:
        """Return lanes, the most recently active first; `after` is the cursor of the last row of the page before."""
        since = -1e308 if active_since is None else require_number(active_since, "active_since")
        at, before = parse_cursor(after) or (1e308, "")
        most = row_limit(limit)
        sql = f"""{SELECT} WHERE l.expiry_finalized = :finalized AND l.updated_at >= :since AND l.updated_at <= :at
                  AND (l.updated_at < :at OR l.id < :before) ORDER BY l.updated_at DESC, l.id DESC LIMIT :most"""

        def work(tx: Reading) -> list[LaneRow]:
            # The index has the finalized lanes apart, because the search for expired ones skips them.
            pages = [tx.rows(sql, finalized=each, since=since, at=at, before=before, most=most) for each in (0, 1)]
            return [lane_row(row) for row in sorted(chain(*pages), key=_newest_first, reverse=True)[:most]]

        return self._engine.read(work)

    def find_by_session(self, session_id: str) -> LaneRow | None:
        """Return the lane that uses a session; the most recently active one, if there are several."""
        require_identifier(session_id, "session_id")
        sql = f"{SELECT} WHERE l.session_id = :session ORDER BY l.updated_at DESC, l.id LIMIT 1"
        row = self._engine.read(lambda tx: tx.row(sql, session=session_id))
        return None if row is None else lane_row(row)

    def idle(self, before: float, *, after: str | None = None, limit: int | None = 200) -> list[LaneRow]:
        """Return lanes that were last active before a time and are not finalized, the longest idle first."""
        moment = require_number(before, "before")
        at, last = parse_cursor(after) or (-1e308, "")
        sql = f"""{SELECT} WHERE l.expiry_finalized = 0 AND l.updated_at < :before AND l.updated_at >= :at
                  AND (l.updated_at > :at OR l.id > :last) ORDER BY l.updated_at, l.id LIMIT :most"""
        most = row_limit(limit)
        rows = self._engine.read(lambda tx: tx.rows(sql, before=moment, at=at, last=last, most=most))
        return [lane_row(row) for row in rows]

    def resume_candidates(
        self, marked_since: float | None = None, *, after: str | None = None, limit: int | None = 200
    ) -> list[LaneRow]:
        """Return lanes that have the mark of `mark_resume_pending` and are not suspended, by id.

        With a time, only those that were marked since; a lane without the time of its mark counts by its last activity.
        `after` is the cursor of the last row of the page before.
        """
        since = -1e308 if marked_since is None else require_number(marked_since, "marked_since")
        _, last = parse_cursor(after) or (0.0, "")
        sql = f"""{SELECT} WHERE l.resume_pending = 1 AND l.id > :last AND l.suspended = 0
                  AND COALESCE(l.last_resume_marked_at, l.updated_at) >= :since ORDER BY l.id LIMIT :most"""
        most = row_limit(limit)
        rows = self._engine.read(lambda tx: tx.rows(sql, last=last, since=since, most=most))
        return [lane_row(row) for row in rows]

    def count(self) -> int:
        """Return the number of lanes."""
        return int(self._engine.read(lambda tx: tx.value("SELECT COUNT(*) FROM lanes")))

    def suspend(self, key: str) -> bool:
        """Mark a lane so that its next message starts a new session; False if there is no such lane."""
        return self._set(key, "suspended = 1")

    def mark_resume_pending(self, key: str, reason: str, *, now: float | None = None) -> bool:
        """Mark a lane so that its session continues after a restart; False if it is unknown or suspended."""
        return self._set(
            key,
            "resume_pending = 1, resume_reason = :reason, last_resume_marked_at = :now",
            "AND suspended = 0",
            reason=require_identifier(reason, "reason"),
            now=self._moment(now),
        )

    def clear_resume_pending(self, key: str) -> bool:
        """Remove the mark of `mark_resume_pending`; False if there was none."""
        cleared = "resume_pending = 0, resume_reason = NULL, last_resume_marked_at = NULL"
        return self._set(key, cleared, "AND resume_pending = 1")

    def mark_recently_active(
        self, since: float, *, reason: str = "restart_interrupted", now: float | None = None
    ) -> int:
        """Mark the lanes that were active since a time as `mark_resume_pending` does; return how many.

        Lanes that are marked already keep their mark, and suspended ones stay as they are.
        """
        moment, oldest = self._moment(now), require_number(since, "since")
        require_identifier(reason, "reason")
        sql = """UPDATE lanes SET resume_pending = 1, resume_reason = :reason, last_resume_marked_at = :now
                 WHERE expiry_finalized IN (0, 1) AND updated_at >= :since AND suspended = 0 AND resume_pending = 0"""
        return self._engine.write(lambda tx: tx.run(sql, reason=reason, now=moment, since=oldest))

    def rebind(self, key: str, expected_session_id: str, session_id: str) -> bool:
        """Let a lane use another session, unless it uses another one than expected by now."""
        require_identifier(session_id, "session_id")

        def work(tx: Transaction) -> bool:
            if not has_session(tx, session_id, EVERYBODY):
                raise unknown_session(session_id)
            sql = "UPDATE lanes SET session_id = :session WHERE id = :id AND session_id = :expected"
            return tx.run(sql, id=lane_id, session=session_id, expected=expected_session_id) == 1

        lane_id = short_form(require_name(key, "key"))
        return self._engine.write(work)

    def switch(
        self,
        key: str,
        session_id: str,
        *,
        owner: OwnerName = None,
        end_reason: str = "session_switch",
        now: float | None = None,
    ) -> LaneRow | None:
        """Let a lane continue another session, and end the one it used; None if there is no such lane.

        Raise `UnknownSession` if the session does not exist or belongs to another owner than the given one.
        """
        lane_id, asker = short_form(require_name(key, "key")), parse_asker(owner)
        require_identifier(session_id, "session_id")
        moment = self._moment(now)

        def work(tx: Transaction) -> LaneRow | None:
            row, _ = _lock(tx, lane_id)
            if row is None:
                return None
            if not has_session(tx, session_id, asker):
                raise unknown_session(session_id)
            if row["session_id"] == session_id:
                return row
            tx.send(_END, session=row["session_id"], reason=end_reason, now=moment)
            tx.send("UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE id = :id", id=session_id)
            described: LaneFields = {
                "platform": row["platform"],
                "chat_type": row["chat_type"],
                "display_name": row["display_name"],
                "origin": row["origin"],
                "extra": row["extra"],
            }
            point_lane(tx, key, session_id, described, moment, is_stored=True)
            return _read(tx, lane_id)

        return self._engine.write(work)

    def prune(self, before: float, *, skip: Callable[[str], bool] | None = None) -> int:
        """Delete lanes that were last active before a time, but not their sessions; return how many.

        Suspended lanes stay, as do lanes with waiting or held messages or a lease, and those for whose key `skip`
        returns True.
        """
        return prune_lanes(self._engine, require_number(before, "before"), skip)

    def import_once(
        self,
        rows: Sequence[ImportedLane],
        *,
        now: float | None = None,
        reject: Callable[[ImportedLane, HermesError], None] | None = None,
    ) -> int | None:
        """Add lanes from a file, with their sessions, in one transaction; return how many.

        Return None and change nothing if there are lanes already or an import was done before. A session that exists
        stays as it is. With `reject`, a row with a bad value or the session of another owner is left out, and `reject`
        gets it, again if the transaction is retried; without, it raises.
        """
        moment = self._moment(now)

        def work(tx: Transaction) -> int | None:
            # The mark is inserted first: if two processes import at once, the second one waits for it, and retries.
            if tx.value('SELECT 1 FROM state_meta WHERE "key" = :key', key=IMPORTED):
                return None
            if tx.value("SELECT 1 FROM lanes LIMIT 1") is not None:
                return None
            tx.run('INSERT INTO state_meta ("key", value) VALUES (:key, :value)', key=IMPORTED, value=str(moment))
            added = 0
            for each in rows:
                try:
                    import_lane(tx, each, moment)
                except (InvalidValue, Conflict) as error:
                    if reject is None:
                        raise
                    reject(each, error)
                else:
                    added += 1
            return added

        return self._engine.write(work)

    def _moment(self, now: float | None) -> float:
        return self._clock() if now is None else require_number(now, "now")

    def _set(self, key: str, changes: str, condition: str = "", **values: Any) -> bool:
        lane_id = short_form(require_name(key, "key"))
        sql = f"UPDATE lanes SET {changes} WHERE id = :id {condition}"
        return self._engine.write(lambda tx: tx.run(sql, id=lane_id, **values) == 1)


def touch_lane(tx: Transaction, lane_id: str, fields: dict[str, Any]) -> None:
    """Change columns of a lane, if it exists, as part of a turn; `fields` are in their stored form."""
    tx.send(f"UPDATE lanes SET {assignments(tuple(fields))} WHERE id = :id", id=lane_id, **fields)


def _lock(tx: Transaction, lane_id: str) -> tuple[LaneRow | None, bool]:
    """Lock and return a lane, and whether it is stored: a lane without its session counts as none."""
    held, rows = tx.lock_and_read(_LOCK.format(for_update=tx.dialect.for_update), _READ, id=lane_id)
    return (lane_row(rows[0]) if rows else None), held is not None


def _change(tx: Transaction, lane_id: str, row: LaneRow, fields: LaneFields) -> LaneRow:
    if not fields:
        return row
    stored = encode_fields(fields)
    tx.send(f"UPDATE lanes SET {assignments(tuple(stored))} WHERE id = :id", id=lane_id, **stored)
    return changed_row(row, lane_id, fields)


def _read(tx: Reading, lane_id: str) -> LaneRow:
    row = read_lane(tx, lane_id)
    assert row is not None
    return row


def _newest_first(row: Sequence[Any]) -> tuple[float, str]:
    """The order of a list: by `updated_at`, then by id."""
    return row[4], row[0]
