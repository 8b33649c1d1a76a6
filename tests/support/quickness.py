"""Whether something keeps a time limit that a promise of the project names."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LIMIT_S = 0.5
TRIES = 3


class _TooSlow(Exception):
    """The limit is over."""


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Leave after a time, also out of a pattern that would never end."""

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
    """Whether the best of a few tries keeps the limit; one that takes twice as long decides alone."""
    for _ in range(TRIES):
        took_s = seconds_of(work)
        if took_s <= LIMIT_S or took_s > 2 * LIMIT_S:
            return took_s <= LIMIT_S
    return False


def seconds_of(work: Callable[[], object]) -> float:
    """The CPU time that some work takes, or has taken when it is given up: always more than the limit then."""
    began = time.process_time()
    try:
        with _limited(3 * LIMIT_S):
            work()
    except _TooSlow:
        return max(time.process_time() - began, 1.01 * LIMIT_S)
    return time.process_time() - began
