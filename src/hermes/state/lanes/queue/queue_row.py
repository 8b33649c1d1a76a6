"""The row of a lane in `lane_queues`, locked: what waits in the lane, and which node has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hermes.errors import InvalidValue, StaleLease, StoreReadOnly
from hermes.state.engine import Dialect, Engine, Reading, Transaction, Values
from hermes.state.lanes.identity import short_form, stored_name
from hermes.state.lanes.types import Lease
from hermes.state.rows import decode_text, require_number

MAX_LEASE_S = 3_600.0
"""A lease that ends later than this from now was made before the clock of the database was set back."""

_COLUMNS = "session_key, waiting_id, waiting_count, ready_id, lease_until, lease_holder, lease_token, turn_id"
_SAVE = """UPDATE lane_queues SET waiting_id = :waiting_id, waiting_count = :waiting_count, ready_id = :ready_id,
               lease_until = :lease_until, lease_holder = :lease_holder, lease_token = :lease_token, turn_id = :turn_id
           WHERE lane_id = :lane"""
_INSERT = "INSERT INTO lane_queues (lane_id, session_key, lease_token) VALUES (:lane, :key, :token)"
_RECOUNT = "SELECT COUNT(*), MIN(id) FROM inbox WHERE lane_id = :lane AND is_open = 1 AND state = 'accepted'"
_FIRST = """SELECT id FROM inbox WHERE lane_id = :lane AND is_open = 1 AND state = 'accepted'
            ORDER BY id LIMIT 1"""
NOTHING = "SELECT 1"
"""A second query for operations that need only the locked row."""


@dataclass(slots=True)
class QueueRow:
    """A locked row; `save` stores its changes."""

    lane_id: str
    stored_key: str | None
    waiting_id: int
    waiting_count: int
    ready_id: int
    lease_until: float
    lease_holder: str | None
    lease_token: int
    turn_id: str | None
    now: float
    """The time of the database."""

    @property
    def session_key(self) -> str:
        """The key of the lane."""
        return self.lane_id if self.stored_key is None else str(decode_text(self.stored_key))

    @property
    def is_leased(self) -> bool:
        """Whether a node has the lane, and its lease has not ended."""
        return self.lease_holder is not None and not self.is_expired

    @property
    def is_expired(self) -> bool:
        """Whether the lease has ended, or ends so late that the clock must have been set back since."""
        return not self.now < self.lease_until <= self.now + MAX_LEASE_S

    @property
    def lease(self) -> Lease:
        """The lease of the present holder."""
        assert self.lease_holder is not None
        return Lease(self.session_key, self.lease_holder, self.lease_token, self.lease_until)

    def check(self, lease: Lease) -> None:
        """Raise `StaleLease` unless a lease is the present one; one that has ended counts until another node has it."""
        if self.lease_holder != lease.node or self.lease_token != lease.token:
            raise stale(lease)

    def lease_to(self, node: str, seconds: float) -> None:
        """Give the lane to a node."""
        self.lease_holder, self.lease_token = node, self.lease_token + 1
        self.lease_until, self.ready_id = self.now + seconds, 0

    def free(self, delay_s: float = 0.0) -> None:
        """Take the lane from its node; other nodes may take it if messages wait, after a delay."""
        self.lease_holder = self.turn_id = None
        is_resting = delay_s > 0 and self.waiting_count > 0
        self.lease_until = self.now + delay_s if is_resting else 0.0
        self.ready_id = 0 if is_resting else self.waiting_id

    def add_waiting(self, count: int, first_id: int) -> None:
        """Count messages that wait, of which the oldest is `first_id`."""
        self.waiting_id = min(self.waiting_id, first_id) if self.waiting_count else first_id
        self.waiting_count += count
        self.make_ready()

    def set_waiting(self, count: int, first_id: int | None) -> None:
        """Store how many messages wait, and the oldest of them."""
        self.waiting_count, self.waiting_id = count, first_id or 0
        self.make_ready()

    def remove_waiting(self, tx: Reading, message_ids: Sequence[int]) -> None:
        """Count messages that do not wait any more, without reading the others."""
        first_id = tx.value(_FIRST, lane=self.lane_id) if self.waiting_id in message_ids else self.waiting_id
        self.set_waiting(self.waiting_count - len(message_ids), first_id)

    def make_ready(self) -> None:
        """Let nodes take the lane if messages wait and no node has it."""
        self.ready_id = self.waiting_id if self.lease_until == 0 else 0

    def recount(self, tx: Reading) -> None:
        """Count the waiting messages."""
        count, first_id = tx.rows(_RECOUNT, lane=self.lane_id)[0]
        self.set_waiting(int(count), first_id)

    def save(self, tx: Transaction) -> None:
        """Store the row."""
        tx.send(
            _SAVE,
            lane=self.lane_id,
            waiting_id=self.waiting_id,
            waiting_count=self.waiting_count,
            ready_id=self.ready_id,
            lease_until=self.lease_until,
            lease_holder=self.lease_holder,
            lease_token=self.lease_token,
            turn_id=self.turn_id,
        )

    def notify(self, tx: Transaction, node: str | None = None) -> None:
        """Tell listening processes after the commit that messages wait, unless `node` has the lane itself."""
        sql = tx.dialect.notify_lanes
        if sql and self.waiting_count > 0 and (self.lease_holder is None or self.lease_holder != node):
            tx.send(sql, holder=self.lease_holder or "")


def lock_query(dialect: Dialect, condition: str = "lane_id = :lane", ending: str | None = None) -> str:
    """Return a query that locks one row and returns the fields of `QueueRow`."""
    end = dialect.for_update if ending is None else ending
    return f"SELECT lane_id AS locked, {_COLUMNS}, {dialect.now} AS now_s FROM lane_queues WHERE {condition} {end}"


def lock_queue(tx: Transaction, lane_id: str, read: str, /, **values: Any) -> tuple[QueueRow | None, list[Values]]:
    """Lock the row of a lane, if there is one, and return it with the rows of a query that may name `:locked`."""
    held, rows = tx.lock_and_read(lock_query(tx.dialect), read, lane=lane_id, **values)
    return (None if held is None else QueueRow(*held)), rows


def lock_for_lease(tx: Transaction, lease: Lease, read: str, /, **values: Any) -> tuple[QueueRow, list[Values]]:
    """Lock the row of a leased lane; the caller still has to check the lease."""
    queue, rows = lock_queue(tx, short_form(lease.session_key), read, **values)
    if queue is None:
        raise stale(lease)
    return queue, rows


def add_queue(tx: Transaction, key: str) -> None:
    """Insert the row of a lane; if another process inserts it at once, the transaction is retried."""
    tx.run(_INSERT, lane=short_form(key), key=stored_name(key), token=first_token(tx))


def first_token(tx: Reading) -> int:
    """Return the time in milliseconds as a token, so that the tokens of a lane that was pruned do not come again."""
    return int(float(tx.value(f"SELECT {tx.dialect.now}")) * 1000)


def stale(lease: Lease) -> StaleLease:
    """Return the error for a node that has lost its lease."""
    return StaleLease(
        f"node {lease.node!r} has lost the lease on {lease.session_key!r}",
        hint="stop; another node continues this lane",
    )


def require_lease_seconds(value: Any) -> float:
    """Return the length of a lease or of a delay; 0 is a lease that has ended."""
    seconds = require_number(value, "seconds")
    if not 0 <= seconds <= MAX_LEASE_S:
        raise InvalidValue(f"a lease or delay has 0 to {MAX_LEASE_S:g} seconds, not {seconds:g}")
    return seconds


def require_writable(engine: Engine) -> None:
    """Raise `StoreReadOnly` for an operation that first reads whether there is anything to write."""
    if engine.read_only:
        raise StoreReadOnly("this store was opened for reading only", hint="open it without read_only")


def require_lease(value: Any) -> Lease:
    """Return `value` if it is a lease."""
    if not isinstance(value, Lease):
        raise InvalidValue(f"lease must be a Lease, not {type(value).__name__}")
    return value
