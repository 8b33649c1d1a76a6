"""Clocks that jump."""

from __future__ import annotations

import time
from random import Random

from tests.torture.fault import Fault, Trial
from tests.torture.outcome import Outcome
from tests.torture.supervisor import Supervisor

WRITERS = 3
WRITING_S = 1.0
JUMPS_S = (0.0, 0.0, -0.001, 1.0, -60.0, 3_600.0, -3_600.0, 86_400.0 * 365, -86_400.0 * 3_650)
ODDS = 0.3


class JumpingClock:
    """The time of day, set forward and back again and again."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._shift = 0.0

    def __call__(self) -> float:
        if self._random.random() < ODDS:
            self._shift = self._random.choice(JUMPS_S)
        return time.time() + self._shift


def jump(trial: Trial) -> Outcome:
    """Give every process its own clock, which jumps by seconds, hours and years."""
    with Supervisor(trial.store, trial.random, clock=JumpingClock(trial.random)) as supervisor:
        for _ in range(WRITERS):
            supervisor.start_writer()
        supervisor.listen(WRITING_S)
        supervisor.kill_all_writers()
        return supervisor.judge(WRITERS)


FAULTS = (Fault("clock-jumps", "clocks jump by seconds, hours and years while processes write", jump, 5),)
