"""Queries that broke other searches: each must neither fail nor miss its text, and some must not find theirs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.clock import FakeClock
from tests.support.nasty_queries import FOUND, NOT_FOUND
from tests.support.searches import PATIENCE_S
from tests.support.stores import Stores

EVERYTHING = 10_000


def text_of(pair: tuple[str, str]) -> str:
    return pair[1]


@pytest.fixture(scope="module", params=["unindexed", "indexed"])
def asked(
    request: pytest.FixtureRequest, stores: Stores, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SessionDBProvider, dict[str, int]]]:
    """A store that holds every text once, and their ids; nobody changes it."""
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


def name_of(pair: tuple[str, str]) -> str:
    query = pair[0] if len(pair[0]) < 60 else f"{pair[0][:57]}..."
    return query.encode("ascii", "backslashreplace").decode()


@pytest.mark.parametrize("pair", FOUND, ids=name_of)
def test_query_finds_its_text(asked: tuple[SessionDBProvider, dict[str, int]], pair: tuple[str, str]) -> None:
    store, ids = asked
    query, text = pair
    results = store.search_messages(query, limit=EVERYTHING, budget_s=PATIENCE_S)
    assert ids[text] in [hit["id"] for hit in results]
    assert (results.complete, results.degraded) == (True, False)


@pytest.mark.parametrize("pair", NOT_FOUND, ids=name_of)
def test_query_does_not_find_another_text(
    asked: tuple[SessionDBProvider, dict[str, int]], pair: tuple[str, str]
) -> None:
    store, ids = asked
    query, text = pair
    results = store.search_messages(query, limit=EVERYTHING, budget_s=PATIENCE_S)
    assert ids[text] not in [hit["id"] for hit in results]


def test_there_are_enough_of_them() -> None:
    assert len({query for query, _ in FOUND}) >= 170
