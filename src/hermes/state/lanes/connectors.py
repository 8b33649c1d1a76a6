"""Connector leases: one node at a time polls an account that allows only one poller."""

from __future__ import annotations

from hermes.errors import StaleLease
from hermes.state.engine import Reading, Transaction, Values
from hermes.state.lanes.identity import require_name, short_form, stored_name
from hermes.state.lanes.queue.queue_row import MAX_LEASE_S, require_lease_seconds, require_writable
from hermes.state.lanes.types import ConnectorLease
from hermes.state.operations import Operations
from hermes.state.rows import require_identifier

LEASE_S = 60.0

_READ = "SELECT holder, token, lease_until, {now} FROM connector_leases WHERE id = :id"
_INSERT = """INSERT INTO connector_leases (id, name, holder, token, lease_until)
             VALUES (:id, :name, :holder, :token, :until)"""
_HELD_BY = "SELECT id FROM connector_leases WHERE holder = :holder LIMIT 1"
_END = "UPDATE connector_leases SET holder = NULL, lease_until = 0 WHERE holder = :holder"
_UPDATE = "UPDATE connector_leases SET holder = :holder, token = :token, lease_until = :until WHERE id = :id"


class Connectors(Operations):
    """Operations on connector leases."""

    def acquire(self, name: str, node: str, lease_seconds: float = LEASE_S) -> ConnectorLease | None:
        """Lease a connector; None while a node has it."""
        connector, holder = short_form(require_name(name, "name")), require_identifier(node, "node")
        seconds = require_lease_seconds(lease_seconds)

        def work(tx: Transaction) -> ConnectorLease | None:
            row = _lock(tx, connector)
            if row is not None and _is_held(row):
                return None
            now = float(tx.value(f"SELECT {tx.dialect.now}")) if row is None else row[3]
            # The first token is the time, so that the tokens of a deleted row do not come again.
            lease = ConnectorLease(name, holder, int(now * 1000) if row is None else row[1] + 1, now + seconds)
            # Without a row nothing is locked: if two callers insert at once, the second one retries.
            values = {"id": connector, "holder": holder, "token": lease.token, "until": lease.until}
            tx.run(_INSERT, name=stored_name(name), **values) if row is None else tx.run(_UPDATE, **values)
            return lease

        return self._engine.write(work)

    def renew(self, lease: ConnectorLease, lease_seconds: float = LEASE_S) -> ConnectorLease:
        """Extend a lease; raise `StaleLease` if another node has it."""
        seconds = require_lease_seconds(lease_seconds)

        def work(tx: Transaction) -> ConnectorLease:
            row = _lock(tx, short_form(lease.name))
            if row is None or (row[0], row[1]) != (lease.holder, lease.token):
                raise StaleLease(f"node {lease.holder!r} has lost the connector {lease.name!r}", hint="stop polling")
            renewed = ConnectorLease(lease.name, lease.holder, lease.token, row[3] + seconds)
            tx.run(_UPDATE, id=short_form(lease.name), holder=lease.holder, token=lease.token, until=renewed.until)
            return renewed

        return self._engine.write(work)

    def release(self, lease: ConnectorLease) -> bool:
        """Give a connector back; False if another node has it."""
        sql = """UPDATE connector_leases SET holder = NULL, lease_until = 0
                 WHERE id = :id AND holder = :holder AND token = :token"""
        values = {"id": short_form(lease.name), "holder": lease.holder, "token": lease.token}
        return self._engine.write(lambda tx: tx.run(sql, **values) == 1)

    def end_leases(self, holder: str) -> int:
        """End the leases of a node that is known to be dead, so that others can poll at once; return how many.

        This writes nothing if the node has none.
        """
        values = {"holder": require_identifier(holder, "holder")}
        require_writable(self._engine)
        if self._engine.read(lambda tx: tx.row(_HELD_BY, **values)) is None:
            return 0
        return self._engine.write(lambda tx: tx.run(_END, **values))

    def holder(self, name: str) -> ConnectorLease | None:
        """Return the lease of the node that has a connector; None if no node has it."""
        connector = short_form(require_name(name, "name"))

        def work(tx: Reading) -> ConnectorLease | None:
            row = tx.row(_READ.format(now=tx.dialect.now), id=connector)
            return ConnectorLease(name, row[0], row[1], row[2]) if row is not None and _is_held(row) else None

        return self._engine.read(work)


def _lock(tx: Transaction, connector: str) -> Values | None:
    return tx.row(f"{_READ.format(now=tx.dialect.now)} {tx.dialect.for_update}", id=connector)


def _is_held(row: Values) -> bool:
    """Whether a node has the lease; one that ends very late was made before the clock was set back."""
    holder, _, until, now = row
    return holder is not None and now < until <= now + MAX_LEASE_S
