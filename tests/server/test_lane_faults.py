"""A connection that breaks at any round trip of a message's way, before or after the server did its work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from hermes.errors import StaleLease, StoreUnavailable
from hermes.state.lanes.queue.leases import turn_of_one
from hermes.state.lanes.types import Keep, NewSession, Start
from hermes.state.mysql.connection.transaction import MySQLTransaction
from hermes.state.postgres.connection.transaction import PostgresTransaction
from hermes.state.provider import SessionDBProvider
from hermes.state.server.faults import ConnectionLost
from tests.support.lanes import KEY, accept, broken_rules, end_leases, reply

R = TypeVar("R")


class BreakingLine:
    """Breaks one round trip: the one with this number, before or after the server gets it."""

    def __init__(self, number: int, *, is_after: bool) -> None:
        self.number, self.is_after, self.seen = number, is_after, 0

    def around(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method that sends statements, over this line."""

        def send(*args: Any, **kwargs: Any) -> Any:
            self.seen += 1
            if self.seen != self.number:
                return method(*args, **kwargs)
            if self.is_after:
                method(*args, **kwargs)
            raise ConnectionLost("the line broke")

        return send

    @property
    def has_broken(self) -> bool:
        """Whether the round trip was reached."""
        return self.seen >= self.number


def insist(call: Callable[[], R]) -> R:
    """Call again if the result of a commit is not known, as a node does."""
    try:
        return call()
    except StoreUnavailable:
        return call()


def message_way(db: SessionDBProvider) -> None:
    """Take a message from the platform to a sent reply."""

    def decide(row: Any, _: float) -> Keep | Start:
        return Start(NewSession("s1", "telegram")) if row is None else Keep()

    insist(lambda: db.lanes.resolve(KEY, decide))
    insist(lambda: accept(db, "m1"))
    taken = insist(lambda: db.turns.claim_next("n1", choose=turn_of_one))
    if taken is None:
        # The claim was made, but its result was lost: the lease ends, and the message is claimed again.
        end_leases(db)
        taken = insist(lambda: db.turns.claim_next("n1", choose=turn_of_one))
    assert taken is not None
    assert taken.turn_id is not None
    lease, turn = taken.lease, taken.turn_id
    insist(lambda: db.turns.progress(lease, turn))
    insist(lambda: db.turns.finish(lease, turn, intents=[reply("r1")]))
    rows = insist(lambda: db.outbox.sending("n1"))
    if not rows:
        end_leases(db)
        rows = insist(lambda: db.outbox.sending("n1"))
    insist(lambda: db.outbox.sent(rows[0]["id"], rows[0]["attempts"]))
    with pytest.raises(StaleLease):
        db.turns.renew(lease)


@pytest.mark.parametrize("is_after", [False, True])
def test_a_line_that_breaks_anywhere_loses_and_doubles_nothing(
    store: SessionDBProvider, monkeypatch: pytest.MonkeyPatch, is_after: bool
) -> None:
    sends = {kind: kind._send for kind in (PostgresTransaction, MySQLTransaction)}
    number, line = 0, BreakingLine(0, is_after=is_after)
    while line.has_broken:
        number += 1
        line = BreakingLine(number, is_after=is_after)
        for kind, method in sends.items():
            monkeypatch.setattr(kind, "_send", line.around(method))
        message_way(store)
        for kind, method in sends.items():
            monkeypatch.setattr(kind, "_send", method)
        assert broken_rules(store) == []
        states = store._engine.read(lambda tx: tx.rows("SELECT state FROM inbox"))
        sent = store._engine.read(lambda tx: tx.rows("SELECT key_ref, state FROM outbox"))
        assert (states, sent) == ([("done",)], [("r1", "sent")]), number
        for table in ("lanes", "lane_queues", "inbox", "turns", "outbox", "sessions"):
            store._engine.write(lambda tx, table=table: tx.run(f"DELETE FROM {table}"))  # type: ignore[misc]
    assert number > 15
