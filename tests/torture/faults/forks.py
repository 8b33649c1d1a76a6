"""Processes that fork while their threads write."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random

from hermes.clock import system_clock
from tests.torture.crew import Hand, never
from tests.torture.fault import Fault, Place
from tests.torture.forked import Forked, Voice
from tests.torture.outcome import Outcome
from tests.torture.ship import Ship
from tests.torture.words import letters

THREADS = 2
FORKS = 8
ACTS = 12
KILLED_AFTER_S = 0.03
LIMIT_S = 30
MANNERS = IN_ORDER, AT_ONCE, KILLED = "in order", "at once", "killed"


def fork_under_load(place: Place) -> Outcome:
    """Fork again and again while threads write; each child writes with the store it inherited, then ends somehow."""
    seed = place.random.getrandbits(32)
    with Ship(place.store, place.random) as ship:
        ship.take_aboard(Forked(lambda voice: _write_and_fork(place.store, Random(seed), voice)))
        ship.finish()
        return ship.judge(FORKS)


def _write_and_fork(path: Path, random: Random, voice: Voice) -> None:
    over = threading.Event()
    hands = [Hand(path, letters(number, 4), Random(number), voice.say, system_clock) for number in range(THREADS)]
    threads = [threading.Thread(target=hand.work, args=(over.is_set,)) for hand in hands]
    for thread in threads:
        thread.start()
    for number in range(FORKS):
        heir = Hand(path, letters(THREADS + number, 4), random, voice.say, system_clock)
        child = os.fork()
        if child == 0:
            _be_a_child(heir, voice.afresh().say, random.choice(MANNERS))
        heir.close()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, -signal.SIGKILL), f"a child ended with {code}"
    over.set()
    for thread in threads:
        thread.join()


def _be_a_child(hand: Hand, say: Callable[[str], None], manner: str) -> None:
    """Write a little, within a limit, and end."""
    signal.alarm(LIMIT_S)
    left = iter(range(ACTS))
    hand.speak(say)
    if manner == KILLED:
        threading.Timer(KILLED_AFTER_S, os.kill, (os.getpid(), signal.SIGKILL)).start()
        hand.go_on(never)
    hand.go_on(lambda: next(left, None) is None)
    if manner == IN_ORDER:
        hand.close()
    os._exit(0)


FAULTS = (Fault("forks", "forked while threads write; the children write too, and end somehow", fork_under_load, 6),)
