"""The index entry of a message, and the index query for a search."""

from __future__ import annotations

import pytest

from hermes.query.parse import parse
from hermes.state.owner import parse_asker
from hermes.state.postgres.search.document import (
    INCOMPLETE,
    MAX_BYTES,
    MAX_PLACE,
    MAX_PLACES,
    MAX_WORD,
    SHIFTS,
    Vector,
    array,
    facet,
    quote_lexeme,
    span_mark,
    vector,
)
from hermes.state.postgres.search.expression import Expression, of_query, of_scope, of_span
from hermes.state.search.facets import MAX_WANTED
from hermes.state.search.scope import Scope
from hermes.state.server.search.word_patterns import Pattern

WORDS = {Pattern("dock", is_beginning=True): ["dock", "docker"], Pattern("ocke"): ["docker"]}


def entry(text: str, message_id: int = 5) -> Vector:
    return vector(message_id, "user", "s", "cli", None, text)


def expression_of(query: str) -> Expression:
    """The index query for a search, if the index knows the words above."""
    tree = parse(query).tree
    assert tree is not None
    return of_query(tree, WORDS.get)


class TestVector:
    def test_vector_has_the_positions_of_every_word(self) -> None:
        assert entry("one two one").text.endswith("'one':1 'two':2 'one':3")

    def test_vector_has_the_parts_of_identifiers_after_a_gap(self) -> None:
        assert entry("getUser").text.endswith("'getuser':1 'get':3 'user':4 '¦¦getus':5")

    def test_vector_has_marks_for_role_session_source_and_owner(self) -> None:
        text = vector(5, "user", "s'1", "cli", "telegram:1", "x").text
        for kind, value in (("r", "user"), ("i", "s'1"), ("s", "cli"), ("o", "telegram:1")):
            assert quote_lexeme(facet(kind, value)) in text

    def test_vector_has_the_mark_of_every_span_around_the_message(self) -> None:
        text = entry("x", message_id=1_000_000).text
        for level in range(len(SHIFTS)):
            assert quote_lexeme(span_mark(level, 1_000_000)) in text

    @pytest.mark.parametrize(
        "text",
        ["word " * (MAX_PLACE + 1), "again " * (MAX_PLACES + 1), "x" * (MAX_WORD + 1)],
        ids=["many words", "one word many times", "a long word"],
    )
    def test_incomplete_vector_is_marked(self, text: str) -> None:
        assert quote_lexeme(INCOMPLETE) in entry(text).text
        assert quote_lexeme(INCOMPLETE) not in entry("short").text

    def test_vector_of_a_huge_text_is_bounded(self) -> None:
        huge = entry(" ".join(f"{number:x}{'z' * 20}" for number in range(60_000)))
        assert len(huge.text.encode()) < MAX_BYTES * 2
        assert sum(len(word.encode()) for word in huge.words) <= MAX_BYTES

    def test_mark_of_a_long_name_is_bounded(self) -> None:
        assert len(facet("i", "x" * 5_000)) < MAX_WORD
        assert facet("i", "x" * 5_000) != facet("i", "x" * 5_001)

    def test_vector_of_an_empty_text_has_only_marks(self) -> None:
        assert entry("").words == []


def test_texts_become_an_array_that_keeps_every_character() -> None:
    assert array(['a"b', "c\\d", "e,f"]) == r'{"a\"b","c\\d","e,f"}'


class TestExpression:
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("docker", "'docker'"),
            ("foo-bar", "('foo' <-> 'bar')"),
            ("a b", "('a' & 'b')"),
            ("a OR b", "('a' | 'b')"),
            ("a -b", "('a' & !('b'))"),
            ("dock*", "('dock' | 'docker')"),
            ('"run dock"', "('run' <-> 'dock')"),
            ("*ocke*", "('docker')"),
            ("世界", "'世界'"),
            ("世界地図", "('世界' <-> '界地' <-> '地図')"),
        ],
    )
    def test_exact_expression_of_a_query(self, query: str, expected: str) -> None:
        assert expression_of(query) == Expression(expected, is_exact=True)

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("*zzz*", None),
            ("*x*", None),
            ("agent世", "('agent' & '¦世')"),
            ("*%世界%*", "'世界'"),
            ("*a-middle-b*", "'middle'"),
            ("-*zzz*", None),
            ("docker *zzz*", "'docker'"),
            ("docker OR *zzz*", None),
        ],
    )
    def test_wider_expression_of_a_query(self, query: str, expected: str | None) -> None:
        assert expression_of(query) == Expression(expected, is_exact=False)

    def test_pattern_without_words_matches_nothing(self) -> None:
        tree = parse("nosuch*").tree
        assert tree is not None
        assert of_query(tree, lambda _: []) == Expression("'¦¦¦'", is_exact=True)

    def test_scope_expression_has_its_values(self) -> None:
        scope = Scope(owner=parse_asker("o"), sources=("a", "b"), not_sessions=("s",))
        assert of_scope(scope) == Expression("(('¦sa' | '¦sb') & ('¦oo') & !('¦is'))", is_exact=True)

    def test_scope_with_very_many_values_is_not_in_the_expression(self) -> None:
        scope = Scope(sessions=tuple(map(str, range(MAX_WANTED + 1))))
        assert of_scope(scope) == Expression(None, is_exact=False)


class TestSpan:
    @pytest.mark.parametrize(("low", "high"), [(1, 1), (1, 5_000), (1_023, 1_024), (700_000, 1_000_000), (0, 2**23)])
    def test_span_covers_every_id_and_not_much_more(self, low: int, high: int) -> None:
        marks = set(of_span(low, high).strip("()").split(" | "))

        def is_covered(message_id: int) -> bool:
            return any(quote_lexeme(span_mark(level, message_id)) in marks for level in range(len(SHIFTS)))

        step = max(1, (high - low) // 997)
        assert all(is_covered(each) for each in (*range(low, high + 1, step), low, high))
        assert not is_covered(high + (high - low) // 4 + 2_048)
        assert low < 2_048 or not is_covered(low - 2_048)
        assert len(marks) < 80

    @pytest.mark.parametrize(("low", "high", "count"), [(983_040, 998_399, 1), (901_120, 1_000_000, 7), (5, 900, 1)])
    def test_aligned_span_has_few_marks(self, low: int, high: int, count: int) -> None:
        assert len(of_span(low, high).split(" | ")) == count
