"""Patterns that a search looks up among the words of all messages."""

from __future__ import annotations

import pytest

from hermes.query.tree import Leaf, Part, Words
from hermes.state.server.search.word_patterns import Pattern, pattern_of, pieces_of

LONGEST = 8


@pytest.mark.parametrize(
    ("leaf", "expected"),
    [
        (Words(("run", "dock"), "run dock", prefix=True), Pattern("dock", is_beginning=True)),
        (Words(("dockerization",), "dockerization", prefix=True), Pattern("dockeriz", is_beginning=True)),
        (Words(("世",), "世", prefix=True), None),
        (Words(("dock",), "dock"), None),
        (Part("ocke"), Pattern("ocke")),
        (Part("oc"), None),
        (Part("ockerizat"), None),
        (Part("foo.bar"), None),
        (Part("世界地"), None),
    ],
)
def test_a_leaf_matches_words_that_contain_its_text(leaf: Leaf, expected: Pattern | None) -> None:
    assert pattern_of(leaf, LONGEST) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("foo.bar", [Pattern("foo"), Pattern("bar", is_beginning=True)]),
        ("foo.middlemost.bar", [Pattern("foo"), "middlemo", Pattern("bar", is_beginning=True)]),
        ("fo.bar.", ["bar"]),
        ("dockerization.", []),
        ("a世界b地", ["世界"]),
        ("...", []),
    ],
)
def test_a_text_is_made_of_whole_words_between_its_ends(text: str, expected: list[str | Pattern]) -> None:
    assert list(pieces_of(text, LONGEST)) == expected
