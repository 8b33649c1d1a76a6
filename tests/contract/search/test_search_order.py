"""The order of matches; pages show each match once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from hermes.state.provider import SessionDBProvider
from hermes.state.row_types import Sort
from tests.support.clock import NOW, FakeClock
from tests.support.conversations import ids, say, start
from tests.support.stores import Stores

PATIENCE_S = 10.0
EVERYTHING = 100_000
ORDERS = ["relevance", "newest", "oldest"]
QUERIES: dict[str, Any] = {
    "docker": lambda number: True,
    "seventh": lambda number: number % 7 == 0,
    "docker -seventh": lambda number: number % 7 != 0,
    "NOT seventh": lambda number: number % 7 != 0,
    "dock* third": lambda number: number % 3 == 0,
    "*ocke*": lambda number: True,
    "*event* third": lambda number: number % 21 == 0,
    "seventh OR third": lambda number: number % 7 == 0 or number % 3 == 0,
    "界": lambda number: number % 5 == 0,
    "evenths": lambda number: False,
}


class Corpus(NamedTuple):
    """A store whose messages all contain docker, and their times by id."""

    store: SessionDBProvider
    moments: dict[int, float]
    numbers: dict[int, int]

    def search(self, query: str, **arguments: Any) -> list[int]:
        """Return the ids in the order of the store."""
        results = self.store.search_messages(query, **{"limit": EVERYTHING, "budget_s": PATIENCE_S, **arguments})
        assert (results.complete, results.degraded) == (True, False)
        return ids(results)

    def matching(self, query: str) -> list[int]:
        """Return the ids that a query must find."""
        return [message_id for message_id, number in self.numbers.items() if QUERIES[query](number)]

    def by_time(self, message_id: int) -> tuple[float, int]:
        """Return the sort key of a message."""
        return self.moments[message_id], message_id


@pytest.fixture(scope="module", params=[300, 1_200])
def corpus(
    request: pytest.FixtureRequest, stores: Stores, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Corpus]:
    """Create few messages or many; some were imported and are older than their neighbours, some share a time."""
    store = stores.open(tmp_path_factory.mktemp("order"), "main", FakeClock(), read_only=False)
    start(store, "s", "t")
    moments: dict[int, float] = {}
    numbers: dict[int, int] = {}
    for first in range(0, request.param, 100):
        drafts: list[dict[str, Any]] = []
        for number in range(first, first + 100):
            moment = NOW + number // 3
            if number % 400 >= 300:
                moment -= 2_000 + 7 * (number % 13)
            words = [
                " is docker",
                " seventh" * (number % 7 == 0),
                " third" * (number % 3 == 0),
                " 世界" * (number % 5 == 0),
            ]
            drafts.append({"role": "user", "content": f"message{''.join(words)}", "timestamp": moment})
        for offset, message_id in enumerate(store.append_messages("st"[first // 100 % 2], drafts)):
            numbers[message_id] = first + offset
            moments[message_id] = drafts[offset]["timestamp"]
    yield Corpus(store, moments, numbers)
    store.close()


@pytest.mark.parametrize("query", QUERIES)
class TestSort:
    def test_sort_newest_is_by_time_and_then_by_id(self, corpus: Corpus, query: str) -> None:
        expected = sorted(corpus.matching(query), key=corpus.by_time, reverse=True)
        assert corpus.search(query, sort="newest") == expected

    def test_sort_oldest_is_the_reverse_of_newest(self, corpus: Corpus, query: str) -> None:
        assert corpus.search(query, sort="oldest") == sorted(corpus.matching(query), key=corpus.by_time)

    def test_relevance_has_the_same_messages(self, corpus: Corpus, query: str) -> None:
        assert sorted(corpus.search(query)) == corpus.matching(query)

    def test_relevance_is_the_same_every_time(self, corpus: Corpus, query: str) -> None:
        assert corpus.search(query, limit=50) == corpus.search(query)[:50]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("query", QUERIES)
def test_pages_show_every_match_once_and_in_order(corpus: Corpus, query: str, order: str) -> None:
    whole = corpus.search(query, sort=order)
    size = max(7, len(whole) // 5)
    pages: list[int] = []
    while page := corpus.search(query, sort=order, limit=size, offset=len(pages)):
        pages += page
    assert pages == whole


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("filters", [{"session_ids": ["t"]}, {"since": NOW + 40}, {"until": NOW + 60.5}], ids=str)
def test_pages_of_a_filtered_search_show_every_match_once(corpus: Corpus, order: str, filters: dict[str, Any]) -> None:
    whole = corpus.search("docker", sort=order, **filters)
    assert len(set(whole)) == len(whole)
    pages: list[int] = []
    while page := corpus.search("docker", sort=order, limit=331, offset=len(pages), **filters):
        pages += page
    assert pages == whole


@pytest.mark.parametrize("order", ORDERS)
class TestLimit:
    def test_limit_of_zero_shows_nothing(self, corpus: Corpus, order: str) -> None:
        assert corpus.search("docker", sort=order, limit=0) == []

    @pytest.mark.parametrize("limit", [-1, 10**6, 2**31, 2**62, 2**63 - 1])
    def test_limit_of_minus_one_or_a_huge_number_shows_everything(self, corpus: Corpus, order: str, limit: int) -> None:
        assert sorted(corpus.search("docker", sort=order, limit=limit)) == corpus.matching("docker")

    def test_limit_cuts_the_same_list(self, corpus: Corpus, order: str) -> None:
        whole = corpus.search("docker", sort=order)
        for limit in (1, 2, 20, 100, 256, 257):
            assert corpus.search("docker", sort=order, limit=limit) == whole[:limit]

    def test_limit_is_twenty_by_default(self, corpus: Corpus, order: Sort) -> None:
        assert len(corpus.store.search_messages("docker", sort=order, budget_s=PATIENCE_S)) == 20

    @pytest.mark.parametrize("offset", [10**6, 2**62, 2**63 - 1])
    def test_limit_with_an_offset_behind_the_last_match_shows_nothing(
        self, corpus: Corpus, order: str, offset: int
    ) -> None:
        assert corpus.search("docker", sort=order, offset=offset) == []

    def test_limit_with_a_negative_offset_starts_at_the_first(self, corpus: Corpus, order: str) -> None:
        assert corpus.search("docker", sort=order, offset=-5, limit=5) == corpus.search("docker", sort=order, limit=5)


class TestSortArgument:
    @pytest.mark.parametrize("sort", ["newest", " Newest ", "NEWEST\n"])
    def test_sort_argument_is_accepted_in_any_case(self, corpus: Corpus, sort: str) -> None:
        assert corpus.search("docker", sort=sort, limit=9) == corpus.search("docker", sort="newest", limit=9)

    @pytest.mark.parametrize("sort", [None, "", "relevance", "rank", "nonsense", "new"])
    def test_unknown_sort_argument_means_relevance(self, corpus: Corpus, sort: str | None) -> None:
        assert corpus.search("seventh third", sort=sort, limit=9) == corpus.search("seventh third", limit=9)


class TestRelevance:
    def test_more_mentions_come_first(self, store: SessionDBProvider) -> None:
        filler = "the quick brown fox jumps over the lazy dog"
        found = say(store, start(store, "s"), "docker docker docker docker", f"docker {filler}", f"{filler} docker")
        assert ids(store.search_messages("docker"))[0] == found[0]

    def test_words_side_by_side_come_first(self, store: SessionDBProvider) -> None:
        filler = "the quick brown fox jumps over the lazy dog"
        found = say(store, start(store, "s"), f"docker timeout {filler}", f"docker {filler} timeout")
        assert ids(store.search_messages("docker timeout")) == found

    def test_the_answer_comes_before_the_question(self, store: SessionDBProvider) -> None:
        start(store, "s")
        (question,) = say(store, "s", "how do I fix the docker timeout?")
        text = (
            "The docker timeout goes away with a higher limit: set the docker client timeout to 300 seconds, and retry"
        )
        (answer,) = say(store, "s", text, role="assistant")
        assert ids(store.search_messages("docker timeout")) == [answer, question]

    def test_newest_of_equally_relevant_messages_comes_first(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), *["docker is up"] * 5)
        assert ids(store.search_messages("docker")) == found[::-1]

    def test_a_purely_negative_query_is_ordered_newest_first(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "a", "b " * 80, "docker", "c", "d " * 9)
        assert ids(store.search_messages("NOT docker")) == [found[4], found[3], found[1], found[0]]
