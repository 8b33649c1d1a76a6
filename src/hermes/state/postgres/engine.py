"""PostgreSQL as an engine of the session store."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hermes.state import loop_guard
from hermes.state.engine import Capability, Guard, Index, LaneListener, Maintenance, Values
from hermes.state.operations import owner_condition
from hermes.state.postgres.backend import PostgresBackend
from hermes.state.postgres.connection.transaction import PostgresTransaction
from hermes.state.postgres.search.indexing import Batch, Indexer
from hermes.state.postgres.single_append import append_statement, find_message
from hermes.state.server.faults import CommitUnknown
from hermes.state.server.search.background_index import IndexedEngine
from hermes.state.sessions.records import activity_tick

if TYPE_CHECKING:
    from hermes.config import SessionDBConfig
    from hermes.state.owner import Asker
    from hermes.state.rows import Row
    from hermes.state.server.retries import Attempts


class PostgresEngine(IndexedEngine[PostgresTransaction, Batch]):
    """One database, as one store uses it."""

    name = "postgresql"

    def __init__(self, backend: PostgresBackend, settings: SessionDBConfig, *, read_only: bool) -> None:
        super().__init__(backend, Indexer(), read_only=read_only, write_timeout_s=settings.write_timeout_s)
        self._database = backend
        self._schema = settings.schema

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The capabilities that not every store has."""
        parts = {Capability.PARTS} if self._database.status.has_trigrams else set()
        return frozenset({Capability.SERVER, *parts})

    def append_alone(
        self, session_id: str, values: Row, preview: str | None, asker: Asker, /, guards: Sequence[Guard] = ()
    ) -> int | None:
        """Store a message in one round trip and return its id; None if it needs a transaction of several statements."""
        if loop_guard.is_on:
            loop_guard.refuse_on_loop("append")
        self._require_open()
        # A pooler may keep the statement waiting for a connection to the server, without saying so.
        if self.read_only or self._database.server.is_behind_pooler or self._transaction_of_this_thread() is not None:
            return None
        tick = activity_tick(values["timestamp"])
        bound = {**values, "session_id": session_id, "preview": preview, "tick": tick, "whose": asker.stored}
        sql = append_statement(tuple(values), owner_condition(asker))
        rows = self._attempt(lambda attempts: self._append_once(sql, bound, guards, attempts), self._write_timeout_s)
        if rows is None:
            rows = self.write(lambda tx: find_message(tx, session_id, values["uid"]))
        if not rows:
            return None
        number: int = rows[0][0]
        self._after_messages(number)
        return number

    def _append_once(self, sql: str, values: Row, guards: Sequence[Guard], attempts: Attempts) -> list[Values] | None:
        """Execute the guards and a statement as a transaction; None if it is not known whether it was committed."""
        tx = self.backend.acquire(attempts.deadline)
        try:
            tx.begin(read_only=False, timeout_s=self._write_timeout_s)
            for guard in guards:
                tx.require(guard)
            return tx.run_and_commit(sql, **values)
        except CommitUnknown:
            return None
        finally:
            tx.roll_back()
            self.backend.release(tx)

    @cached_property
    def index(self) -> Index:
        """The search index."""
        from hermes.state.postgres.search.index import PostgresIndex

        return PostgresIndex()

    @cached_property
    def maintenance(self) -> Maintenance:
        """Maintenance operations: merge the index, compact, erase."""
        from hermes.state.postgres.maintenance import PostgresMaintenance

        return PostgresMaintenance(self.read, self.catch_up, self._database.run_alone)

    def listen_lanes(self, node: str, /) -> LaneListener | None:
        """A listener with a connection of its own; none behind a pooler, or for a pool that the caller passed in."""
        if loop_guard.is_on:
            loop_guard.refuse_on_loop("listen")
        self._require_open()
        if self._database.server.is_behind_pooler or not self._database.pool.can_connect_alone:
            return None
        from hermes.state.postgres.connection.listener import PostgresLaneListener

        return PostgresLaneListener(self._database.pool, self._schema, node)

    def describe(self) -> dict[str, Any]:
        """The state of the server, of the connections to it and of the index."""
        return {
            "database": self._database.where,
            "server": self._database.server.name,
            "is_behind_pooler": self._database.server.is_behind_pooler,
            "pool": self._database.pool.stats(),
            "waiting_for_index": self.waiting_for_index(),
        }
