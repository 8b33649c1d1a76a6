"""The wish that a call ends."""

from __future__ import annotations

import signal
from types import FrameType

from hermes.agent.model import Stop
from tests.fault.processes import Task
from tests.support.waiting import LIMIT_S, wait_until


def test_what_waits_is_closed_when_the_wish_comes() -> None:
    stop, closed = Stop(), []
    stop.when_wished(lambda: closed.append(1))
    assert (stop.is_wished, closed) == (False, [])
    stop.wish()
    assert (stop.is_wished, closed) == (True, [1])


def test_a_second_wish_closes_nothing_again() -> None:
    stop, closed = Stop(), []
    stop.when_wished(lambda: closed.append(1))
    stop.wish()
    stop.wish()
    assert closed == [1]


def test_what_comes_after_the_wish_is_closed_at_once() -> None:
    stop, closed = Stop(), []
    stop.wish()
    stop.when_wished(lambda: closed.append(1))
    assert closed == [1]


def test_what_was_taken_back_is_not_closed() -> None:
    stop, closed = Stop(), []
    forget = stop.when_wished(lambda: closed.append(1))
    forget()
    forget()
    stop.wish()
    assert closed == []


def test_many_calls_leave_nothing_behind() -> None:
    stop = Stop()
    for _ in range(100):
        stop.wait(0)
    assert stop._closers == []


def test_waiting_ends_when_the_time_is_over() -> None:
    assert Stop().wait(0.01) is False


def test_waiting_ends_when_the_wish_comes() -> None:
    stop = Stop()
    waiting = Task(lambda: stop.wait(LIMIT_S * 10))
    wait_until(lambda: bool(stop._closers), "nobody waits")
    stop.wish()
    assert waiting.result() is True


def test_a_signal_handler_may_wish_whatever_it_interrupts() -> None:
    stop, closed = Stop(), []

    def wish(_number: int, _frame: FrameType | None) -> None:
        stop.wish()

    before = signal.signal(signal.SIGUSR1, wish)
    try:
        with stop._lock:
            signal.raise_signal(signal.SIGUSR1)
            stop.when_wished(lambda: closed.append(1))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert closed == [1]
