"""The cancellation of a call."""

from __future__ import annotations

import signal
from types import FrameType

from hermes.agent.models.model import Cancellation
from tests.fault.processes import Task
from tests.support.waiting import LIMIT_S, wait_until


def test_registered_callback_is_called_on_cancel() -> None:
    cancellation, closed = Cancellation(), []
    cancellation.on_cancel(lambda: closed.append(1))
    assert (cancellation.is_cancelled, closed) == (False, [])
    cancellation.cancel()
    assert (cancellation.is_cancelled, closed) == (True, [1])


def test_second_cancel_calls_nothing_again() -> None:
    cancellation, closed = Cancellation(), []
    cancellation.on_cancel(lambda: closed.append(1))
    cancellation.cancel()
    cancellation.cancel()
    assert closed == [1]


def test_callback_registered_after_cancel_is_called_at_once() -> None:
    cancellation, closed = Cancellation(), []
    cancellation.cancel()
    cancellation.on_cancel(lambda: closed.append(1))
    assert closed == [1]


def test_unregistered_callback_is_not_called() -> None:
    cancellation, closed = Cancellation(), []
    forget = cancellation.on_cancel(lambda: closed.append(1))
    forget()
    forget()
    cancellation.cancel()
    assert closed == []


def test_many_calls_leave_no_callbacks() -> None:
    cancellation = Cancellation()
    for _ in range(100):
        cancellation.wait(0)
    assert cancellation._callbacks == []


def test_wait_ends_after_the_timeout() -> None:
    assert Cancellation().wait(0.01) is False


def test_wait_ends_on_cancel() -> None:
    cancellation = Cancellation()
    waiting = Task(lambda: cancellation.wait(LIMIT_S * 10))
    wait_until(lambda: bool(cancellation._callbacks), "no callback registered")
    cancellation.cancel()
    assert waiting.result() is True


def test_signal_handler_can_cancel_at_any_time() -> None:
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
