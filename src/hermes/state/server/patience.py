"""How long an index is waited for; that it takes too long, or is damaged, leaves the rest of the store readable."""

from __future__ import annotations

import time
from collections.abc import Container, Iterator
from contextlib import contextmanager

from hermes.state.engine import IndexDamaged, OutOfTime
from hermes.state.server.faults import Refused


@contextmanager
def patience(deadline: float, out_of_time: Container[str], damaged: Container[str]) -> Iterator[float]:
    """The seconds that are left to ask the index; the codes tell what it means if the server refuses to answer."""
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise OutOfTime
    try:
        yield left_s
    except Refused as exc:
        if exc.code in out_of_time:
            raise OutOfTime from None
        if exc.code in damaged:
            raise IndexDamaged from exc
        raise
