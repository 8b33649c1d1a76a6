"""Conditions on the words of messages, evaluated without a server."""

from __future__ import annotations

import pytest

from hermes.state.mysql.search.document import EVERYTHING, Text, entry, facet, packed_words
from hermes.state.mysql.search.evaluation import cover, find_matching, holds
from hermes.state.mysql.search.expression import ANYTHING, Condition, Every, InARow, Lacks, OneOf, Some, without_order

A, B, C = OneOf(("a",)), OneOf(("b",)), OneOf(("c",))
PLACES = {"a": {1, 2, 3}, "b": {2, 3, 4}, "c": {3}, EVERYTHING: {1, 2, 3, 4, 5}}
IDS = {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (A, {1, 2, 3}),
        (OneOf(("a", "b")), {1, 2, 3, 4}),
        (OneOf(()), set()),
        (OneOf(("unknown",)), set()),
        (ANYTHING, {1, 2, 3, 4, 5}),
        (Every((A, B)), {2, 3}),
        (Every((Lacks(C), A, B)), {2}),
        (Every((Lacks(A), Lacks(B))), {5}),
        (Some((C, Lacks(A))), {3, 4, 5}),
        (Lacks(Some((A, B))), {5}),
    ],
)
def test_places_decide_which_messages_match(condition: Condition, found: set[int]) -> None:
    assert find_matching(condition, PLACES) == found


@pytest.mark.parametrize(
    ("words", "is_so"),
    [([1, 2], True), ([3, 1, 2, 3], True), ([2, 1], False), ([1, 3, 2], False), ([1], False), ([], False)],
)
def test_words_in_a_row_are_adjacent(words: list[int], is_so: bool) -> None:
    text = Text(packed_words(words))
    assert holds(InARow((A, B)), text, IDS) is is_so
    assert holds(Lacks(InARow((A, B))), text, IDS) is not is_so
    assert holds(InARow((A, OneOf(("b", "unknown", "d")))), text, {**IDS, "d": 9}) is is_so


def test_each_word_of_a_phrase_may_have_alternatives() -> None:
    assert Text(packed_words([2, 1, 3])).has_in_a_row([[1], [2, 3]])
    assert not Text(packed_words([3, 1])).has_in_a_row([[1], [2, 3]])
    assert not Text(packed_words([1, 2])).has_in_a_row([[1], []])


def test_bytes_that_only_look_like_words_are_none() -> None:
    assert Text(packed_words([0x0100_0000, 0x0200_0000])).has_in_a_row([[0x0100_0000], [0x0200_0000]])
    assert not Text(packed_words([0x0100_0000, 0x0200_0000, 0])).has_in_a_row([[1], [2]])


def test_condition_without_order_matches_at_least_as_much() -> None:
    assert without_order(InARow((A, B))) == Every((A, B))
    assert without_order(Every((A, Lacks(InARow((B, C)))))) == A
    assert without_order(Lacks(C)) == Lacks(C)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (Every((A, C, B)), {"c"}),
        (InARow((A, C)), {"c"}),
        (Some((A, C)), {"a", "c"}),
        (Every((Some((A, B)), Lacks(C))), {"a", "b"}),
        (Lacks(C), {EVERYTHING}),
    ],
)
def test_cover_consists_of_the_rarest_words(condition: Condition, words: set[str]) -> None:
    weights = {word: len(places) for word, places in PLACES.items()} | {EVERYTHING: 99}
    assert cover(condition, weights)[0] == words


def test_marks_are_no_words() -> None:
    made = entry("user", "s", "cli", "me", "role: user, cli")
    assert not set(made.words) & set(made.rest)
    assert facet("s", "cli") in made.rest


def test_facets_of_any_length_differ() -> None:
    long = "x" * 600
    assert len({facet("s", long), facet("s", f"{long}y"), facet("o", long)}) == 3
    assert len(facet("s", long)) <= 500
