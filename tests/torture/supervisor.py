"""Starts, watches and kills the processes that write to one store."""

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
from hermes.state.sqlite.search import index_state
from hermes.state.sqlite.store import indexer, open_file
from hermes_state import SessionDB
from tests.support.plainsql import plain
from tests.support.waiting import LIMIT_S
from tests.torture import writers
from tests.torture.forked import Forked, Pipe, kill_all, listen
from tests.torture.journal import SHARED, Journal
from tests.torture.judge import judge
from tests.torture.outcome import Outcome
from tests.torture.words import letters

LONG_READ_S = 0.1


def checkpoint_and_index_often() -> None:
    """Make this process checkpoint and index after almost every write."""
    open_file.CHECKPOINT_EVERY_N_WRITES = 2
    index_state.DUE = indexer.SLICE = 8
    indexer.MANY = 64
    indexer.PAUSE_S = 0.002


class Supervisor:
    """The processes that write to one store, and the journal of what they reported."""

    def __init__(self, path: Path, random: Random, *, is_new: bool = True, clock: Clock = system_clock) -> None:
        self.path = path
        self.journal = Journal()
        self._random = random
        self._clock = clock
        self._started = 0
        self._streams: dict[Forked | None, list[str]] = {}
        self.writers: list[Forked] = []
        if is_new:
            with SessionDB(path) as db:
                db.create_session(SHARED, "cli")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        kill_all(self.writers)
        for writer in self.writers:
            writer.end()

    def start_writer(
        self,
        *,
        threads: int = 2,
        after: Forked | None = None,
        is_over: Callable[[], bool] = writers.never,
        prepare: Callable[[], object] = lambda: None,
    ) -> Forked:
        """Start a writer; with `after`, it resends what that writer was appending when it died."""
        streams = self._new_streams(threads)
        owed = [message for each in self._streams.get(after, []) for message in self.journal.owed(each)]
        seed = self._random.getrandbits(32)

        def work(pipe: Pipe) -> None:
            prepared = prepare()
            writers.write(
                self.path, streams, seed, pipe.send_line, is_over=is_over, owed=tuple(owed), clock=self._clock
            )
            del prepared

        writer = Forked(work)
        self._streams[writer] = streams
        self.writers.append(writer)
        return writer

    def add_process(self, writer: Forked) -> Forked:
        """Add a process that was started elsewhere and reports to the journal too."""
        self.writers.append(writer)
        return writer

    def start_waiting_writers(self, count: int, times: int) -> None:
        """Start writers that will append `times` messages each, and wait until all of them are ready."""
        for _ in range(count):
            (stream,) = self._new_streams(1)
            self.writers.append(Forked(lambda pipe, stream=stream: writers.append(self.path, stream, times, pipe)))  # type: ignore[misc]
        self.listen_until(lambda: self.journal.ready == count)

    def release_writers(self) -> None:
        """Let the waiting writers begin."""
        for writer in self.writers:
            writer.wake()

    def finish(self, limit_s: float = LIMIT_S) -> None:
        """Wait until every writer has ended."""
        listen(self.writers, limit_s, self._note)
        for writer in list(self.writers):
            code = self.wait_for_end(writer)
            assert code == 0, f"a writer ended with {code}"

    def start_long_reader(self) -> None:
        """Start a process that keeps read transactions open, so that the log grows meanwhile."""

        def read(_: Pipe) -> None:
            while True:
                # This reader does not use our lock, so it may open a file while it is being replaced.
                with suppress(apsw.Error), plain(self.path) as connection:
                    connection.execute("BEGIN").fetchall()
                    connection.execute("SELECT count(*) FROM messages").fetchall()
                    time.sleep(LONG_READ_S)

        self.writers.append(Forked(read))

    def listen(self, seconds: float) -> None:
        """Record the writers' reports for `seconds`, or until all of them have closed their pipes."""
        listen(self.writers, seconds, self._note)

    def listen_until(self, is_so: Callable[[], bool]) -> None:
        """Record the writers' reports until `is_so` returns True."""
        deadline = time.monotonic() + LIMIT_S
        while not is_so():
            assert time.monotonic() < deadline, "what was waited for did not come"
            self.listen(0.001)

    def wait_for_end(self, writer: Forked) -> int:
        """Record the last reports of a writer that is about to end, and return its exit code."""
        listen(self.writers, LIMIT_S, self._note, lambda: writer.is_silent)
        assert writer.is_silent, f"process {writer.pid} goes on"
        self.writers.remove(writer)
        return writer.end()

    def kill(self, writer: Forked) -> None:
        """Kill a writer and record its last reports."""
        writer.kill()
        self.wait_for_end(writer)

    def kill_all_writers(self) -> None:
        """Kill all writers at once."""
        kill_all(self.writers)
        for writer in list(self.writers):
            self.wait_for_end(writer)

    def judge(self, times: int, *, may_fail: bool = False) -> Outcome:
        """Compare the store with the journal after `times` faults; every writer must have ended."""
        assert not self.writers, "a writer is still running"
        outcome = judge(self.path, self.journal, self._random)
        if not may_fail:
            outcome.complaints += self.journal.failures[:5]
        outcome.times = times
        outcome.slowest_ms = self.journal.slowest_ms
        outcome.recovered = times if outcome.is_unhurt else 0
        return outcome

    def _new_streams(self, count: int) -> list[str]:
        self._started += count
        return [letters(self._started - number, 4) for number in range(count)]

    def _note(self, _: Forked, line: str) -> None:
        self.journal.record(line)
