"""Wrapping streamed text between words."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from hermes.cli.display.streamed_text import StreamedText
from hermes.cli.display.terminal import display_width

PROSE = st.lists(st.text("abcdefgé日本🎉.,", min_size=1, max_size=12), min_size=1, max_size=40).map(" ".join)


def flow_text(pieces: list[str], width: int, column: int = 0) -> str:
    flow = StreamedText(width, column)
    return "".join(map(flow.add, [*pieces, "\n"]))


def test_a_line_is_broken_between_words() -> None:
    assert flow_text(["The night", "ly back", "up goes to the NAS"], 12) == "The nightly\nbackup goes\nto the NAS\n"


def test_first_line_is_shorter_after_a_prefix() -> None:
    assert flow_text(["one two"], 8, column=2) == "one\ntwo\n"


def test_word_is_written_when_it_is_complete() -> None:
    flow = StreamedText(80)
    assert [flow.add(piece) for piece in ("bac", "kup", " ", "is", "\n")] == ["", "", "backup", "", " is\n"]


def test_a_word_that_is_longer_than_a_line_is_left_to_the_terminal() -> None:
    text = "see https://example.org/a/very/long/path/of/many/words now"
    assert flow_text([text], 10).split() == text.split()


def test_characters_of_two_columns_are_broken_anywhere() -> None:
    assert flow_text(["日本語の文章は空白がない"], 10) == "日本語の文\n章は空白が\nない\n"


def test_code_and_tables_are_left_as_they_are() -> None:
    text = "```python\nprint('a long line of code', 1, 2, 3)\n```\n| a | long row | of a table |\nshort\n"
    assert flow_text([text[:-1]], 10) == text


def test_after_code_lines_are_broken_again() -> None:
    assert flow_text(["```\na b c d\n```\na b c d"], 3) == "```\na b c d\n```\na b\nc d\n"


def test_blanks_at_the_beginning_of_a_line_stay() -> None:
    assert flow_text(["- one\n  - two"], 20) == "- one\n  - two\n"


@given(PROSE, st.integers(12, 60), st.integers(1, 7))
def test_nothing_is_lost_and_every_line_fits(text: str, width: int, size: int) -> None:
    whole = flow_text([text[at : at + size] for at in range(0, len(text), size)], width)
    assert re.sub(r"\s", "", whole) == re.sub(r"\s", "", text)
    assert all(display_width(line) <= width for line in whole.split("\n"))
