"""Lines by display width: every surface breaks them with the same function."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.cli.display.terminal import display_width
from hermes.cli.display.wrapping import count_fitting, find_line_end, join_glyphs, split_glyphs, wrap_text


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 10, [""]),
        ("one two three", 7, ["one two", "three"]),
        ("one two three", 5, ["one", "two", "three"]),
        ("a averylongwordindeed", 8, ["a averyl", "ongwordi", "ndeed"]),
        ("東京の天気は", 5, ["東京", "の天", "気は"]),
        ("one\n\ntwo", 10, ["one", "", "two"]),
    ],
)
def test_lines_break_between_words_where_possible(text: str, width: int, lines: list[str]) -> None:
    assert wrap_text(text, width) == lines


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("a averylongwordindeed b", 8, ["a", "averylongwordindeed", "b"]),
        ("see https://example.org/long for more", 10, ["see", "https://example.org/long", "for more"]),
        ("averylongwordindeed", 8, ["averylongwordindeed"]),
    ],
)
def test_whole_words_run_over_the_line(text: str, width: int, lines: list[str]) -> None:
    assert wrap_text(text, width, breaks_words=False) == lines


@given(st.text(), st.integers(2, 30))
def test_no_line_is_wider_than_the_terminal_and_no_letter_is_lost(text: str, width: int) -> None:
    lines = wrap_text(text, width)
    assert all(display_width(line) <= width for line in lines)
    whole = wrap_text(text, 10**9)
    assert "".join("".join(lines).split()) == "".join("".join(whole).split())


@given(st.text(st.characters(categories=["L", "N", "Zs"])), st.integers(1, 30))
def test_a_line_ends_where_as_much_as_possible_fits(text: str, width: int) -> None:
    glyphs = split_glyphs(text)
    end = find_line_end(glyphs, width)
    assert end <= count_fitting(glyphs, width) <= len(glyphs)
    assert end > 0 or not glyphs
    assert join_glyphs(glyphs) == text
