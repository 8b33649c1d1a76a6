"""Systematic interleavings: two calls run on threads, and a schedule decides which one takes its next step.

A step is a round trip to a server, or a transaction on a file. A call that waits for a lock of the other one is left
waiting, and the schedule continues with the other one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from hermes.errors import HermesError
from hermes.state.mysql.connection.transaction import MySQLTransaction
from hermes.state.postgres.connection.transaction import PostgresTransaction
from hermes.state.sqlite.engine import SqliteEngine

BLOCKED_S = 0.008
"""A call that takes longer than this for a step waits for a lock, or is slow: both make a valid schedule."""
LIMIT_S = 30.0
MOST_STEPS = 12 if os.environ.get("HERMES_LONG") == "1" else 4

Call = Callable[[], Any]


class Actor:
    """A call on a thread that stops before every step."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._may_step = threading.Semaphore(0)
        self._has_stopped = threading.Semaphore(0)
        self._is_free = False
        self.steps = 0
        self.is_done = False
        self.result: Any = None
        self.error: HermesError | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        """Start the thread, up to its first step."""
        self._thread.start()
        self._has_stopped.acquire(timeout=LIMIT_S)

    def step(self) -> None:
        """Let the call take one step, and wait until it stops again or waits for a lock."""
        if not self.is_done:
            self._may_step.release()
            self._has_stopped.acquire(timeout=BLOCKED_S)

    def finish(self, others: list[Actor]) -> None:
        """Let the call run to its end; if it waits for a lock of another one, that one runs too."""
        self._is_free = True
        self._may_step.release()
        self._thread.join(BLOCKED_S)
        for other in others:
            other._is_free = True
            other._may_step.release()
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive(), "the call does not end"

    def before_step(self) -> None:
        """Called on the thread before every step."""
        self.steps += 1
        if not self._is_free:
            self._has_stopped.release()
            self._may_step.acquire()

    def _run(self) -> None:
        _actors[threading.get_ident()] = self
        try:
            self.result = self._call()
        except HermesError as exc:
            self.error = exc
        finally:
            del _actors[threading.get_ident()]
            self.is_done = True
            self._has_stopped.release()


_actors: dict[int, Actor] = {}


@dataclass(frozen=True)
class Outcome:
    """What became of a call: its result, or its error."""

    result: Any
    error: HermesError | None


@contextmanager
def steps_are_scheduled() -> Iterator[None]:
    """Let calls on threads of actors stop before every step."""

    def stopping(method: Callable[..., Any]) -> Callable[..., Any]:
        def stop(*args: Any, **kwargs: Any) -> Any:
            actor = _actors.get(threading.get_ident())
            if actor is not None:
                actor.before_step()
            return method(*args, **kwargs)

        return stop

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PostgresTransaction, "_send", stopping(PostgresTransaction._send))
        patch.setattr(MySQLTransaction, "_send", stopping(MySQLTransaction._send))
        patch.setattr(SqliteEngine, "read", stopping(SqliteEngine.read))
        patch.setattr(SqliteEngine, "write", stopping(SqliteEngine.write))
        yield


def schedules() -> Iterator[tuple[int, int]]:
    """How many steps the first call takes, then the second, before the first one ends, and then the second."""
    for first in range(MOST_STEPS + 1):
        for second in range(MOST_STEPS + 1):
            yield first, second


def interleave(one: Call, other: Call, first: int, second: int) -> tuple[Outcome, Outcome, bool]:
    """Run two calls by a schedule; return what became of them, and whether the schedule was too long for them."""
    actors = [Actor(one), Actor(other)]
    for each in actors:
        each.begin()
    for _ in range(first):
        actors[0].step()
    was_short = actors[0].is_done and actors[0].steps < first
    for _ in range(second):
        actors[1].step()
    was_short = was_short or (actors[1].is_done and actors[1].steps < second)
    actors[0].finish([actors[1]])
    actors[1].finish([])
    outcomes = [Outcome(each.result, each.error) for each in actors]
    return outcomes[0], outcomes[1], was_short
