"""A search that waits for its turn reads as much as one that does not, within limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from hermes.query.parse import parse
from hermes.state.engine import Dialect, Reading, Table, Values
from hermes.state.provider import SessionDBProvider
from hermes.state.search.context import SearchContext
from hermes.state.search.scope import Scope
from hermes.state.search.walk import Walk
from hermes.state.waits import Waits
from tests.support.conversations import say, start
from tests.support.stores import engine_of

BUDGET_S, MOST_S = 0.09, 0.27
SESSIONS = 48
"""So few messages wait for the index on every engine."""


@dataclass
class Timer:
    """The clocks of a machine on which nothing takes time unless the test says so."""

    now: float = 1_000.0
    worked: float = 0.0

    def monotonic(self) -> float:
        """Return the wall-clock time."""
        return self.now

    def thread_time(self) -> float:
        """Return the processor time of this thread."""
        return self.worked


@dataclass
class Delayed:
    """A view of the store in which every statement takes some time."""

    tx: Reading
    timer: Timer
    waiting_s: float = 0.0
    working_s: float = 0.0
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dialect: Dialect = self.tx.dialect

    def rows(self, sql: str, /, **values: Any) -> list[Values]:
        """Return all rows of a query, after a delay."""
        self.asked.append(sql)
        self.timer.now += self.waiting_s + self.working_s
        self.timer.worked += self.working_s
        return self.tx.rows(sql, **values)

    def row(self, sql: str, /, **values: Any) -> Values | None:
        """Return the first row of a query, without delay."""
        return self.tx.row(sql, **values)

    def value(self, sql: str, /, **values: Any) -> Any:
        """Return the first column of the first row, without delay."""
        return self.tx.value(sql, **values)

    def table(self, sql: str, /, **values: Any) -> Table:
        """Return the column names of a query and all its rows, without delay."""
        return self.tx.table(sql, **values)

    def tables(self, queries: Sequence[tuple[str, Mapping[str, Any]]], /) -> list[Table]:
        """Return the same for each of several queries, without delay."""
        return self.tx.tables(queries)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a search among unindexed messages."""

    found: int
    is_complete: bool
    asked: list[str]


@pytest.fixture
def timer(monkeypatch: pytest.MonkeyPatch) -> Timer:
    """Replace the clocks of searches."""
    made = Timer()
    for module in ("search.context", "waits"):
        monkeypatch.setattr(f"hermes.state.{module}.time", made)
    return made


@pytest.fixture
def full_store(store: SessionDBProvider) -> SessionDBProvider:
    """Fill a store with unindexed messages, each in a session of its own."""
    for number in range(SESSIONS):
        say(store, start(store, f"s{number}"), "hello")
    return store


def search(store: SessionDBProvider, timer: Timer, waiting_s: float = 0.0, working_s: float = 0.0) -> Outcome:
    """Search a word that all of them have, with slow statements."""
    tree = parse("hello").tree
    assert tree is not None

    def look(tx: Reading) -> Outcome:
        delayed = Delayed(tx, timer)
        context = SearchContext(delayed, engine_of(store).index, Scope(), timer.now + BUDGET_S, Waits(MOST_S))
        walk = Walk(context, tree, context.deadline)
        delayed.asked.clear()
        delayed.waiting_s, delayed.working_s = waiting_s, working_s
        found = len(list(walk.unindexed_hits()))
        return Outcome(found, walk.progress.is_complete, delayed.asked)

    return engine_of(store).read(look)


def test_waiting_for_the_store_does_not_use_up_the_budget(full_store: SessionDBProvider, timer: Timer) -> None:
    outcome = search(full_store, timer, waiting_s=2 * BUDGET_S)
    assert (outcome.found, outcome.is_complete) == (SESSIONS, True)


def test_endless_waiting_uses_up_the_budget(full_store: SessionDBProvider, timer: Timer) -> None:
    outcome = search(full_store, timer, waiting_s=MOST_S + BUDGET_S)
    assert outcome.found < SESSIONS
    assert not outcome.is_complete


def test_own_work_uses_up_the_budget(full_store: SessionDBProvider, timer: Timer) -> None:
    outcome = search(full_store, timer, working_s=2 * BUDGET_S)
    assert outcome.found < SESSIONS
    assert not outcome.is_complete


def test_messages_that_wait_for_the_index_are_read_with_their_sessions(
    full_store: SessionDBProvider, timer: Timer
) -> None:
    assert len(search(full_store, timer).asked) == 1
