"""Work is tried again as often as that can help, and no longer than it may take."""

from __future__ import annotations

from hermes.state.server.faults import Verdict
from hermes.state.server.retries import CONNECTIONS, LONG_S, LONGEST_RECONNECT_S, LOOKS, Attempts


def attempts() -> Attempts:
    """Attempts until the moment 10, always as late as may be."""
    return Attempts(deadline=10.0, chance=lambda: 1.0)


def test_what_cannot_succeed_is_not_tried_again() -> None:
    assert attempts().pause(Verdict.NEVER, now=0.0) is None


def test_nothing_is_tried_after_the_deadline() -> None:
    for verdict in Verdict:
        assert attempts().pause(verdict, now=10.0) is None


def test_who_was_in_the_way_is_given_more_and_more_time() -> None:
    trying = attempts()
    pauses = [trying.pause(Verdict.RETRY_SOON, now=0.0) or 0.0 for _ in range(12)]
    assert pauses == sorted(pauses)
    assert pauses[0] > 0
    assert pauses[-1] == LONG_S


def test_pauses_are_spread_at_random() -> None:
    assert Attempts(deadline=10.0, chance=lambda: 0.0).pause(Verdict.RETRY_SOON, now=0.0) == 0.0


def test_another_look_is_taken_at_once_but_not_forever() -> None:
    trying = attempts()
    assert [trying.pause(Verdict.RETRY_NOW, now=0.0) for _ in range(LOOKS)] == [0.0] * (LOOKS - 1) + [None]


def test_dead_connections_are_passed_over_at_once_and_a_dead_server_is_waited_for() -> None:
    trying = attempts()
    pauses = [trying.pause(Verdict.RECONNECT, now=0.0) for _ in range(CONNECTIONS + 8)]
    assert pauses[:CONNECTIONS] == [0.0] * CONNECTIONS
    assert (pauses[CONNECTIONS] or 0.0) > 0
    assert pauses[-1] == LONGEST_RECONNECT_S
