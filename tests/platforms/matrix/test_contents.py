"""What the bot sends: Markdown as HTML, sizes, relations, and ids of transactions."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.gateway.engine.ports import Delivery
from hermes.platforms.base.adapter import Part
from hermes.platforms.base.splitting import split_text
from hermes.platforms.matrix.contents import (
    MARK,
    TEXT_LIMIT,
    edit_content,
    encoded_length,
    marked,
    message_content,
    relation_of,
    transaction_of,
)
from hermes.platforms.matrix.formatting import to_html

MOST_BYTES = 65_536 - 5_000
"""The limit of an event, without what the homeserver adds."""


def part(text: str, mode: str = "first", index: int = 0, **more: str) -> Part:
    return Part(Delivery("k1", "!room:example.org", text, **more), text, index, 1, mode)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", None),
        ('a < b & "c"', None),
        ("two\nlines", None),
        ("**bold** and `code`", "<p><strong>bold</strong> and <code>code</code></p>"),
        ("```python\nx < 1\n```", '<pre><code class="language-python">x &lt; 1\n</code></pre>'),
        ("<script>alert(1)</script>", None),
        ("[x](javascript:alert(1))", None),
        ("[x](https://example.org/a)", '<p><a href="https://example.org/a">x</a></p>'),
        ("![x](https://example.org/a.png)", '<p>!<a href="https://example.org/a.png">x</a></p>'),
        ("~~old~~", "<p><s>old</s></p>"),
    ],
)
def test_markdown_is_shown_and_tags_are_not(text: str, expected: str | None) -> None:
    assert to_html(text) == expected


@pytest.mark.parametrize(
    "filler", ["x", '"', "<", "**a** ", "\u4e2d", "\U0001f600", "`<`\n", "|a|b|\n|-|-|\n", "> " * 30]
)
def test_events_and_edits_stay_below_the_limit(filler: str) -> None:
    text = split_text(filler * TEXT_LIMIT, TEXT_LIMIT, encoded_length)[0]
    for content in (message_content(part(text)), edit_content("$" + "e" * 254, part(text))):
        assert len(json.dumps(content, ensure_ascii=False).encode()) < MOST_BYTES


@settings(deadline=None)
@given(text=st.text(alphabet=st.sampled_from("*_`~[]()<>!#\n|-> ab"), max_size=300))
def test_no_text_becomes_a_tag_that_it_should_not(text: str) -> None:
    found = to_html(text) or ""
    assert "<img" not in found
    assert "<script" not in found
    assert message_content(part(text))["m.mentions"] == {}


def test_notice_and_answer_are_different_and_alert_no_user() -> None:
    assert message_content(part("@alice:example.org", kind="notice"))["msgtype"] == "m.notice"
    content = message_content(part("@room look"))
    assert (content["msgtype"], content["m.mentions"]) == ("m.text", {})


def test_relations_follow_thread_question_and_mode() -> None:
    assert relation_of(part("x")) is None
    assert relation_of(part("x", reply_to="$q")) == {"m.in_reply_to": {"event_id": "$q"}}
    assert relation_of(part("x", "off", reply_to="$q")) is None
    assert relation_of(part("x", index=1, reply_to="$q")) is None
    assert relation_of(part("x", "all", index=1, reply_to="$q")) == {"m.in_reply_to": {"event_id": "$q"}}
    assert relation_of(part("x", index=1, reply_to="$q", thread_id="$t")) == {
        "rel_type": "m.thread",
        "event_id": "$t",
        "is_falling_back": True,
        "m.in_reply_to": {"event_id": "$t"},
    }


def test_transaction_is_the_same_for_a_key_and_safe_in_a_path() -> None:
    assert transaction_of("a/b?c#2") == transaction_of("a/b?c#2") != transaction_of("a/b?c#3")
    assert all(each.isalnum() or each == "-" for each in transaction_of("\ud800/../x"))


def test_only_own_messages_with_a_mark_are_found() -> None:
    mine = {"sender": "@bot:x", "event_id": "$1", "content": message_content(part("x"))}
    others: list[object] = [
        {**mine, "sender": "@eve:x"},
        {**mine, "event_id": 5},
        {**mine, "content": {MARK: []}},
        None,
    ]
    assert marked([*others, mine], "@bot:x") == {transaction_of("k1"): "$1"}
