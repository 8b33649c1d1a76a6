"""Events of Matrix as messages: what is understood, what is left out, and content of any form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.platforms.matrix.events import (
    MediaAddress,
    RoomMessage,
    invitation,
    is_membership,
    read_message,
    since_own_arrival,
    strip_quote,
    thread_of,
)
from hermes.platforms.matrix.mentions import as_command, names_bot, without_mention

OWN = "@bot:example.org"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)
KEYS = ("body", "msgtype", "m.relates_to", "m.mentions", "url", "info", "filename", "m.new_content", "membership")
CONTENTS = st.dictionaries(st.sampled_from(KEYS), JSON | st.sampled_from(["m.text", "m.image", "mxc://a/b"]))


def event(content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "m.room.message", "event_id": "$1", "sender": "@alice:example.org", "content": content, **more}


def text(body: str, **more: Any) -> dict[str, Any]:
    return event({"msgtype": "m.text", "body": body, **more})


def read(found: object) -> RoomMessage:
    message = read_message(found, OWN)
    assert message is not None
    return message


@settings(deadline=None)
@given(content=CONTENTS | JSON, extra=st.dictionaries(st.sampled_from(["unsigned", "state_key", "sender"]), JSON))
def test_content_of_any_form_is_a_message_or_nothing(content: Any, extra: dict[str, Any]) -> None:
    found = {**event(content), **extra}
    message = read_message(found, OWN)
    assert message is None or (message.event_id, message.sender) == ("$1", found["sender"])
    is_membership({**found, "type": "m.room.member"}, OWN, "invite")
    since_own_arrival([found, {**found, "type": "m.room.member", "state_key": OWN}], OWN)
    invitation({"events": [found, {**found, "type": "m.room.member", "state_key": OWN}]}, OWN)


@pytest.mark.parametrize(
    "found",
    [
        text("x") | {"sender": OWN},
        event({"msgtype": "m.notice", "body": "x"}),
        event({"msgtype": "m.unknown", "body": "x"}),
        text("x", **{"m.relates_to": {"rel_type": "m.replace", "event_id": "$0"}}),
        text("x") | {"type": "m.reaction"},
        text("x") | {"event_id": "$" + "1" * 300},
        text("x") | {"sender": "@a\nb:example.org"},
        text("x") | {"sender": "$1"},
        text("x") | {"event_id": "@alice:example.org"},
        event({}),
        None,
        [],
    ],
)
def test_own_messages_notices_edits_and_unreadable_events_are_no_messages(found: Any) -> None:
    assert read_message(found, OWN) is None


def test_thread_and_reply_are_different_things() -> None:
    falling_back = {
        "rel_type": "m.thread",
        "event_id": "$root",
        "is_falling_back": True,
        "m.in_reply_to": {"event_id": "$2"},
    }
    in_thread = read(text("x", **{"m.relates_to": falling_back}))
    assert (in_thread.thread_id, in_thread.reply_to) == ("$root", None)
    answering = read(text("x", **{"m.relates_to": {**falling_back, "is_falling_back": False}}))
    assert (answering.thread_id, answering.reply_to) == ("$root", "$2")
    reply = read(
        text("> <@bot:example.org> quoted\n> more\n\nmine", **{"m.relates_to": {"m.in_reply_to": {"event_id": "$2"}}})
    )
    assert (reply.text, reply.reply_to, reply.thread_id) == ("mine", "$2", None)


def test_thread_with_the_name_of_a_user_is_none() -> None:
    """The key of a thread and that of a user in a room must never be the same."""
    for named in ("@alice:example.org", "!room:example.org", "$", "x"):
        message = read(text("x", **{"m.relates_to": {"rel_type": "m.thread", "event_id": named}}))
        assert message.thread_id is None


def test_quote_of_a_message_that_is_no_reply_stays() -> None:
    assert read(text("> <a> quoted\n\nmine")).text == "> <a> quoted\n\nmine"
    assert strip_quote("> a plain quote") == "> a plain quote"


def test_file_has_its_caption_and_its_name() -> None:
    content = {"msgtype": "m.image", "body": "look", "filename": "a.png", "url": "mxc://example.org/abc"}
    message = read(event({**content, "info": {"mimetype": "image/png"}}))
    assert (message.kind, message.text) == ("image", "look")
    assert message.media == MediaAddress("example.org", "abc", "a.png", "image/png")
    without = read(event({"msgtype": "m.file", "body": "a.txt", "url": "mxc://example.org/abc"}))
    assert without.text == ""
    assert without.media is not None
    assert (without.media.name, without.media.mime) == ("a.txt", "application/octet-stream")


@pytest.mark.parametrize(
    "url",
    ["mxc://../..", "mxc://a", "mxc://a/b/c", "https://a/b", "mxc:///b", "mxc://a/..", 5, "mxc://a/" + "b" * 1000],
)
def test_address_that_is_none_is_not_fetched(url: Any) -> None:
    message = read(event({"msgtype": "m.image", "body": "x", "url": url}))
    assert message.media is None


@pytest.mark.parametrize(
    ("scope", "is_direct", "thread"),
    [("room", False, None), ("auto", True, None), ("auto", False, "$1"), ("thread", True, "$1")],
)
def test_scope_decides_where_threads_begin(scope: Any, is_direct: bool, thread: str | None) -> None:
    assert thread_of(RoomMessage("$1", "@a:b", "x"), scope, is_direct=is_direct) == thread
    assert thread_of(RoomMessage("$1", "@a:b", "x", thread_id="$0"), scope, is_direct=is_direct) == "$0"


@pytest.mark.parametrize(
    ("body", "mentions", "is_named"),
    [
        ("hello", {"user_ids": [OWN]}, True),
        ("Hermes: hello", {"user_ids": []}, False),
        ("Hermes: hello", None, True),
        ("hello @bot:example.org", None, True),
        ("Hermesia is nice", None, False),
        ("hello", {"user_ids": OWN}, False),
        ("hello", [], False),
    ],
)
def test_mentions_are_those_that_the_program_names_or_else_the_name(body: str, mentions: Any, is_named: bool) -> None:
    more = {} if mentions is None else {"m.mentions": mentions}
    assert names_bot(read(text(body, **more)), OWN, "Hermes") is is_named


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Hermes: hello", "hello"),
        ("@bot:example.org hello", "hello"),
        ("@bot hello", "hello"),
        ("hello, @bot:example.org", "hello"),
        ("Hermesia is nice", "Hermesia is nice"),
        ("bottle", "bottle"),
        ("Hermes", ""),
    ],
)
def test_name_of_the_bot_is_removed_at_the_ends(given: str, expected: str) -> None:
    assert without_mention(given, OWN, "Hermes") == expected


@pytest.mark.parametrize(
    ("given", "prefix", "expected"),
    [("!new", "!", "/new"), ("! new", "!", "! new"), ("!!", "!", "!!"), ("/new", "!", "/new"), ("!new", "", "!new")],
)
def test_prefix_of_commands_becomes_a_slash(given: str, prefix: str, expected: str) -> None:
    assert as_command(given, prefix) == expected
