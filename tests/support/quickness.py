"""Whether work stays within a time limit that the project promises."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LIMIT_S = 0.5
TRIES = 3


class _TooSlow(Exception):
    """The time limit is over."""


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Leave the block after a time, also from a pattern that would never end."""

    def leave(*_: object) -> None:
        raise _TooSlow

    before = signal.signal(signal.SIGALRM, leave)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def is_quick(work: Callable[[], object]) -> bool:
    """Whether the best of a few tries stays within the limit; one that takes twice as long decides at once."""
    for _ in range(TRIES):
        took_s = seconds_of(work)
        if took_s <= LIMIT_S or took_s > 2 * LIMIT_S:
            return took_s <= LIMIT_S
    return False


def seconds_of(work: Callable[[], object]) -> float:
    """The CPU time of some work; if it is stopped at the limit, more than the limit."""
    began = time.process_time()
    try:
        with _limited(3 * LIMIT_S):
            work()
    except _TooSlow:
        return max(time.process_time() - began, 1.01 * LIMIT_S)
    return time.process_time() - began
