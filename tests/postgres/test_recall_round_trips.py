"""How many round trips to the server a question takes."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from tests.support.conversations import start
from tests.support.recall import found, recall
from tests.support.stores import engine_of

SESSIONS, MESSAGES = 40, 50
QUESTION = "other third fourth tenth twentieth"


def content(number: int) -> str:
    """The text of a message: `third` is in every third, and so on; only `twentieth` is in few of them."""
    every = {"other": 2, "third": 3, "fourth": 4 - number % 2, "tenth": 10, "twentieth": 20}
    return " ".join(word for word, step in every.items() if number % step == 0) or "nothing"


@pytest.fixture
def filled(store: PostgreSQLSessionDBProvider) -> PostgreSQLSessionDBProvider:
    """A store with messages that are all indexed, many of which have the common words."""
    for session in range(SESSIONS):
        start(store, f"s{session}", source="cli")
        numbers = range(session * MESSAGES, (session + 1) * MESSAGES)
        store.append_messages(f"s{session}", [{"role": "user", "content": content(each)} for each in numbers])
    engine: Any = engine_of(store)
    engine.catch_up()
    return store


@pytest.mark.parametrize("limit", [1, 10])
def test_a_question_takes_few_round_trips_however_many_conversations_it_shows(
    filled: PostgreSQLSessionDBProvider, round_trips: list[int], limit: int
) -> None:
    taken = []
    for _ in range(
        4
    ):  # the first question prepares statements, and on a busy machine one reads again at its time limit
        round_trips.clear()
        assert len(found(recall(filled, query=QUESTION, limit=limit))) == limit
        taken.append(len(round_trips))
    assert min(taken) <= 24
