"""Filters of a search: sources, roles, owners, sessions and times, alone and together."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import combinations
from typing import Any, NamedTuple

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.clock import NOW, FakeClock
from tests.support.conversations import ids, say, start
from tests.support.stores import Stores

PATIENCE_S = 10.0
EVERYTHING = 100_000
ODD_NAMES = [
    "cli",
    "CLI",
    "Cli",
    "web ui",
    "web  ui",
    "web-ui",
    "web_ui",
    "a:b",
    "a:b:c",
    "ab",
    "a",
    'say "hi"',
    "it's",
    "100%",
    "日本",
    "日",
    "café",
    "cafe",
    "cafe\u0301",
    "😀",
    "x" * 300,
    "a\nb",
    "AND",
    "*",
    "¦",
    "¦61¦",
    "-a",
    "rcli",
    "(a)",
]


class CorpusMessage(NamedTuple):
    """A message with all values that filters check."""

    id: int
    session: str
    source: str
    owner: str | None
    role: str
    timestamp: float
    word: str


class Corpus(NamedTuple):
    """A store with many messages of many kinds; no test changes it."""

    store: SessionDBProvider
    messages: list[CorpusMessage]

    def finds(self, query: str, **filters: Any) -> list[int]:
        """Return what the store finds, sorted."""
        results = self.store.search_messages(query, limit=EVERYTHING, budget_s=PATIENCE_S, **filters)
        assert (results.complete, results.degraded) == (True, False)
        return sorted(ids(results))


@pytest.fixture(scope="module", params=["mostly indexed", "indexed"])
def corpus(
    request: pytest.FixtureRequest, stores: Stores, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Corpus]:
    """Create 24 sessions of 3 sources and 4 owners, 1 400 messages of 4 roles; one in three contains docker."""
    directory = tmp_path_factory.mktemp("scope")
    store = stores.open(directory, "main", FakeClock(), read_only=False)
    messages: list[CorpusMessage] = []
    at = NOW
    places = [
        (
            f"session-{number}",
            ("cli", "telegram", "web ui")[number % 3],
            (None, "telegram:1", "telegram:11", "x:1")[number % 4],
        )
        for number in range(24)
    ]
    for session, source, owner in places:
        store.create_session(session, source, owner=owner)
    for turn in range(60):
        for session, source, owner in places[turn % 2 :: 2] if turn % 5 else places:
            at += 1
            # Imported history is older than the messages before it.
            moment = at - 5_000 if turn % 7 == 0 else at
            role = ("user", "assistant", "tool", "system")[(turn + len(messages)) % 4]
            word = ("docker", "podman", "compose")[len(messages) % 3]
            message_id = store.append_message(session, role, f"the {word} of {turn}", timestamp=moment)
            messages.append(CorpusMessage(message_id, session, source, owner, role, moment, word))
    if request.param == "indexed":
        store.close()
        store = stores.open(directory, "main", FakeClock(), read_only=False)
    yield Corpus(store, messages)
    store.close()


MIDDLE = NOW + 300
FILTERS: dict[str, tuple[Any, Any]] = {
    "source_filter": (["cli", "web ui"], lambda each: each.source in ("cli", "web ui")),
    "exclude_sources": (["cli"], lambda each: each.source != "cli"),
    "role_filter": (["user", "tool"], lambda each: each.role in ("user", "tool")),
    "owner": ("telegram:1", lambda each: each.owner == "telegram:1"),
    "session_ids": (
        [f"session-{number}" for number in range(0, 24, 3)] + ["nowhere"],
        lambda each: int(each.session.rpartition("-")[2]) % 3 == 0,
    ),
    "exclude_session_ids": (["session-9", "session-1"], lambda each: each.session not in ("session-9", "session-1")),
    "since": (MIDDLE, lambda each: each.timestamp >= MIDDLE),
    "until": (MIDDLE + 200, lambda each: each.timestamp <= MIDDLE + 200),
}
QUERIES: dict[str, Any] = {
    "docker": lambda word: word == "docker",
    "docker OR compose": lambda word: word in ("docker", "compose"),
    "NOT docker": lambda word: word != "docker",
    "do*": lambda word: word == "docker",
    "*ompo*": lambda word: word == "compose",
    "the -*ocke*": lambda word: word != "docker",
}


@pytest.mark.parametrize("name", FILTERS)
def test_single_filter_finds_exactly_its_messages(corpus: Corpus, name: str) -> None:
    for query in QUERIES:
        assert_filtered(corpus, (name,), query)


@pytest.mark.parametrize("name", FILTERS)
def test_two_filters_together_find_exactly_their_messages(corpus: Corpus, name: str) -> None:
    for names in [each for each in combinations(FILTERS, 2) if each[0] == name]:
        for query in ("docker", "the -*ocke*"):
            assert_filtered(corpus, names, query)


def test_all_filters_together_find_exactly_their_messages(corpus: Corpus) -> None:
    for query in QUERIES:
        assert_filtered(corpus, tuple(FILTERS), query)


def assert_filtered(corpus: Corpus, names: tuple[str, ...], query: str) -> None:
    filters = {name: FILTERS[name][0] for name in names}
    expected = [
        each.id
        for each in corpus.messages
        if QUERIES[query](each.word) and all(FILTERS[name][1](each) for name in names)
    ]
    assert corpus.finds(query, **filters) == expected, (query, names)


class TestEmptyLists:
    def test_empty_source_filter_matches_nothing(self, corpus: Corpus) -> None:
        assert corpus.finds("docker", source_filter=[]) == []

    def test_empty_session_filter_matches_nothing(self, corpus: Corpus) -> None:
        assert corpus.finds("docker", session_ids=[]) == []

    @pytest.mark.parametrize("name", ["exclude_sources", "exclude_session_ids", "role_filter"])
    def test_empty_lists_of_other_kinds_have_no_effect(self, corpus: Corpus, name: str) -> None:
        assert corpus.finds("docker", **{name: []}) == corpus.finds("docker")


class TestNames:
    @pytest.mark.parametrize(
        "filters", [{"source_filter": ["nowhere"]}, {"role_filter": ["missing"]}, {"owner": "missing"}]
    )
    def test_unknown_names_find_nothing(self, corpus: Corpus, filters: dict[str, Any]) -> None:
        assert corpus.finds("docker", **filters) == []
        assert corpus.finds("NOT docker", **filters) == []

    def test_included_and_excluded_sources_may_overlap(self, corpus: Corpus) -> None:
        expected = [each.id for each in corpus.messages if each.word == "docker" and each.source == "telegram"]
        assert corpus.finds("docker", source_filter=["cli", "telegram"], exclude_sources=["cli"]) == expected

    @pytest.mark.parametrize("length", [200, 201, 1_000, 5_000])
    def test_filters_may_have_very_many_names(self, corpus: Corpus, length: int) -> None:
        others = [f"other-{number}" for number in range(length - 1)]
        chosen = [each.id for each in corpus.messages if each.word == "docker" and each.session == "session-7"]
        rest = [each.id for each in corpus.messages if each.word == "docker" and each.session != "session-7"]
        assert corpus.finds("docker", session_ids=["session-7", *others]) == chosen
        assert corpus.finds("docker", exclude_session_ids=[*others, "session-7"]) == rest
        assert corpus.finds("docker", source_filter=["telegram", *others]) == corpus.finds(
            "docker", source_filter=["telegram"]
        )
        assert corpus.finds("docker", exclude_sources=["telegram", *others]) == corpus.finds(
            "docker", exclude_sources=["telegram"]
        )
        assert corpus.finds("docker", role_filter=["tool", *others]) == corpus.finds("docker", role_filter=["tool"])

    def test_filters_may_repeat_names(self, corpus: Corpus) -> None:
        assert corpus.finds("docker", session_ids=["session-7"] * 500) == corpus.finds(
            "docker", session_ids=["session-7"]
        )


@pytest.fixture(scope="module", params=["unindexed", "indexed"])
def odd_store(
    request: pytest.FixtureRequest, stores: Stores, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SessionDBProvider, dict[str, int]]]:
    """Create a store where every odd name is the source, owner, role and session of one message."""
    directory = tmp_path_factory.mktemp("odd")
    store = stores.open(directory, "main", FakeClock(), read_only=False)
    found = {}
    for name in ODD_NAMES:
        start(store, f"s {name}", source=name, owner=name)
        (found[name],) = say(store, f"s {name}", "docker", role=name)
    if request.param == "indexed":
        store.close()
        store = stores.open(directory, "main", FakeClock(), read_only=False)
    yield store, found
    store.close()


class TestOddNames:
    @pytest.mark.parametrize("name", ["source_filter", "role_filter", "owner"])
    def test_odd_name_matches_only_itself(self, odd_store: tuple[SessionDBProvider, dict[str, int]], name: str) -> None:
        store, found = odd_store
        asked: dict[str, Any] = {odd: odd if name == "owner" else [odd] for odd in ODD_NAMES}
        assert {odd: ids(store.search_messages("docker", **{name: asked[odd]})) for odd in ODD_NAMES} == {
            odd: [found[odd]] for odd in ODD_NAMES
        }

    def test_odd_session_id_matches_only_itself(self, odd_store: tuple[SessionDBProvider, dict[str, int]]) -> None:
        store, found = odd_store
        assert {odd: ids(store.search_messages("docker", session_ids=[f"s {odd}"])) for odd in ODD_NAMES} == {
            odd: [found[odd]] for odd in ODD_NAMES
        }

    def test_odd_name_excludes_only_itself(self, odd_store: tuple[SessionDBProvider, dict[str, int]]) -> None:
        store, found = odd_store
        for odd in ODD_NAMES:
            others = sorted(each for each in found.values() if each != found[odd])
            without_source = store.search_messages("docker", exclude_sources=[odd], limit=100)
            without_session = store.search_messages("docker", exclude_session_ids=[f"s {odd}"], limit=100)
            assert sorted(ids(without_source)) == sorted(ids(without_session)) == others, odd


class TestOwner:
    def test_owner_finds_nothing_of_other_owners(self, corpus: Corpus) -> None:
        for query in ("docker", "NOT zzz", "*ocke*", "the", "do*", "zzz", "ocke"):
            hits = corpus.store.search_messages(query, owner="telegram:1", limit=EVERYTHING, budget_s=PATIENCE_S)
            mine = {each.session for each in corpus.messages if each.owner == "telegram:1"}
            assert {hit["session_id"] for hit in hits} <= mine

    def test_owner_filter_is_not_a_prefix_match(self, corpus: Corpus) -> None:
        assert set(corpus.finds("docker", owner="telegram:1")).isdisjoint(corpus.finds("docker", owner="telegram:11"))

    def test_owner_none_means_everybody(self, corpus: Corpus) -> None:
        assert corpus.finds("docker", owner=None) == [each.id for each in corpus.messages if each.word == "docker"]

    def test_empty_owner_finds_nothing(self, corpus: Corpus) -> None:
        assert corpus.finds("docker", owner="") == []

    def test_owner_learns_nothing_from_messages_of_others(self, store: SessionDBProvider) -> None:
        start(store, "a", source="telegram", user_id="1")
        start(store, "b", source="telegram", user_id="2")
        say(store, "a", "secretword")
        (mine,) = say(store, "b", "mysecretwordlist")
        results = store.search_messages("secretword", owner="telegram:2")
        assert (ids(results), results.path) == ([mine], "substring")


class TestTime:
    def test_both_ends_of_a_time_range_are_included(self, store: SessionDBProvider) -> None:
        start(store, "s")
        found = [store.append_message("s", "user", "docker", timestamp=moment) for moment in (1.0, 2.0, 3.0, 4.0)]
        assert sorted(ids(store.search_messages("docker", since=2.0, until=3.0))) == found[1:3]
        assert sorted(ids(store.search_messages("docker", since=2.0))) == found[1:]
        assert sorted(ids(store.search_messages("docker", until=2.0))) == found[:2]
        assert ids(store.search_messages("docker", since=2.0, until=2.0)) == found[1:2]

    def test_time_may_be_given_as_text_or_date(self, store: SessionDBProvider) -> None:
        start(store, "s")
        found = [store.append_message("s", "user", "docker", timestamp=moment) for moment in (10.0, 20.0)]
        assert ids(store.search_messages("docker", since="15")) == found[1:]
        assert ids(store.search_messages("docker", until=datetime.fromtimestamp(15, UTC))) == found[:1]

    def test_time_range_that_ends_before_it_starts_is_empty(self, corpus: Corpus) -> None:
        assert corpus.finds("docker", since=NOW + 2, until=NOW + 1) == []

    @pytest.mark.parametrize("since", [None, NOW - 5_000, NOW - 4_000, NOW + 100.5, NOW + 1e6])
    def test_time_filter_works_on_imported_history(self, corpus: Corpus, since: float | None) -> None:
        for until in (None, NOW - 4_000, NOW, NOW + 700):
            expected = [
                each.id
                for each in corpus.messages
                if each.word == "docker"
                and (since is None or each.timestamp >= since)
                and (until is None or each.timestamp <= until)
            ]
            assert corpus.finds("docker", since=since, until=until) == expected, until
            assert corpus.finds("docker", since=since, until=until, sort="oldest") == expected, until

    def test_time_before_1970_is_valid(self, store: SessionDBProvider) -> None:
        start(store, "s")
        found = [store.append_message("s", "user", "docker", timestamp=moment) for moment in (-20.0, -10.0)]
        assert ids(store.search_messages("docker", since=-15.0)) == found[1:]
        assert ids(store.search_messages("docker", until=-15.0)) == found[:1]
