"""Time as a thing that can be passed in."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Answers the current time as Unix epoch seconds."""

system_clock: Clock = time.time
