"""The clock, passed in so that tests can set the time."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Returns the current time as Unix epoch seconds."""

system_clock: Clock = time.time
