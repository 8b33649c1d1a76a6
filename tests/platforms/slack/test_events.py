"""Events of Slack as messages: whose they are, for whom, and which lane they belong to."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.gateway.keys import build_session_key
from hermes.platforms.slack.events import (
    MAX_FILES,
    ChatKind,
    Identity,
    is_clearly_addressed,
    kind_of,
    read_command,
    read_event,
    source_of,
)
from hermes.platforms.slack.settings import SlackSettings
from tests.platforms.slack.server import ALICE, BOT, BOT_ID, CHANNEL, DIRECT, SEVERAL, TEAM, message_event

ME = Identity(BOT, BOT_ID, TEAM)
TS, ROOT = "1700000000.000002", "1700000000.000001"


def payload(event: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "event_callback", "team_id": TEAM, "event_id": "Ev1", "event": event, **fields}


def event(text: Any = "hi", channel: str = DIRECT, **fields: Any) -> dict[str, Any]:
    return {**message_event(text, channel, ALICE, TS), **fields}


def settings(**fields: Any) -> SlackSettings:
    return SlackSettings("xoxb-1", **fields)


@pytest.mark.parametrize(
    ("channel", "fields", "options", "key"),
    [
        (DIRECT, {}, {}, "agent:main:slack:dm:D1"),
        (DIRECT, {}, {"dm_top_level_threads_as_sessions": True}, f"agent:main:slack:dm:D1:{TS}"),
        (DIRECT, {"thread_ts": ROOT}, {}, f"agent:main:slack:dm:D1:{ROOT}"),
        (CHANNEL, {}, {}, f"agent:main:slack:channel:C1:{TS}"),
        (CHANNEL, {"thread_ts": ROOT}, {}, f"agent:main:slack:channel:C1:{ROOT}"),
        (CHANNEL, {"thread_ts": TS}, {"reply_in_thread": False}, "agent:main:slack:channel:C1:UALICE"),
        (CHANNEL, {"thread_ts": ROOT}, {"reply_in_thread": False}, f"agent:main:slack:channel:C1:{ROOT}"),
        (SEVERAL, {}, {}, f"agent:main:slack:group:G1:{TS}"),
        (SEVERAL, {}, {"reply_in_thread": False}, "agent:main:slack:group:G1:UALICE"),
    ],
)
def test_every_kind_of_chat_has_its_session_key(
    channel: str, fields: dict[str, Any], options: dict[str, Any], key: str
) -> None:
    message = read_event(payload(event("hi", channel, **fields)), ME)
    assert message is not None
    kind = kind_of(message)
    assert kind is not None
    source = source_of(message, kind, settings(**options), team=TEAM)
    assert build_session_key(source) == key
    assert (source.guild_id, source.message_id, source.user_id) == (TEAM, TS, ALICE)


@pytest.mark.parametrize(
    ("kind", "fields", "options", "is_for_bot"),
    [
        ("im", {}, {}, True),
        ("channel", {}, {}, False),
        ("mpim", {}, {}, False),
        ("channel", {"text": f"<@{BOT}> hi"}, {}, True),
        ("channel", {"text": f"<@{BOT}|hermes> hi"}, {}, True),
        ("channel", {"text": f"<@{BOT}X> hi"}, {}, False),
        ("channel", {"type": "app_mention"}, {}, True),
        ("channel", {}, {"require_mention": False}, True),
        ("channel", {}, {"free_response_chats": frozenset({CHANNEL})}, True),
        ("channel", {}, {"free_response_chats": frozenset({"C2"})}, False),
        ("channel", {"thread_ts": ROOT, "parent_user_id": BOT}, {}, True),
        ("channel", {"thread_ts": ROOT, "parent_user_id": ALICE}, {}, False),
    ],
)
def test_message_is_for_the_bot(
    kind: ChatKind, fields: dict[str, Any], options: dict[str, Any], is_for_bot: bool
) -> None:
    message = read_event(payload({**event("hi", CHANNEL), **fields}), ME)
    assert message is not None
    assert is_clearly_addressed(message, kind, ME, settings(**options)) is is_for_bot


@pytest.mark.parametrize(
    "fields",
    [
        {"user": BOT},
        {"bot_id": "BOTHER"},
        {"bot_profile": {"name": "x"}},
        {"app_id": "A2"},
        {"hidden": True},
        {"user": "USLACKBOT"},
        {"subtype": "bot_message"},
        {"subtype": "message_changed"},
        {"subtype": "message_deleted"},
        {"subtype": "channel_join"},
        {"subtype": ["file_share"]},
        {"type": "reaction_added"},
        {"type": ["message"]},
    ],
)
def test_what_no_person_wrote_is_left_out(fields: dict[str, Any]) -> None:
    assert read_event(payload({**event(), **fields}), ME) is None


@pytest.mark.parametrize("subtype", ["file_share", "thread_broadcast", "me_message", None, ""])
def test_messages_of_people_with_a_subtype_are_messages(subtype: str | None) -> None:
    assert read_event(payload(event(subtype=subtype)), ME) is not None


@pytest.mark.parametrize(
    "broken",
    [
        {"event": None},
        {"event": []},
        {"event": {"type": "message"}},
        {"event": event(user=None)},
        {"event": event(user=["U1"])},
        {"event": event(user="U1:x")},
        {"event": event(user="U" * 65)},
        {"event": {**event(), "channel": {"id": "C1"}}},
        {"event": event(text={"a": 1})},
        {"event": event(files="many")},
        {"event": event(attachments={"a": 1})},
        {"event": {**event(), "ts": 1700000000.1}},
        {"event": {**event(), "ts": "1.2.3"}},
        {"event": event(thread_ts="soon")},
        {"event_id": None},
        {"event_id": "Ev\n1"},
        {"team_id": "T2"},
        {"team_id": None},
        {"team_id": [TEAM], "authorizations": [{"team_id": "T3"}, 5]},
    ],
)
def test_malformed_events_and_those_of_other_workspaces_are_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"missing|malformed|another workspace"):
        read_event(payload(event(), **broken) if "event" not in broken else payload(**broken), ME)


@pytest.mark.parametrize("fields", [{"context_team_id": TEAM}, {"authorizations": [{"team_id": TEAM}]}])
def test_shared_channel_of_another_workspace_reaches_the_bot(fields: dict[str, Any]) -> None:
    assert read_event(payload(event(), team_id="T2", **fields), ME) is not None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=5) | st.just(BOT),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.dictionaries(st.sampled_from(sorted({*event(), "subtype", "files", "attachments", "thread_ts"})), VALUES),
    st.dictionaries(st.sampled_from(["type", "team_id", "event_id", "event", "authorizations"]), VALUES),
)
def test_any_event_is_a_message_or_none_or_refused(inner: dict[str, Any], outer: dict[str, Any]) -> None:
    broken = {**payload({**event(), **inner}), **outer}
    with contextlib.suppress(ValueError):
        message = read_event(broken, ME)
        assert message is None or message.user != BOT
    with contextlib.suppress(ValueError):
        read_command({**broken, **inner, "command": "/new"}, ME)


def test_only_some_files_and_shared_messages_are_read() -> None:
    shared = [{"text": "first"}, {"fallback": "second"}, {"text": 5}, "x", *[{"text": "y" * 9000}] * 9]
    message = read_event(payload(event(files=[{"id": "F"}] * 50 + ["x"], attachments=shared)), ME)
    assert message is not None
    assert len(message.files) == MAX_FILES
    assert message.shared[:2] == ("first", "second")
    assert [len(each) for each in message.shared] == [5, 6, 4000, 4000, 4000]


@pytest.mark.parametrize(
    ("command", "text", "expected"),
    [
        ("/hermes", "new", "/new"),
        ("/hermes", "/title My work", "/title My work"),
        ("/hermes", "", "/help"),
        ("/new", "", "/new"),
        ("/queue", " do it ", "/queue do it"),
    ],
)
def test_slash_commands_are_commands(command: str, text: str, expected: str) -> None:
    form = {"command": command, "text": text, "team_id": TEAM, "channel_id": "C1", "user_id": ALICE}
    message = read_command({**form, "trigger_id": "1.2.abc"}, ME)
    assert (message.text, message.event_id, message.is_mention) == (expected, "1.2.abc", True)
    assert source_of(message, "channel", settings()).thread_id is None


@pytest.mark.parametrize(
    "broken",
    [{"command": None}, {"command": "new"}, {"text": [1]}, {"trigger_id": "a\nb"}, {"user_id": ""}, {"team_id": "T2"}],
)
def test_malformed_commands_are_refused(broken: dict[str, Any]) -> None:
    form = {"command": "/new", "text": "", "team_id": TEAM, "channel_id": "C1", "user_id": ALICE, "trigger_id": "1.2.a"}
    with pytest.raises(ValueError, match=r"missing|malformed|another workspace"):
        read_command({**form, **broken}, ME)
