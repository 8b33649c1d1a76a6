"""JSON that preserves every Python string."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.state import json_text

ODD = st.text(st.sampled_from("a\x1a\\u\ud83d\ude00\ud800\udfff\U0001f600"), max_size=12)
VALUES = st.recursive(ODD, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD, inner, max_size=3))


@given(VALUES)
def test_every_value_round_trips(value: object) -> None:
    assert json_text.loads(json_text.dumps(value)) == value
    assert json_text.loads(json_text.dumps_ascii(value).encode()) == value


@given(VALUES)
def test_text_can_be_written_as_utf_8(value: object) -> None:
    assert json_text.is_unicode(json_text.dumps(value))


def test_json_of_another_program_is_read_unchanged() -> None:
    assert json_text.loads(json.dumps(["\U0001f600", "\x1a", "\ud83d"])) == ["\U0001f600", "\x1a", "\ud83d"]


def test_plain_text_is_written_unescaped() -> None:
    assert json_text.dumps(["Grüße", "\U0001f600"]) == '["Grüße", "\U0001f600"]'


@pytest.mark.parametrize(("value", "parsed"), [('{"a": 1}', {"a": 1}), ("{", "{"), ("[" * 100_000, "[" * 100_000)])
def test_text_that_is_not_json_is_kept(value: str, parsed: object) -> None:
    assert json_text.loads_or_keep(value) == json_text.parse_if_text(value) == parsed


@pytest.mark.parametrize("value", [None, 5, ["x"], {"a": "b"}])
def test_value_that_is_not_text_is_kept(value: object) -> None:
    assert json_text.loads_or_keep(value) == json_text.parse_if_text(value) == value
