"""Forms of English words: found after the word itself, and only with the setting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from hermes.config import PostgreSQLConfig, SessionDBConfig
from hermes.query.tree import And, Not, Or, Part, Words
from hermes.state.postgres import schema as tables
from hermes.state.postgres.engine import PostgresEngine
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from hermes.state.postgres.search.stemming import widen
from hermes.state.search.results import SearchResults
from tests.support.conversations import ids, say, start
from tests.support.stores import engine_of

TEXTS = (
    "the deployment failed",
    "deployed at noon",
    "she deploys it every day",
    "deploy it again",
    "nothing of that kind",
    "a universe of words",
)


@pytest.fixture
def english(settings: SessionDBConfig) -> SessionDBConfig:
    return replace(settings, postgresql=PostgreSQLConfig(stemming="english"))


@pytest.fixture
def stemming(dsn: str, english: SessionDBConfig) -> Iterator[PostgreSQLSessionDBProvider]:
    """A store with stemming, with the words of `SAID` in its index."""
    with PostgreSQLSessionDBProvider(dsn, settings=english) as opened:
        start(opened, "s")
        say(opened, "s", *TEXTS)
        engine = engine_of(opened)
        assert isinstance(engine, PostgresEngine)
        engine.catch_up()
        yield opened


def texts(results: SearchResults, store: PostgreSQLSessionDBProvider) -> list[str]:
    """The texts of the found messages, in the order of the results."""
    contents = {message["id"]: str(message["content"]) for message in store.get_messages("s")}
    return [contents[each] for each in ids(results)]


def test_the_word_itself_comes_first(stemming: PostgreSQLSessionDBProvider) -> None:
    found = texts(stemming.search_messages("deploys"), stemming)
    assert found[0] == TEXTS[2]
    assert sorted(found) == sorted(TEXTS[:4])


def test_unused_word_is_found_by_its_forms(stemming: PostgreSQLSessionDBProvider) -> None:
    results = stemming.search_messages("deploying")
    assert sorted(texts(results, stemming)) == sorted(TEXTS[:4])
    assert results.repairs == ()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("deploying noon", TEXTS[1:2]),
        ("deploys NOT deploys", (TEXTS[0], TEXTS[1], TEXTS[3])),
        ("deploying NOT noon", (TEXTS[0], TEXTS[2], TEXTS[3])),
        ('"deployed at"', TEXTS[1:2]),
        ('"deploys at"', ()),
        ("deplo*", TEXTS[:4]),
        ("kinds OR noons", (TEXTS[1], TEXTS[4])),
        ("the", TEXTS[:1]),
    ],
)
def test_forms_are_part_of_the_query(
    stemming: PostgreSQLSessionDBProvider, query: str, expected: tuple[str, ...]
) -> None:
    assert sorted(texts(stemming.search_messages(query), stemming)) == sorted(expected)


def test_next_page_continues_after_the_last_one(stemming: PostgreSQLSessionDBProvider) -> None:
    whole = ids(stemming.search_messages("deploys"))
    pages = [stemming.search_messages("deploys", limit=1, offset=number) for number in range(6)]
    assert [each for page in pages for each in ids(page)] == whole
    assert ids(stemming.search_messages("deploys", limit=2, offset=2)) == whole[2:4]


def test_order_by_time_mixes_all_forms(stemming: PostgreSQLSessionDBProvider) -> None:
    found = ids(stemming.search_messages("deploys", sort="oldest"))
    assert found == sorted(found)
    assert len(found) == 4


def test_form_is_marked_in_the_snippet(stemming: PostgreSQLSessionDBProvider) -> None:
    (hit,) = stemming.search_messages("universes")
    assert "universe" in hit["snippet"]
    assert hit["snippet"] != TEXTS[5]


def test_without_the_setting_only_the_word_itself_is_found(
    stemming: PostgreSQLSessionDBProvider, dsn: str, settings: SessionDBConfig
) -> None:
    with PostgreSQLSessionDBProvider(dsn, settings=settings) as plain:
        assert texts(plain.search_messages("deploys"), plain) == [TEXTS[2]]


def test_stems_are_looked_up_in_an_index(
    stemming: PostgreSQLSessionDBProvider, connection: psycopg.Connection[Any], schema: str
) -> None:
    named = connection.execute("SELECT to_regclass(%s)", [f"{schema}.{tables.STEMS}"]).fetchone()
    assert named != (None,)


def test_store_created_without_stemming_gets_the_index_once(
    store: PostgreSQLSessionDBProvider, dsn: str, english: SessionDBConfig, connection: psycopg.Connection[Any]
) -> None:
    count = "SELECT count(*) FROM pg_indexes WHERE schemaname = %s AND indexname = %s"
    assert connection.execute(count, [english.schema, tables.STEMS]).fetchone() == (0,)
    for _ in range(2):
        PostgreSQLSessionDBProvider(dsn, settings=english).close()
    assert connection.execute(count, [english.schema, tables.STEMS]).fetchone() == (1,)


def test_excluded_words_and_phrases_have_no_forms() -> None:
    word, phrase, beginning = Words(("runs",), "runs"), Words(("a", "b"), "a b"), Words(("run",), "run", prefix=True)
    tree = And((word, phrase, beginning, Part("run"), Not(word)))
    assert widen(tree, lambda _: ["run", "runs"]) == And(
        (Or((word, Words(("run",), "run"))), phrase, beginning, Part("run"), Not(word))
    )
    assert widen(word, lambda _: []) == word
