"""Time zones, given by their rules, so that they work on every machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

BERLIN = "CET-1CEST,M3.5.0,M10.5.0/3"
NEW_YORK = "EST5EDT,M3.2.0,M11.1.0"
KATHMANDU = "<+0545>-5:45"
LORD_HOWE = "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0"
"""Clocks change by half an hour."""
SANTIAGO = "<-04>4<-03>,M9.1.6/24,M4.1.6/24"
"""Clocks change at midnight: one day a year begins at one, and one ends an hour late."""


@contextmanager
def local_zone(rules: str) -> Iterator[None]:
    """Use a time zone inside the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", rules)
        time.tzset()
        try:
            yield
        finally:
            patch.undo()
            time.tzset()
