"""Canonical rows: a canonical row stays unchanged, and other values keep their meaning."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.state.rows import MARK, OLD_MARK, decode_content, encode_content, encode_text, message_row
from hermes.state.transfer.canonical_rows import (
    MESSAGE,
    SESSION,
    canonical_message,
    canonical_session,
    canonical_usage_event,
    count_tools,
)
from hermes.state.transfer.session_bundle import are_variants, parents_first

stored: st.SearchStrategy[Any] = (
    st.none()
    | st.text()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.binary()
    | st.text().map(encode_text)
    | st.lists(st.text()).map(encode_content)
    | st.text().map(lambda text: OLD_MARK + text)
    | st.text().map(lambda text: MARK + text)
)


def message(**values: Any) -> tuple[Any, ...]:
    given = {"id": 7, "session_id": "s", "role": "user", "timestamp": 1.5, "active": 1, "observed": 0, **values}
    return tuple(given.get(name) for name in MESSAGE)


@given(st.dictionaries(st.sampled_from([name for name in MESSAGE if name != "id"]), stored))
def test_a_canonical_message_stays_unchanged(values: dict[str, Any]) -> None:
    once = canonical_message(message(**values))
    assert canonical_message(once.values) == once


@given(st.dictionaries(st.sampled_from(SESSION), stored))
def test_a_canonical_session_stays_unchanged(values: dict[str, Any]) -> None:
    once = canonical_session({**dict.fromkeys(SESSION), "id": "s", **values})
    assert canonical_session(once) == once


@given(st.text() | st.lists(st.text()) | st.dictionaries(st.text(), st.integers()))
def test_canonical_content_decodes_to_the_same(content: Any) -> None:
    row = message(uid="u", content=encode_text(content) if isinstance(content, str) else encode_content(content))
    formed = dict(zip(MESSAGE, canonical_message(row).values, strict=True))
    assert decode_content(formed["content"]) == content


@given(st.text())
def test_unencoded_text_of_a_file_is_encoded(text: str) -> None:
    if text.startswith((MARK, OLD_MARK)):
        return
    formed = canonical_message(message(uid="u", content=text)).values
    assert message_row(MESSAGE, formed)["content"] == text
    assert "\0" not in formed[MESSAGE.index("content")]


def test_structured_content_of_older_files_is_converted() -> None:
    formed = canonical_message(message(uid="u", content='\0json:[{"type": "text", "text": "x"}]')).values
    assert formed[MESSAGE.index("content")] == MARK + '[{"type": "text", "text": "x"}]'


def test_a_message_without_a_uid_gets_its_derived_uid() -> None:
    row = message(content="hi")
    assert canonical_message(row).uid == message_row(MESSAGE, row)["uid"]


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("timestamp", "12.5", 12.5),
        ("timestamp", "yesterday", 0.0),
        ("timestamp", float("inf"), 0.0),
        ("token_count", "3", 3),
        ("token_count", "many", None),
        ("token_count", 2.0, 2),
        ("active", None, 1),
        ("role", None, "unknown"),
        ("tool_name", 7, "7"),
        ("content", b"\xff\x00", MARK + '"\\ufffd\\u0000"'),
    ],
)
def test_values_of_another_type_are_converted(column: str, value: Any, expected: Any) -> None:
    formed = canonical_message(message(uid="u", **{column: value})).values
    assert formed[MESSAGE.index(column)] == expected


def test_session_of_an_old_file_gets_default_values() -> None:
    formed = canonical_session({**dict.fromkeys(SESSION), "id": "s", "started_at": 5, "child_kind": "?"})
    assert (formed["last_active"], formed["chain_active"], formed["active_tick"]) == (5.0, 5.0, 500)
    assert (formed["source"], formed["listed"], formed["message_count"], formed["child_kind"]) == (
        "unknown",
        1,
        0,
        None,
    )


def test_missing_counters_of_an_event_are_zero() -> None:
    assert canonical_usage_event([1, "delta", None, None, *[None] * 6, None, 0.5])[4:] == (0, 0, 0, 0, 0, 0, None, 0.5)


def test_unreadable_tool_calls_count_no_tool() -> None:
    assert count_tools(['[{"function": {"name": "a"}}, {"name": "b"}]', "[{", None, '"x"']) == {"a": 1, "b": 1}


class TestOrder:
    def test_parent_sessions_come_before_their_children(self) -> None:
        assert parents_first({"a": "c", "b": None, "c": "b"}) == ["b", "c", "a"]

    def test_a_cycle_of_parents_is_followed_once(self) -> None:
        assert sorted(parents_first({"a": "b", "b": "a", "c": "c"})) == ["a", "b", "c"]

    def test_a_missing_parent_is_ignored(self) -> None:
        assert parents_first({"a": "gone"}) == ["a"]

    def test_a_long_chain_of_parents_is_ordered(self) -> None:
        line = {str(number): str(number + 1) for number in range(20_000)}
        assert parents_first(line)[:2] == ["19999", "19998"]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("A", "A #2", True),
        ("A #3", "A", True),
        ("A", "A (2)", True),
        ("A #2", "A #2 (3)", True),
        ("A", "B #2", False),
        (None, "A", False),
        (None, None, False),
    ],
)
def test_titles_that_differ_only_in_their_numbers_are_variants(
    one: str | None, other: str | None, expected: bool
) -> None:
    assert are_variants(one, other) is expected
