"""Snippets: the part of a message around a hit that fits into two lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.cli.display.snippet import format_snippet
from hermes.cli.display.terminal import display_width


class TestExcerpts:
    @pytest.mark.parametrize(
        ("snippet", "width", "lines"),
        [
            ("", 20, []),
            ("short >>>hit<<<", 20, ["short hit"]),
            ("one two three four >>>five<<<", 12, ["…three four", "five"]),
            ("one\n\n two\t three", 40, ["one two three"]),
            ("a >>>b c<<< d", 4, ["a b", "c d"]),
            ("...cut at >>>both<<< ends...", 40, ["…cut at both ends…"]),
            ("日本語の>>>京都<<<です", 8, ["日本語の", "京都です"]),
            ("x" * 30 + ">>>hit<<<", 10, ["…xxxxxxxxx", "xxhit"]),
        ],
    )
    def test_long_results_are_wrapped_and_cut_around_the_first_hit(
        self, snippet: str, width: int, lines: list[str]
    ) -> None:
        assert format_snippet(snippet, width) == lines

    def test_hit_far_into_a_text_is_shown_with_its_surroundings(self) -> None:
        lines = format_snippet("words " * 20 + ">>>hit<<< and after " + "words " * 20, 30)
        assert lines == ["…words hit and after words", "words words words words words…"]

    GLYPHS = st.sampled_from([*"ab 日本\n\x1b<>", "e\u0301", "👨\u200d👩\u200d👧", "🇩🇪", "❤\ufe0f", "क्षि"])
    TEXTS = st.lists(GLYPHS, max_size=120).map("".join)

    @given(TEXTS, TEXTS, st.integers(min_value=8, max_value=50))
    def test_always_fit_and_show_the_first_hit(self, before: str, after: str, width: int) -> None:
        lines = format_snippet(f"{before} >>>HIT<<< {after}", width)
        assert len(lines) <= 2
        assert max(map(display_width, lines)) <= width
        assert "HIT" in "".join(lines)
