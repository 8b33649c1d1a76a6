"""Failed work is retried only as long as that can help and time is left."""

from __future__ import annotations

from hermes.state.server.faults import Verdict
from hermes.state.server.retries import CONNECTIONS, LONG_S, LONGEST_RECONNECT_S, LOOKS, Attempts


def attempts() -> Attempts:
    """Return attempts until time 10, with the longest pauses."""
    return Attempts(deadline=10.0, chance=lambda: 1.0)


def test_hopeless_work_is_not_retried() -> None:
    assert attempts().pause(Verdict.NEVER, now=0.0) is None


def test_nothing_is_tried_after_the_deadline() -> None:
    for verdict in Verdict:
        assert attempts().pause(verdict, now=10.0) is None


def test_pauses_after_conflicts_grow() -> None:
    trying = attempts()
    pauses = [trying.pause(Verdict.RETRY_SOON, now=0.0) or 0.0 for _ in range(12)]
    assert pauses == sorted(pauses)
    assert pauses[0] > 0
    assert pauses[-1] == LONG_S


def test_pauses_are_spread_at_random() -> None:
    assert Attempts(deadline=10.0, chance=lambda: 0.0).pause(Verdict.RETRY_SOON, now=0.0) == 0.0


def test_retries_without_a_pause_are_limited() -> None:
    trying = attempts()
    assert [trying.pause(Verdict.RETRY_NOW, now=0.0) for _ in range(LOOKS)] == [0.0] * (LOOKS - 1) + [None]


def test_dead_connections_are_replaced_at_once_and_a_dead_server_gets_time() -> None:
    trying = attempts()
    pauses = [trying.pause(Verdict.RECONNECT, now=0.0) for _ in range(CONNECTIONS + 8)]
    assert pauses[:CONNECTIONS] == [0.0] * CONNECTIONS
    assert (pauses[CONNECTIONS] or 0.0) > 0
    assert pauses[-1] == LONGEST_RECONNECT_S
