"""Queries that broke other searches: none may fail or miss its text, and some must not match."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.clock import FakeClock
from tests.support.nasty_queries import FOUND, NOT_FOUND
from tests.support.searches import PATIENCE_S
from tests.support.stores import Stores

EVERYTHING = 10_000
TOGETHER = 12


def name_of(pairs: list[tuple[str, str]]) -> str:
    """Return the first of some queries."""
    return pairs[0][0][:57].encode("ascii", "backslashreplace").decode()


def text_of(pair: tuple[str, str]) -> str:
    return pair[1]


@pytest.fixture(scope="module", params=["unindexed", "indexed"])
def asked(
    request: pytest.FixtureRequest, stores: Stores, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SessionDBProvider, dict[str, int]]]:
    """Create a store that holds every text once, and return their ids; no test changes it."""
    directory = tmp_path_factory.mktemp("nasty")
    store = stores.open(directory, "main", FakeClock(), read_only=False)
    store.create_session("s", "cli")
    texts = list(dict.fromkeys(map(text_of, [*FOUND, *NOT_FOUND])))
    ids = store.append_messages("s", [{"role": "user", "content": text} for text in texts])
    if request.param == "indexed":
        store.close()
        store = stores.open(directory, "main", FakeClock(), read_only=False)
    yield store, dict(zip(texts, ids, strict=True))
    store.close()


def some_of(pairs: list[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Return groups of queries, so that one test checks several."""
    return [pairs[first : first + TOGETHER] for first in range(0, len(pairs), TOGETHER)]


@pytest.mark.parametrize("pairs", some_of(FOUND), ids=name_of)
def test_queries_find_their_texts(
    asked: tuple[SessionDBProvider, dict[str, int]], pairs: list[tuple[str, str]]
) -> None:
    store, ids = asked
    missed = []
    for query, text in pairs:
        results = store.search_messages(query, limit=EVERYTHING, budget_s=PATIENCE_S)
        if ids[text] not in [hit["id"] for hit in results] or not results.complete or results.degraded:
            missed.append((query, text, results))
    assert missed == []


@pytest.mark.parametrize("pairs", some_of(NOT_FOUND), ids=name_of)
def test_queries_do_not_find_other_texts(
    asked: tuple[SessionDBProvider, dict[str, int]], pairs: list[tuple[str, str]]
) -> None:
    store, ids = asked
    wrong = []
    for query, text in pairs:
        results = store.search_messages(query, limit=EVERYTHING, budget_s=PATIENCE_S)
        if ids[text] in [hit["id"] for hit in results]:
            wrong.append((query, text))
    assert wrong == []


def test_there_are_enough_nasty_queries() -> None:
    assert len({query for query, _ in FOUND}) >= 170
