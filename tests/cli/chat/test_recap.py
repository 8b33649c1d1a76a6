"""The content and the layout of a recap."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from hermes.agent.compression.summary import summary_message
from hermes.cli.chat.recap import (
    COMPRESSED,
    MAX_WIDTH,
    Entry,
    build_recap,
    draw_panel,
    format_tool_note,
    shorten,
    strip_reasoning,
)
from hermes.cli.display.wrapping import wrap_text
from hermes.config import DisplayConfig

LIMITS = DisplayConfig()


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def hermes(text: Any, *tools: str, **fields: Any) -> dict[str, Any]:
    calls = [{"id": str(place), "function": {"name": name}} for place, name in enumerate(tools)]
    return {"role": "assistant", "content": text, "tool_calls": calls} | fields


def recap_texts(*history: dict[str, Any], limits: DisplayConfig = LIMITS) -> list[str]:
    return [entry.text for entry in build_recap(history, limits).entries]


class TestTexts:
    def test_system_messages_and_tool_results_are_hidden(self) -> None:
        history = [
            {"role": "system", "content": "a summary"},
            user("hi"),
            hermes(None, "terminal"),
            {"role": "tool", "content": "secret"},
            hermes("done"),
        ]
        assert recap_texts(*history) == ["hi", "[1 tool call: terminal]", "done"]

    def test_recap_mentions_a_compression_without_its_summary(self) -> None:
        summary = {"role": "system", "content": summary_message("what we did", "s1")}
        assert recap_texts(summary, user("hi"), hermes("yes?")) == [COMPRESSED, "hi", "yes?"]

    def test_recap_mentions_an_earlier_compression(self) -> None:
        summary = {"role": "system", "content": summary_message("what we did", "s1")}
        exchanges = [each for number in range(12) for each in (user(f"q{number}"), hermes(f"a{number}"))]
        assert recap_texts(summary, *exchanges)[:2] == [COMPRESSED, "q2"]

    def test_a_long_question_is_cut_at_300_characters(self) -> None:
        assert recap_texts(user("x" * 301)) == ["x" * 300 + "..."]
        assert recap_texts(user("x" * 300)) == ["x" * 300]

    def test_every_long_answer_is_cut_at_200_characters(self) -> None:
        assert recap_texts(user("hi"), hermes("y" * 201)) == ["hi", "y" * 200 + "..."]

    def test_an_answer_is_cut_after_3_lines(self) -> None:
        assert recap_texts(hermes("1\n2\n3\n4")) == ["1\n2\n3 ..."]
        assert recap_texts(hermes("1\n2\n3")) == ["1\n2\n3"]

    def test_lines_are_cut_first_and_then_characters(self) -> None:
        assert recap_texts(hermes(f"{'a' * 150}\n{'b' * 150}\nc\nd")) == ["a" * 150 + "\n" + "b" * 49 + "..."]

    def test_cutting_never_splits_a_character(self) -> None:
        family = "👨‍👩‍👧"
        assert shorten(family * 4, 3) == family * 3 + "..."

    def test_tool_calls_follow_the_text(self) -> None:
        answer = hermes("Let me look.", "terminal", "web_search", "terminal")
        assert recap_texts(answer) == ["Let me look. [3 tool calls: terminal, web_search]"]

    def test_consecutive_tool_calls_are_one_entry(self) -> None:
        result = {"role": "tool", "content": "ok"}
        steps = [hermes(None, "terminal"), result, hermes("", "web_search"), result, hermes(None, "terminal"), result]
        assert recap_texts(user("go"), *steps, hermes("done")) == ["go", "[3 tool calls: terminal, web_search]", "done"]

    def test_tool_calls_without_text_can_be_left_out(self) -> None:
        limits = DisplayConfig(resume_skip_tool_only=True)
        assert recap_texts(user("go"), hermes(None, "terminal"), hermes("ok", "x"), limits=limits) == [
            "go",
            "ok [1 tool call: x]",
        ]

    @pytest.mark.parametrize(
        ("calls", "note"),
        [
            (None, ""),
            ([], ""),
            ([{"function": {"name": "x"}}], "[1 tool call: x]"),
            ([{}], "[1 tool call: unknown]"),
            ([{"name": name} for name in "abcde"], "[5 tool calls: a, b, c, d, ...]"),
        ],
    )
    def test_a_note_counts_calls_and_names_at_most_four_tools(self, calls: Any, note: str) -> None:
        assert format_tool_note(calls) == note

    @pytest.mark.parametrize(
        "text",
        [
            "<think>no</think>yes",
            "<THINKING>\nno\n</THINKING>\n\nyes",
            "yes<reasoning>no",
            "no end</think>yes".replace("no end", ""),
            "<REASONING_SCRATCHPAD>no</REASONING_SCRATCHPAD> yes",
            "yes <tool_call>{}</tool_call>",
        ],
    )
    def test_reasoning_is_hidden(self, text: str) -> None:
        assert strip_reasoning(text) == "yes"

    def test_text_about_other_tags_stays(self) -> None:
        assert strip_reasoning("a < b, <b>bold</b>, <thinker>") == "a < b, <b>bold</b>, <thinker>"

    @pytest.mark.parametrize("content", ["", None, [], {}, "  \n ", [{"type": "other"}]])
    def test_empty_content_of_any_kind_is_left_out(self, content: Any) -> None:
        assert recap_texts(user(content), hermes(content)) == []

    def test_parts_are_joined_and_images_marked(self) -> None:
        parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "x"}}]
        assert recap_texts(user(parts), hermes([{"type": "text", "text": "nice"}])) == ["look [image]", "nice"]

    def test_interrupted_answer_is_marked(self) -> None:
        assert recap_texts(user("hi"), hermes("half an", finish_reason="interrupted")) == [
            "hi",
            "half an [interrupted]",
        ]


class TestHowMuch:
    def test_the_last_ten_exchanges_are_shown_and_the_messages_before_them_counted(self) -> None:
        result = {"role": "tool", "content": "ok"}
        history = [row for n in range(12) for row in (user(f"q{n}"), hermes(None, "x"), result, hermes(f"a{n}"))]
        recap = build_recap(history, LIMITS)
        assert recap.earlier == 8
        assert recap.entries[0] == Entry("user", "q2")
        assert sum(entry.role == "user" for entry in recap.entries) == 10

    def test_ten_exchanges_are_shown_completely(self) -> None:
        history = [row for n in range(10) for row in (user(f"q{n}"), hermes(f"a{n}"))]
        assert build_recap(history, LIMITS).earlier == 0

    def test_unanswered_message_joins_the_next_exchange(self) -> None:
        history = [user("one"), user("two"), hermes("three"), user("four"), hermes("five")]
        assert build_recap(history, DisplayConfig(resume_exchanges=1)).earlier == 3
        assert build_recap(history, DisplayConfig(resume_exchanges=2)).earlier == 0

    def test_empty_recap_has_no_panel(self) -> None:
        assert draw_panel(build_recap([], LIMITS), 80) == []
        assert draw_panel(build_recap([user("")], LIMITS), 80) == []


class TestHowItLooks:
    def test_recap_is_a_panel_with_marks(self) -> None:
        history = [row for n in range(11) for row in (user(f"question {n}"), hermes(f"answer {n}"))]
        recap = build_recap(history, DisplayConfig(resume_exchanges=1))
        assert draw_panel(recap, 40) == [
            "╭─ Previous Conversation ──────────────╮",
            "│ ... 20 earlier messages ...          │",
            "│                                      │",
            "│ ● You: question 10                   │",
            "│ ◆ Hermes: answer 10                  │",
            "╰──────────────────────────────────────╯",
        ]

    def test_further_lines_are_indented_to_the_text(self) -> None:
        lines = draw_panel(build_recap([user("word " * 20), hermes("字" * 40)], LIMITS), 60)
        assert lines[2].startswith("│        word")
        assert lines[4].startswith("│           字")

    @given(
        st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text(max_size=120))),
        st.integers(min_value=20, max_value=140),
    )
    def test_every_line_is_as_wide_as_the_panel(self, messages: list[tuple[str, str]], width: int) -> None:
        history = [{"role": role, "content": text} for role, text in messages]
        lines = draw_panel(build_recap(history, LIMITS), width)
        assert {wcswidth(line) for line in lines} <= {min(width, MAX_WIDTH)}

    @given(st.text(), st.integers(min_value=2, max_value=60))
    def test_wrapping_loses_only_spaces(self, text: str, width: int) -> None:
        lines = wrap_text(text, width)
        assert all(wcswidth(line) <= width for line in lines)
        unbroken = "".join("".join(wrap_text(text, 10**6)).split())
        assert "".join("".join(lines).split()) == unbroken
