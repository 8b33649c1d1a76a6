"""The wish that a call ends."""

from __future__ import annotations

import signal
from types import FrameType

from hermes.agent.models.model import Cancellation
from tests.fault.processes import Task
from tests.support.waiting import LIMIT_S, wait_until


def test_what_waits_is_closed_when_the_wish_comes() -> None:
    cancellation, closed = Cancellation(), []
    cancellation.on_cancel(lambda: closed.append(1))
    assert (cancellation.is_cancelled, closed) == (False, [])
    cancellation.cancel()
    assert (cancellation.is_cancelled, closed) == (True, [1])


def test_a_second_wish_closes_nothing_again() -> None:
    cancellation, closed = Cancellation(), []
    cancellation.on_cancel(lambda: closed.append(1))
    cancellation.cancel()
    cancellation.cancel()
    assert closed == [1]


def test_what_comes_after_the_wish_is_closed_at_once() -> None:
    cancellation, closed = Cancellation(), []
    cancellation.cancel()
    cancellation.on_cancel(lambda: closed.append(1))
    assert closed == [1]


def test_what_was_taken_back_is_not_closed() -> None:
    cancellation, closed = Cancellation(), []
    forget = cancellation.on_cancel(lambda: closed.append(1))
    forget()
    forget()
    cancellation.cancel()
    assert closed == []


def test_many_calls_leave_nothing_behind() -> None:
    cancellation = Cancellation()
    for _ in range(100):
        cancellation.wait(0)
    assert cancellation._callbacks == []


def test_waiting_ends_when_the_time_is_over() -> None:
    assert Cancellation().wait(0.01) is False


def test_waiting_ends_when_the_wish_comes() -> None:
    cancellation = Cancellation()
    waiting = Task(lambda: cancellation.wait(LIMIT_S * 10))
    wait_until(lambda: bool(cancellation._callbacks), "nobody waits")
    cancellation.cancel()
    assert waiting.result() is True


def test_a_signal_handler_may_wish_whatever_it_interrupts() -> None:
    cancellation, closed = Cancellation(), []

    def cancel(_number: int, _frame: FrameType | None) -> None:
        cancellation.cancel()

    before = signal.signal(signal.SIGUSR1, cancel)
    try:
        with cancellation._lock:
            signal.raise_signal(signal.SIGUSR1)
            cancellation.on_cancel(lambda: closed.append(1))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert closed == [1]
