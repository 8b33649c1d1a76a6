"""Splitting long texts into messages."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wcwidth import iter_graphemes

from hermes.platforms.base import split_text
from hermes.platforms.base.splitting import open_fence

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"


def utf16_length(text: str) -> int:
    """The length as Telegram counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def without_blanks(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        ("short", 10, ["short"]),
        ("", 10, [""]),
        ("aaaa bbbb\ncccc dddd", 12, ["aaaa bbbb", "cccc dddd"]),
        ("a\nbbbbbbbb cccccccc", 12, ["a\nbbbbbbbb", "cccccccc"]),
        ("aaaaaaaaaabbbbb", 10, ["aaaaaaaaaa", "bbbbb"]),
        ("aaa bbb ccc", 3, ["aaa", "bbb", "ccc"]),
        ("aaaa\n\n\n\nbbbb", 5, ["aaaa", "bbbb"]),
        ("ab", 1, ["a", "b"]),
    ],
)
def test_a_text_is_split_at_lines_then_at_blanks_then_anywhere(text: str, limit: int, parts: list[str]) -> None:
    assert split_text(text, limit) == parts


def test_a_block_of_code_is_closed_and_opened_again_with_its_language() -> None:
    code = "\n".join(f"line {number}" for number in range(10))
    parts = split_text(f"Look:\n```python\n{code}\n```\nDone.", 60)
    assert all(len(each) <= 60 for each in parts)
    assert len(parts) == 2
    assert parts[0].endswith("\n```")
    assert parts[1].startswith("```python\nline")
    assert parts[-1].endswith("```\nDone.")
    lines = [line for part in parts for line in part.split("\n") if line.startswith("line")]
    assert lines == code.split("\n")


def test_a_block_that_begins_at_the_end_of_a_part_belongs_to_the_next_one() -> None:
    parts = split_text("some words here\n```sh\nmake a test\n```", 24)
    assert parts[0] == "some words here"
    assert parts[1].startswith("```sh\nmake")


@pytest.mark.parametrize("character", [FAMILY, "e\u0301\u0323", "\U0001f1e9\U0001f1ea", "\U0001f44d\U0001f3fd"])
def test_a_character_that_people_see_as_one_is_never_split(character: str) -> None:
    text = character * 50
    for length in (len, utf16_length):
        parts = split_text(text, 40, length)
        assert "".join(parts) == text
        assert all(len(each) % len(character) == 0 and length(each) <= 40 for each in parts)


def test_parts_are_numbered_on_request() -> None:
    parts = split_text("word " * 40, 60, numbered=True)
    assert [each.rsplit("\n", 1)[1] for each in parts] == [f"({n}/{len(parts)})" for n in range(1, len(parts) + 1)]
    assert all(len(each) <= 60 for each in parts)
    assert split_text("short", 60, numbered=True) == ["short"]


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from(["word", " ", "\n", "```", "```py\n", "\n```\n", FAMILY, "ä", "~~~\n", "x" * 30])),
    st.integers(1, 80),
    st.sampled_from([len, utf16_length]),
)
def test_nothing_is_lost_and_no_part_is_too_long(pieces: list[str], limit: int, length: object) -> None:
    assert callable(length)
    text = "".join(pieces)
    parts = split_text(text, limit, length)
    # A single character may be longer than a tiny limit.
    most = max(limit, 2)
    assert all(length(each) <= most for each in parts)
    found = iter(without_blanks("".join(parts)))  # with the lines that close and open blocks
    assert all(character in found for character in without_blanks(text))


@settings(max_examples=300)
@given(st.text(max_size=300), st.integers(20, 100))
def test_plain_text_loses_only_blanks_at_the_cuts(text: str, limit: int) -> None:
    text = text.replace("`", "").replace("~", "")
    assert without_blanks("".join(split_text(text, limit))) == without_blanks(text)


@settings(max_examples=300)
@given(st.lists(st.sampled_from(["a line of text\n", "```python\n", "```\n", "x = 1\n"]), max_size=60))
def test_every_part_closes_its_blocks(lines: list[str]) -> None:
    text = "".join(lines)
    parts = split_text(text, 80)
    assert all(open_fence(each) is None for each in parts[:-1])
    assert open_fence(parts[-1]) == open_fence(text)


def test_graphemes_of_parts_are_those_of_the_text() -> None:
    text = (FAMILY + "e\u0301" + "\U0001f1e9\U0001f1ea") * 30
    parts = split_text(text, 37)
    assert [each for part in parts for each in iter_graphemes(part)] == list(iter_graphemes(text))


def test_a_first_line_that_is_too_long_to_open_a_block_is_plain_text() -> None:
    assert split_text("```word wordwordwordwordword", 24) == ["```word", "wordwordwordwordword"]


def test_measuring_takes_time_in_proportion_to_the_text() -> None:
    measured = 0

    def length(text: str) -> int:
        nonlocal measured
        measured += len(text)
        return len(text)

    text = "word " * 100_000
    assert " ".join(split_text(text, 4000, length)) == text
    assert measured < 50 * len(text)


def test_text_of_blanks_is_not_longer_than_the_limit() -> None:
    assert split_text("\n" * 300, 100, lambda text: 2 * len(text)) == ["\n" * 50]
