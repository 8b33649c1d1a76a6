"""The lists of several terms that PostgreSQL reads together are those that it reads one by one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from hermes.query.question import parse_question
from hermes.query.tree import And, Node
from hermes.state.engine import Found, OutOfTime, Reading
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from hermes.state.postgres.search import index_query, term_lists
from hermes.state.postgres.search.index import PostgresIndex
from hermes.state.postgres.search.term_lists import PostgresTermLists
from hermes.state.search.scope import Scope
from tests.support.conversations import start
from tests.support.stores import engine_of

MESSAGES = 3_000
WORDS = "every other tenth hundredth seldom missing long"
TOO_OFTEN = "long " * 300
"""A word too often for the index to store its places: the text of such a message has to be read."""
LOWEST = -(2**63 - 1)


def content(number: int) -> str:
    """The text of a message: `tenth` is in every tenth, and so on."""
    words = ["every", "other" if number % 2 else "", "tenth" if number % 10 == 0 else ""]
    words += ["hundredth" if number % 100 == 0 else "", "seldom" if number in (7, 1_501) else ""]
    return " ".join([*words, TOO_OFTEN if number % 60 == 3 else ""])


@pytest.fixture
def filled(store: PostgreSQLSessionDBProvider) -> PostgreSQLSessionDBProvider:
    """A store of several spans of ids, every sixtieth message of which is not completely in the index."""
    for session, first in (("a", 0), ("b", MESSAGES // 2)):
        start(store, session, source="cli")
        numbers = range(first, first + MESSAGES // 2)
        store.append_messages(session, [{"role": "user", "content": content(each)} for each in numbers])
    engine: Any = engine_of(store)
    engine.catch_up()
    return store


def terms() -> list[Node]:
    """The terms of a question with frequent, rare and missing words, and a pair of them."""
    found = [term.node for term in parse_question(WORDS, time.time()).terms]
    return [*found, And((found[0], found[2]))]


def read_together(lists: PostgresTermLists, count: int) -> list[list[Found]]:
    """All messages of each list, a round at a time."""
    found: list[list[Found]] = [[] for _ in range(count)]
    while some := lists.read(range(count)):
        for at, each in some.items():
            found[at].append(each)
    return found


def ids_of(found: Sequence[Found]) -> list[int]:
    """The ids in the order in which they were found."""
    return [each for some in found for each in some.ids]


@pytest.mark.parametrize("limit", [3, 40, 512])
@pytest.mark.parametrize("sessions", [None, ("a",)])
def test_lists_read_together_are_those_read_one_by_one(
    filled: PostgreSQLSessionDBProvider, limit: int, sessions: tuple[str, ...] | None
) -> None:
    index, scope, deadline = PostgresIndex(), Scope(sessions=sessions), time.monotonic() + 60

    def read(tx: Reading) -> Iterator[tuple[list[Found], list[Found]]]:
        high = index.coverage(tx, 1).upto
        lists = index.term_lists(tx, terms(), scope, LOWEST, high, limit, deadline=deadline)
        together = read_together(lists, len(terms()))
        alone = [list(index.candidates(tx, each, scope, LOWEST, high, limit, deadline=deadline)) for each in terms()]
        return zip(together, alone, strict=True)

    pairs = list(engine_of(filled).read(read))
    assert len(pairs) == len(WORDS.split()) + 1
    for together, alone in pairs:
        assert ids_of(together) == ids_of(alone)
    assert not all(each.is_certain for together, _ in pairs for each in together)


def test_terms_that_turn_out_to_be_common_are_read_by_spans(
    filled: PostgreSQLSessionDBProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    query_index = index_query.query_index
    refused = []

    def refuse_the_rest(tx: Any, deadline: float, *queries: tuple[str, dict[str, Any]]) -> Any:
        if any(sql == term_lists._REST for sql, _ in queries):
            refused.append(queries)
            raise OutOfTime
        return query_index(tx, deadline, *queries)

    index, deadline = PostgresIndex(), time.monotonic() + 60
    monkeypatch.setattr(term_lists, "query_index", refuse_the_rest)
    monkeypatch.setattr("hermes.state.postgres.search.span_width.SURE_SPAN", 1_000)
    monkeypatch.setattr("hermes.state.postgres.search.span_width.WIDE_SPAN", 1_100)

    def read(tx: Reading) -> list[list[Found]]:
        high = index.coverage(tx, 1).upto
        return read_together(index.term_lists(tx, terms(), Scope(), LOWEST, high, 512, deadline=deadline), len(terms()))

    found = engine_of(filled).read(read)
    assert refused
    # All messages that the index does not have completely may have every word.
    assert [len(ids_of(each)) for each in found[:3]] == [MESSAGES, MESSAGES // 2, MESSAGES // 10 + MESSAGES // 60]
