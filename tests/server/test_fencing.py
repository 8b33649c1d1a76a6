"""Fenced views on servers: the check of the lease takes no round trip of its own, and broken connections do no harm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from hermes.errors import HermesError, StaleLease
from hermes.state.lanes.types import Lease
from hermes.state.mysql.connection.statements import DriverConnection as MySQLConnection
from hermes.state.mysql.connection.transaction import MySQLTransaction
from hermes.state.owner import EVERYBODY
from hermes.state.owner_view import OwnerView
from hermes.state.postgres.connection.pipeline import DriverConnection as PostgresConnection
from hermes.state.postgres.connection.transaction import PostgresTransaction
from hermes.state.server.provider import ServerProvider
from tests.server.test_lane_faults import BreakingLine
from tests.support.calls import WRITES, Sample
from tests.support.conversations import contents
from tests.support.lanes import KEY

CALLS = {name: call for name, call in WRITES.items() if hasattr(OwnerView, name)}


def take(store: ServerProvider[Any], node: str, seconds: float = 60.0) -> Lease:
    """Lease the lane for a node."""
    taken = store.turns.acquire(KEY, node, seconds)
    assert taken is not None
    return taken.lease


@pytest.fixture
def round_trips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that grows with every round trip."""
    counted: list[int] = []

    def counting(method: Callable[..., Any]) -> Callable[..., Any]:
        def count(*args: Any, **kwargs: Any) -> Any:
            counted.append(1)
            return method(*args, **kwargs)

        return count

    monkeypatch.setattr(PostgresConnection, "execute", counting(PostgresConnection.execute))
    monkeypatch.setattr(MySQLConnection, "_round_trip", counting(MySQLConnection._round_trip))
    return counted


def fill(store: ServerProvider[Any]) -> Sample:
    """Replace everything with a session `s` that has messages."""
    store.delete_sessions([row["id"] for row in store.list_sessions_rich(limit=None, include_children=True)])
    store.create_session("s", "cli")
    ids = [store.append_message("s", "user", text) for text in ("first", "second", "third")]
    return Sample(ids[1], {}, Path())


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_fenced_write_takes_no_more_round_trips(
    store: ServerProvider[Any], round_trips: list[int], name: str
) -> None:
    plain = store.for_owner(EVERYBODY)
    counts = []
    for view in (plain, plain.fenced(take(store, "n1"))):
        sample = fill(store)
        round_trips.clear()
        CALLS[name](cast(Any, view), sample)
        counts.append(len(round_trips))
    assert counts[1] <= counts[0]


def test_a_refused_message_takes_one_round_trip_and_a_rollback(
    store: ServerProvider[Any], round_trips: list[int]
) -> None:
    fill(store)
    fenced = store.for_owner(EVERYBODY).fenced(take(store, "n1", 0))
    take(store, "n2")
    round_trips.clear()
    with pytest.raises(StaleLease):
        fenced.append_message("s", "user", "late")
    assert len(round_trips) == 2


@pytest.mark.parametrize("uid", [None, "given"])
@pytest.mark.parametrize("is_after", [False, True])
def test_a_line_that_breaks_anywhere_loses_and_doubles_nothing(
    store: ServerProvider[Any], monkeypatch: pytest.MonkeyPatch, is_after: bool, uid: str | None
) -> None:
    sends = {kind: kind._send for kind in (PostgresTransaction, MySQLTransaction)}
    fenced = store.for_owner(EVERYBODY).fenced(take(store, "n1"))
    number, line = 0, BreakingLine(0, is_after=is_after)
    while line.has_broken:
        fill(store)
        number += 1
        line = BreakingLine(number, is_after=is_after)
        with monkeypatch.context() as patch:
            for kind, method in sends.items():
                patch.setattr(kind, "_send", line.around(method))
            fenced.append_message("s", "user", "fourth", uid=uid)
        assert contents(store.get_messages("s")) == ["first", "second", "third", "fourth"], number
    assert number > 1


def test_an_error_of_the_work_is_not_taken_for_a_lost_lease(store: ServerProvider[Any]) -> None:
    fenced = store.for_owner(EVERYBODY).fenced(take(store, "n1"))
    queries = {"postgresql": "SELECT 1 / COUNT(*) FROM sessions", "mysql": "SELECT 9223372036854775807 + 1"}
    with pytest.raises(HermesError) as caught:
        fenced._engine.write(lambda tx: (tx.rows("SELECT 1"), tx.rows(queries[fenced._engine.name])))
    assert not isinstance(caught.value, StaleLease)
