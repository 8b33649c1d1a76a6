"""A store with a crew of processes that write to it, some of which do not live long."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

import apsw

from hermes.clock import Clock, system_clock
from hermes.state.sqlite import fulltext, store
from hermes_state import SessionDB
from tests.support.plainsql import plain
from tests.support.waiting import LIMIT_S
from tests.torture import crew
from tests.torture.forked import Forked, Voice, kill_all, listen
from tests.torture.journal import SHARED, Journal
from tests.torture.judge import judge
from tests.torture.outcome import Outcome
from tests.torture.words import letters

PINNED_S = 0.1


def keep_house_often() -> None:
    """From now on this process checkpoints and indexes so often that it does little else."""
    store.CHECKPOINT_EVERY_N_WRITES = 2
    fulltext.DUE = 8


class Ship:
    """The processes that write to one store, and the journal of what they said."""

    def __init__(self, path: Path, random: Random, *, is_new: bool = True, clock: Clock = system_clock) -> None:
        self.path = path
        self.journal = Journal()
        self._random = random
        self._clock = clock
        self._hired = 0
        self._streams: dict[Forked | None, list[str]] = {}
        self.hands: list[Forked] = []
        if is_new:
            with SessionDB(path) as db:
                db.create_session(SHARED, "cli")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        kill_all(self.hands)
        for hand in self.hands:
            hand.end()

    def hire(
        self,
        *,
        threads: int = 2,
        after: Forked | None = None,
        is_over: Callable[[], bool] = crew.never,
        prepare: Callable[[], object] = lambda: None,
    ) -> Forked:
        """Start a writer; one that comes after another sends again what that one did not get an answer for."""
        streams = self._new_streams(threads)
        owed = [message for each in self._streams.get(after, []) for message in self.journal.owed(each)]
        seed = self._random.getrandbits(32)

        def work(voice: Voice) -> None:
            prepared = prepare()
            crew.write(self.path, streams, seed, voice.say, is_over=is_over, owed=tuple(owed), clock=self._clock)
            del prepared

        hand = Forked(work)
        self._streams[hand] = streams
        self.hands.append(hand)
        return hand

    def take_aboard(self, hand: Forked) -> Forked:
        """Count a process in that was started elsewhere and keeps the journal too."""
        self.hands.append(hand)
        return hand

    def line_up(self, writers: int, times: int) -> None:
        """Start writers that append so many messages each, and wait until they are ready to be let go."""
        for _ in range(writers):
            (stream,) = self._new_streams(1)
            self.hands.append(Forked(lambda voice, stream=stream: crew.append(self.path, stream, times, voice)))  # type: ignore[misc]
        self.listen_until(lambda: self.journal.ready == writers)

    def let_go(self) -> None:
        """Let those who are lined up begin."""
        for hand in self.hands:
            hand.tell()

    def finish(self, limit_s: float = LIMIT_S) -> None:
        """Wait until all have come to their end."""
        listen(self.hands, limit_s, self._note)
        for hand in list(self.hands):
            code = self.lose(hand)
            assert code == 0, f"a writer ended with {code}"

    def pin_the_log(self) -> None:
        """Start a reader that holds on to one moment of the store after the other, so that the log grows meanwhile."""

        def read(_: Voice) -> None:
            while True:
                # A reader that knows nothing of our rules may meet a file that is being exchanged.
                with suppress(apsw.Error), plain(self.path) as connection:
                    connection.execute("BEGIN").fetchall()
                    connection.execute("SELECT count(*) FROM messages").fetchall()
                    time.sleep(PINNED_S)

        self.hands.append(Forked(read))

    def listen(self, seconds: float) -> None:
        """Note what the writers say, for so long or until all are silent."""
        listen(self.hands, seconds, self._note)

    def listen_until(self, is_so: Callable[[], bool]) -> None:
        """Note what the writers say until something is so."""
        deadline = time.monotonic() + LIMIT_S
        while not is_so():
            assert time.monotonic() < deadline, "what was waited for did not come"
            self.listen(0.001)

    def lose(self, hand: Forked) -> int:
        """Hear the last words of a writer whose end is near, and how it ended."""
        listen(self.hands, LIMIT_S, self._note, lambda: hand.is_silent)
        assert hand.is_silent, f"process {hand.pid} goes on"
        self.hands.remove(hand)
        return hand.end()

    def kill(self, hand: Forked) -> None:
        """Kill a writer, and hear its last words."""
        hand.kill()
        self.lose(hand)

    def kill_everybody(self) -> None:
        """Kill all writers at one moment."""
        kill_all(self.hands)
        for hand in list(self.hands):
            self.lose(hand)

    def judge(self, times: int, *, may_fail: bool = False) -> Outcome:
        """What became of the store, after so many strikes; nobody writes any more."""
        assert not self.hands, "somebody is still writing"
        outcome = judge(self.path, self.journal, self._random)
        if not may_fail:
            outcome.complaints += self.journal.failures[:5]
        outcome.times = times
        outcome.slowest_ms = self.journal.slowest_ms
        outcome.recovered = times if outcome.is_unhurt else 0
        return outcome

    def _new_streams(self, count: int) -> list[str]:
        self._hired += count
        return [letters(self._hired - number, 4) for number in range(count)]

    def _note(self, _: Forked, line: str) -> None:
        self.journal.hear(line)
