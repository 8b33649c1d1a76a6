"""Writers that are killed at random moments."""

from __future__ import annotations

from tests.torture.fault import Fault, Place
from tests.torture.outcome import Outcome
from tests.torture.ship import Ship, keep_house_often

CREW = 3
KILLS = 10
LONGEST_S = 0.25


def kill_writers(place: Place) -> Outcome:
    """Kill one of several writers after the other, each while the others go on, and all of them in the end."""
    with Ship(place.store, place.random) as ship:
        ship.pin_the_log()
        for _ in range(CREW):
            ship.hire()
        for _ in range(KILLS - CREW):
            ship.listen(place.random.uniform(0, LONGEST_S))
            victim = place.random.choice(ship.hands)
            ship.kill(victim)
            prepare = place.random.choice((lambda: None, keep_house_often))
            ship.hire(threads=place.random.randint(1, 3), after=victim, prepare=prepare)
        ship.listen(place.random.uniform(0, LONGEST_S))
        ship.kill_everybody()
        return ship.judge(KILLS)


FAULTS = (Fault("kill-writers", "one of three writing processes killed, at any moment", kill_writers, 50),)
