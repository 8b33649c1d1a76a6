"""Conversations as text, shortened if they are too long."""

from __future__ import annotations

import time
from typing import Any
from unicodedata import normalize

import pytest

from hermes.state.messages.transcript import (
    EARLIER,
    LATER,
    cut_around,
    extract_terms,
    format_moment,
    format_transcript,
    shorten,
)
from hermes.state.rows import Row

SIZE = 1_000


def kept(text: str, *sought: str) -> tuple[int, int]:
    """Return the kept range of a text; the texts here have no repeated part."""
    cut = cut_around(text, sought, SIZE)
    inner = cut.removeprefix(EARLIER).removesuffix(LATER)
    start = text.index(inner)
    assert (start > 0, start + len(inner) < len(text)) == (cut.startswith(EARLIER), cut.endswith(LATER))
    return start, start + len(inner)


def padded(*words: tuple[int, str], length: int = 20_000) -> str:
    """Return a text of numbers with words at some positions."""
    text = "".join(f"{number:05}." for number in range(length // 6 + 1))[:length]
    for place, word in words:
        text = text[:place] + word + text[place + len(word) :]
    return text


class TestCut:
    def test_short_text_stays_unchanged(self) -> None:
        assert cut_around("x" * SIZE, ["x"], SIZE) == "x" * SIZE

    def test_cut_starts_a_quarter_before_the_match(self) -> None:
        assert kept(padded((9_000, "lantern")), "lantern") == (8_750, 9_750)

    @pytest.mark.parametrize(("place", "expected"), [(10, (0, 1_000)), (19_990, (19_000, 20_000))])
    def test_cut_stays_inside_the_text(self, place: int, expected: tuple[int, int]) -> None:
        assert kept(padded((place, "lantern")), "lantern") == expected

    @pytest.mark.parametrize("sought", [(), ("absent",), ("",)])
    def test_cut_takes_the_start_without_a_match(self, sought: tuple[str, ...]) -> None:
        assert kept(padded(), *sought) == (0, 1_000)

    def test_whole_query_in_one_place_beats_its_words_close_together(self) -> None:
        text = padded((2_000, "lamp and oil"), (2_100, "oil and lamp"), (9_000, "oil lamp"))
        assert kept(text, "oil", "lamp") == (8_750, 9_750)

    def test_words_close_together_beat_many_alone(self) -> None:
        text = padded(*((place, "oil") for place in range(1_000, 1_500, 10)), (9_000, "oil of a lamp"))
        assert kept(text, "lamp", "oil") == (8_759, 9_759)

    def test_words_far_apart_count_separately(self) -> None:
        text = padded((3_000, "oil"), (9_000, "lamp"), (9_300, "lamp"))
        assert kept(text, "oil", "lamp") == (8_750, 9_750)

    def test_most_matches_win_and_the_first_of_equals(self) -> None:
        text = padded((3_000, "oil"), (9_000, "oil"), (9_100, "oil"), (15_000, "oil"), (15_100, "oil"))
        assert kept(text, "oil") == (8_750, 9_750)

    @pytest.mark.parametrize(
        ("written", "query"),
        [
            ("LANTERN", "lantern"),
            ("Café", "cafe"),
            ("cafe\u0301", "café"),
            ("ｌａｍｐ", "lamp"),
            ("Straße", "STRASSE"),
            ("记忆系统", "记忆系统"),
            ("oil\nlamp", '"oil lamp"'),
        ],
    )
    def test_cut_finds_what_a_search_finds(self, written: str, query: str) -> None:
        cut = cut_around(padded((9_000, f" {written} "), (12_000, "ß")), extract_terms(query), SIZE)
        assert cut.removeprefix(EARLIER).index(normalize("NFC", written)) == 250

    def test_unwanted_words_do_not_count(self) -> None:
        assert extract_terms('lamp NOT oil -gas ("old house" OR attic)') == ["lamp", "old house", "attic"]


class TestTranscript:
    def test_every_paragraph_names_its_role(self) -> None:
        history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
        assert format_transcript(history) == "[USER] hi\n\n[ASSISTANT] hello"

    def test_tool_results_are_shortened(self) -> None:
        text = format_transcript([{"role": "tool", "tool_name": "terminal", "content": "a" * 400 + "b" * 400}])
        assert text == f"[TOOL terminal] {'a' * 250}\n[... 300 characters left out ...]\n{'b' * 250}"

    def test_tool_results_are_kept_around_a_match(self) -> None:
        text = format_transcript([{"role": "tool", "content": padded((9_000, "lantern"))}], ["lantern"])
        assert "lantern" in text
        assert len(text) < 600

    def test_transcript_names_tool_calls(self) -> None:
        calls = [{"function": {"name": "terminal"}}, {"function": {"name": "read_file"}}]
        history: list[Row] = [
            {"role": "assistant", "content": "wait", "tool_calls": calls},
            {"role": "assistant", "content": None},
        ]
        assert format_transcript(history) == "[ASSISTANT] wait\ncalled: terminal, read_file"

    def test_only_the_text_of_structured_content_is_shown(self) -> None:
        parts: list[Row] = [
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": "x"}},
        ]
        assert format_transcript([{"role": "user", "content": parts}]) == "[USER] look"


@pytest.mark.parametrize("size", [2, 10, 11])
def test_shortened_text_keeps_both_ends(size: int) -> None:
    text = shorten("abcdefghijklmnopqrstuvwxyz", size)
    assert (text[: size // 2], text[-(size // 2) :]) == ("abcdefghij"[: size // 2], "qrstuvwxyz"[-(size // 2) :])


class TestFormatMoment:
    @pytest.fixture(autouse=True)
    def utc(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.setenv("TZ", "UTC")
        time.tzset()
        yield
        monkeypatch.undo()
        time.tzset()

    @pytest.mark.parametrize("moment", [1_794_770_580, 1_794_770_580.9, "1794770580"])
    def test_format_moment_returns_date_and_time(self, moment: Any) -> None:
        assert format_moment(moment) == "November 15, 2026 at 07:23 PM"

    @pytest.mark.parametrize(
        ("moment", "text"), [(None, "unknown"), ("yesterday", "yesterday"), (1e300, "1e+300"), ([], "[]")]
    )
    def test_format_moment_returns_an_invalid_time_as_text(self, moment: Any, text: str) -> None:
        assert format_moment(moment) == text
