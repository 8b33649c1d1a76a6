"""The records of turns: what runs, and how turns ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.state.lanes.identity import require_name, short_form
from hermes.state.lanes.queue.message_rows import TURN, turn_row
from hermes.state.lanes.retention import sweep_rows
from hermes.state.operations import Operations, row_limit

if TYPE_CHECKING:
    from hermes.state.lanes.types import TurnRow


class TurnRecords(Operations):
    """Operations that return and remove the records of turns."""

    def get(self, turn_id: str) -> TurnRow | None:
        """Return a turn, or None."""
        row = self._engine.read(lambda tx: tx.row(f"SELECT {TURN} FROM turns WHERE turn_id = :turn", turn=turn_id))
        return None if row is None else turn_row(row)

    def history(self, key: str, *, limit: int | None = 20) -> list[TurnRow]:
        """Return the turns of a lane, newest first."""
        sql = f"SELECT {TURN} FROM turns WHERE lane_id = :lane ORDER BY id DESC LIMIT :most"
        lane_id, most = short_form(require_name(key, "key")), row_limit(limit)
        return [turn_row(row) for row in self._engine.read(lambda tx: tx.rows(sql, lane=lane_id, most=most))]

    def running(self, *, limit: int | None = 100) -> list[TurnRow]:
        """Return the turns that run, also those of nodes whose lease has ended, the first lease to end first."""
        columns = ", ".join(f"t.{name.strip()}" for name in TURN.split(","))
        sql = f"""SELECT {columns} FROM lane_queues q JOIN turns t ON t.turn_id = q.turn_id
                  WHERE q.lease_until > 0 ORDER BY q.lease_until, q.lane_id LIMIT :most"""
        most = row_limit(limit)
        return [turn_row(row) for row in self._engine.read(lambda tx: tx.rows(sql, most=most))]

    def sweep(self, older_than_s: float, *, limit: int = 500) -> int:
        """Remove up to `limit` turns that ended longer ago than this, and return how many."""
        return sweep_rows(self._engine, "turns", "started_at", older_than_s, limit)
