"""A text matches a query or not."""

from __future__ import annotations

import pytest

from hermes.query.match import Document, matches
from hermes.query.parse import parse
from hermes.query.tree import Words


def is_found(text: str, query: str) -> bool:
    tree = parse(query).tree
    assert tree is not None
    return matches(tree, Document(text))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Docker is up", "docker"),
        ("docker-compose up", "docker compose"),
        ("docker-compose up", "docker-compose"),
        ("docker compose up", "docker-compose"),
        ("a b c", '"b c"'),
        ("a, b. c", '"b c"'),
        ("deployment", "deploy*"),
        ("redeployment", "*ploy*"),
        ("a b", "a AND b"),
        ("a", "a OR b"),
        ("a", "NOT b"),
        ("a c", "a -b"),
        ("c", "NOT (a OR b)"),
        ("getUserName", "user"),
        ("getUserName", '"user name"'),
        ("getUserName", "getuser*"),
        ("getUserName", "us*"),
        ("v1.2.3", "1.2"),
        ("世界地図", "界地"),
        ("世界地図", "図"),
        ("世界地図", "世界 地図"),
        ("Agent通信", "agent通"),
        ("通信 agent", '"信 agent"'),
        ("C++ rules", "C++"),
        ("a\n\n  b", '"a b"'),
        ("100% sure", '"100%"'),
        ("x -> y", "->"),
        ("naïve", "NAIVE"),
    ],
)
def test_query_matches_the_text(text: str, query: str) -> None:
    assert is_found(text, query)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("dockerfile", "docker"),
        ("docker", "dockerfile"),
        ("b c a", '"c b"'),
        ("c, x, b", '"c b"'),
        ("foobar", "foo-bar"),
        ("redeployment", "deploy*"),
        ("deploy", "*deployed*"),
        ("a", "a AND b"),
        ("c", "a OR b"),
        ("b", "NOT b"),
        ("a b", "a -b"),
        ("a", "NOT (a OR b)"),
        ("getUserName", "ser"),
        ("getName setAge", '"name set"'),
        ("C is C", "C++"),
        ("C++", "C#"),
        ("世界", "界世"),
        ("世界地図", "世地"),
        ("agent 大通信", "agent通"),
        ("x", "->"),
        ("aXb", '"a_b" -axb'),
        ("100", '"%"'),
    ],
)
def test_query_does_not_match_the_text(text: str, query: str) -> None:
    assert not is_found(text, query)


@pytest.mark.parametrize("query", ["docker", "dock*", '"docker compose"', "*ocke*", "NOT docker", "docker -x", "user"])
@pytest.mark.parametrize("text", ["", "Docker Compose", "docker, x", "dockerize", "rocker", "getUserName", "user42"])
def test_a_word_in_another_script_next_to_it_changes_nothing(text: str, query: str) -> None:
    assert is_found(f"{text} żółć", query) == is_found(text, query)


def test_a_long_text_is_matched_as_a_short_one_is() -> None:
    assert is_found("filler " * 100_000 + "needle", "needle -haystack")


def test_a_prefix_is_a_prefix_of_the_last_word_only() -> None:
    assert is_found("foo barking", "foo-bar*")
    assert not is_found("foot barking", "foo-bar*")


def test_words_are_compared_as_wholes() -> None:
    document = Document("the cat sat")
    assert document.has_words(Words(("cat", "sat"), "cat sat"))
    assert not document.has_words(Words(("cat", "sa"), "cat sa"))
    assert document.has_words(Words(("cat", "sa"), "cat sa", prefix=True))
