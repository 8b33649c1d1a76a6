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
    """Leave after a time, also out of a pattern that would take for ever."""

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
    """Whether the best of a few tries keeps the limit."""
    for _ in range(TRIES):
        began = time.process_time()
        try:
            with _limited(4 * LIMIT_S):
                work()
        except _TooSlow:
            continue
        if time.process_time() - began <= LIMIT_S:
            return True
    return False
