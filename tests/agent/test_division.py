"""Exchanges, the division of a conversation for compression, and extracts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.agent.compression.division import count_kept, divide, exchanges_of
from hermes.agent.compression.extract import MAX_CHARACTERS, extract
from hermes.state.rows import AnyRow

Row = dict[str, Any]

LETTERS = {"u": "user", "a": "assistant", "t": "tool", "s": "system"}


def rows(letters: str, content: str = "x") -> list[Row]:
    """A conversation with one letter per message."""
    return [
        {"id": number, "role": LETTERS[letter], "content": content, "tool_calls": None, "tool_call_id": None}
        for number, letter in enumerate(letters)
    ]


def letters(found: Sequence[AnyRow]) -> str:
    return "".join(row["role"][0] for row in found)


@pytest.mark.parametrize(
    ("conversation", "exchanges"),
    [
        ("", []),
        ("ua", ["ua"]),
        ("uatatauaua", ["uatata", "ua", "ua"]),
        ("uuaua", ["uua", "ua"]),
        ("uau", ["ua", "u"]),
        ("aua", ["a", "ua"]),
        ("sua", ["s", "ua"]),
        ("uasua", ["ua", "s", "ua"]),
        ("suua", ["s", "uua"]),
    ],
)
def test_conversation_is_split_into_exchanges(conversation: str, exchanges: list[str]) -> None:
    assert [letters(each) for each in exchanges_of(rows(conversation))] == exchanges


@pytest.mark.parametrize(
    ("conversation", "messages", "tokens", "kept", "parts"),
    [
        ("uauauaua", 3, 99, 2, ("ua", "ua", "uaua")),
        ("uauauaua", 4, 99, 2, ("uaua", "", "uaua")),
        ("uauauaua", 0, 99, 2, ("", "uaua", "uaua")),
        ("uauauaua", 4, 10, 2, ("ua", "ua", "uaua")),
        ("uauauaua", 4, 9, 2, ("", "uaua", "uaua")),
        ("uatatauaua", 3, 99, 1, ("", "uatataua", "ua")),
        ("uasuauaua", 9, 99, 1, ("ua", "suaua", "ua")),
        ("uaua", 3, 99, 2, ("", "", "uaua")),
        ("uaua", 3, 99, 9, ("", "", "uaua")),
        ("ua", 3, 99, 1, ("", "", "ua")),
        ("", 3, 99, 1, ("", "", "")),
    ],
)
def test_division_separates_the_middle(
    conversation: str, messages: int, tokens: int, kept: int, parts: tuple[str, ...]
) -> None:
    division = divide(exchanges_of(rows(conversation)), head_messages=messages, head_tokens=tokens, kept=kept)
    assert tuple(map(letters, division)) == parts


@pytest.mark.parametrize(
    ("conversation", "tokens", "messages", "kept"),
    [
        ("uauaua", 0, 0, 1),
        ("uauaua", 0, 4, 2),
        ("uauaua", 0, 5, 2),
        ("uauaua", 20, 0, 2),
        ("uauaua", 1_000, 0, 3),
        ("uauatatata", 0, 4, 1),
        ("", 10, 10, 0),
    ],
)
def test_last_exchanges_are_kept_by_tokens_or_messages(
    conversation: str, tokens: int, messages: int, kept: int
) -> None:
    assert count_kept(exchanges_of(rows(conversation)), tokens=tokens, messages=messages) == kept


@settings(deadline=None)
@given(st.text("uats", max_size=30), st.integers(0, 10), st.integers(1, 10))
def test_division_loses_and_repeats_nothing(conversation: str, head_messages: int, kept: int) -> None:
    history = rows(conversation)
    division = divide(exchanges_of(history), head_messages=head_messages, head_tokens=1_000, kept=kept)
    assert [*division.head, *division.middle, *division.tail] == history
    assert bool(division.tail) == bool(history)
    assert len(division.head) <= head_messages


def call(**arguments: str) -> list[Row]:
    return [{"id": "c", "function": {"name": "terminal", "arguments": json.dumps(arguments)}}]


class TestExtract:
    def test_extract_has_requests_decisions_files_and_commands(self) -> None:
        history = rows("uatuas")
        history[0]["content"] = "Please move the parser into src/parse.py."
        history[1] |= {"content": "We decided to keep the old tests.", "tool_calls": call(command="pytest -q tests/")}
        history[2]["content"] = "3 passed"
        history[3]["content"] = "Is ~/notes/plan.md up to date?"
        history[4]["content"] = "It is, since today."
        history[5]["content"] = "[Summary of earlier things]"
        assert extract(history) == "\n\n".join(
            [
                "[Summary of earlier things]",
                "Asked for:\n- Please move the parser into src/parse.py.\n- Is ~/notes/plan.md up to date?",
                "Decided:\n- We decided to keep the old tests.",
                "Files:\n- src/parse.py\n- ~/notes/plan.md",
                "Commands:\n- pytest -q tests/",
                "Questions:\n- Is ~/notes/plan.md up to date?",
                "Last answer:\n- It is, since today.",
            ]
        )

    def test_extract_has_a_section_for_the_focus(self) -> None:
        history = rows("uaua")
        history[1]["content"] = "The cache is cold. The parser is slow."
        assert "About parser:\n- The parser is slow." in extract(history, "parser")

    def test_extract_is_never_empty(self) -> None:
        assert extract(rows("uata", "")) == "The messages contain no text."

    @settings(deadline=None)
    @given(st.lists(st.text(max_size=400), max_size=40), st.text(max_size=5) | st.none())
    def test_extract_is_limited_and_valid(self, texts: list[str], focus: str | None) -> None:
        history = rows("ua" * len(texts))
        for row, text in zip(history, [each for each in texts for _ in "ua"], strict=True):
            row["content"] = text * 20
        summary = extract(history, focus)
        assert 0 < len(summary) <= MAX_CHARACTERS
        summary.encode()
