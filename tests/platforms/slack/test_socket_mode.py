"""Socket mode: what is stored is acknowledged, and a lost connection loses nothing."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.gateway.engine.ports import Admission, Inbound, NotSent
from hermes.platforms.slack.adapter import SlackAdapter
from hermes.platforms.testing import RecordingInbox
from hermes.platforms.testing.harness import QUIET_S, eventually
from tests.platforms.slack.adapters import connected, make_adapter
from tests.platforms.slack.server import (
    ALICE,
    APP_TOKEN,
    BOB,
    BOT,
    CHANNEL,
    DIRECT,
    SEVERAL,
    TEAM,
    TOKEN,
    SlackServer,
    message_event,
)

Test = Callable[[SlackAdapter, RecordingInbox], Awaitable[None]]


def run(tmp_path: Path, server: SlackServer, test: Test, **options: Any) -> None:
    async def with_adapter() -> None:
        async with connected(tmp_path, server, **options) as (adapter, inbox):
            await test(adapter, inbox)

    asyncio.run(with_adapter())


async def acknowledged(server: SlackServer, *event_ids: str) -> None:
    await eventually(lambda: set(event_ids) <= set(server.acknowledged), f"{event_ids} are acknowledged")


def test_connection_is_replaced_when_slack_wants_it_and_the_old_one_acknowledges(
    tmp_path: Path, server: SlackServer
) -> None:
    async def test(adapter: SlackAdapter, inbox: RecordingInbox) -> None:
        inbox.hold()
        server.say("one")
        await eventually(lambda: inbox.calls == 1, "the first message arrives")
        server.send_raw(json.dumps({"type": "disconnect", "reason": "refresh_requested"}))
        await eventually(lambda: server.connections == 2, "a second connection")
        assert server.acknowledged == []
        inbox.release()
        await acknowledged(server, "Ev000001")
        server.say("two")
        await eventually(lambda: inbox.texts == ["one", "two"], "the second message arrives")
        await eventually(lambda: server.open_connections == 1, "the old connection is closed")

    run(tmp_path, server, test)


def test_slack_is_asked_again_until_it_gives_a_connection(
    tmp_path: Path, server: SlackServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(adapter: SlackAdapter, inbox: RecordingInbox) -> None:
        server.fail("apps.connections.open", "internal_error", 500, "invalid_auth", {"ok": True, "url": "file:///x"})
        server.fail("apps.connections.open", {"ok": True, "url": "ws://127.0.0.1:9/?ticket=secret-ticket"})
        server.disconnect()
        await eventually(lambda: len(server.called("apps.connections.open")) == 7, "Slack is asked again")
        await eventually(lambda: server.connections == 2, "a second connection")
        server.say("hello")
        await eventually(lambda: inbox.texts == ["hello"], "the message arrives")

    with caplog.at_level(logging.DEBUG):
        run(tmp_path, server, test)
    assert "Slack is not connected" in caplog.text
    for secret in (TOKEN, APP_TOKEN, "secret-ticket"):
        assert secret not in caplog.text


@pytest.mark.parametrize(
    ("method", "failure"),
    [
        ("auth.test", "invalid_auth"),
        ("auth.test", {"ok": True, "user": "no id"}),
        ("apps.connections.open", "invalid_auth"),
        ("apps.connections.open", {"ok": True}),
    ],
)
def test_start_fails_with_the_reason_and_can_be_repeated(
    tmp_path: Path, server: SlackServer, method: str, failure: Any
) -> None:
    async def test() -> None:
        adapter, inbox = make_adapter(tmp_path, server.base_url), RecordingInbox()
        server.fail(method, failure)
        with pytest.raises(NotSent) as caught:
            await adapter.start(inbox)
        await adapter.stop()
        assert any(each in str(caught.value) for each in ("invalid_auth", "no address", "who the bot is"))
        await adapter.start(inbox)
        assert adapter.describe() == "@hermes in Work (https://work.slack.com/)"
        server.say("hello")
        await eventually(lambda: inbox.texts == ["hello"], "the message arrives")
        await adapter.stop()

    asyncio.run(test())


def test_messages_of_a_chat_keep_their_order_and_do_not_wait_for_other_chats(
    tmp_path: Path, server: SlackServer
) -> None:
    server.files["slow"] = ("text/plain", b"x")
    server.fail("file", 500, 500)

    async def test(adapter: SlackAdapter, inbox: RecordingInbox) -> None:
        server.say(
            "first", files=[{"name": "slow", "mimetype": "text/plain", "url_private": f"{server.origin}/files/slow"}]
        )
        server.say("second")
        server.say("elsewhere", "D2")
        await eventually(lambda: len(inbox.texts) == 3, "all messages arrive")
        assert inbox.texts == ["elsewhere", "first", "second"]

    run(tmp_path, server, test)


def test_hostile_envelopes_are_acknowledged_or_left_out_and_block_nothing(tmp_path: Path, server: SlackServer) -> None:
    async def test(adapter: SlackAdapter, inbox: RecordingInbox) -> None:
        for text in ("{", "[" * 100_000, '"x"', "5", '{"type": "hello"}', '{"envelope_id": 5}', '{"type": []}'):
            server.send_raw(text)
        envelopes: list[dict[str, Any]] = [
            {"type": "events_api"},
            {"type": "events_api", "payload": "x"},
            {"type": "events_api", "payload": {"type": "event_callback", "team_id": TEAM, "event": {"type": {}}}},
            {"type": "interactive", "payload": {"type": "block_actions"}},
            {"type": "slash_commands", "payload": {"command": 5}},
            {"type": ["events_api"], "payload": {}},
        ]
        for number, envelope in enumerate(envelopes):
            server.push({"envelope_id": f"bad{number}", **envelope})
        server.deliver({**message_event("other", DIRECT, ALICE, "1.1")}, "EvOther", team_id="T2")
        server.deliver({**message_event("x", DIRECT, ALICE, "1.2"), "subtype": {"a": 1}}, "EvSub")
        server.say("good")
        await eventually(lambda: inbox.texts == ["good"], "the good message arrives")
        await acknowledged(server, *(f"bad{number}" for number in range(len(envelopes))), "EvOther", "EvSub")
        assert server.connections == 1

    run(tmp_path, server, test)


def test_huge_text_is_passed_on_and_a_larger_frame_only_ends_the_connection(
    tmp_path: Path, server: SlackServer
) -> None:
    async def test(adapter: SlackAdapter, inbox: RecordingInbox) -> None:
        server.say("<@U9>" + "x" * 1_000_000)
        await eventually(lambda: len(inbox.texts) == 1, "the large message arrives")
        assert len(inbox.texts[0]) == 1_000_003
        server.send_raw(json.dumps({"envelope_id": "huge", "text": "x" * 5_000_000}))
        await eventually(lambda: server.connections == 2, "a second connection")
        server.say("after")
        await eventually(lambda: inbox.texts[1:] == ["after"], "the next message arrives")

    run(tmp_path, server, test)


def test_event_and_mention_of_one_message_are_one_message(tmp_path: Path, server: SlackServer) -> None:
    async def test(adapter: SlackAdapter, inbox: RecordingInbox) -> None:
        ts = server.say(f"<@{BOT}> hello", CHANNEL)
        event = message_event(f"<@{BOT}> hello", CHANNEL, ALICE, ts)
        del event["channel_type"]
        server.deliver({**event, "type": "app_mention"}, "EvMention")
        await acknowledged(server, "EvMention")
        assert inbox.texts == ["hello"]

    run(tmp_path, server, test)


def test_message_is_described_for_the_model(tmp_path: Path, server: SlackServer) -> None:
    async def test(adapter: SlackAdapter, inbox: RecordingInbox) -> None:
        ts = server.say(f"<@{BOT}> ask <@{BOB}> &amp; <!here>", CHANNEL, attachments=[{"text": f"see <@{ALICE}>"}])
        await eventually(lambda: len(inbox.accepted) == 1, "the message arrives")
        (inbound,) = inbox.accepted
        assert inbound.text == "ask @Bob Builder & @here\n[a shared message]\nsee @Alice"
        source = inbound.source
        assert (source.chat_type, source.chat_name, source.user_name) == ("channel", "general", "Alice")
        assert (source.thread_id, source.guild_id, source.user_id) == (ts, TEAM, ALICE)
        assert (inbound.message_id, inbound.delivery_id) == (ts, f"Ev{ts[-6:]}")

    run(tmp_path, server, test)


def test_mention_alone_is_a_message_and_an_empty_message_is_none(tmp_path: Path, server: SlackServer) -> None:
    async def test(adapter: SlackAdapter, inbox: RecordingInbox) -> None:
        server.say(" ")
        server.say(f"<@{BOT}>", CHANNEL)
        await acknowledged(server, "Ev000001", "Ev000002")
        assert inbox.texts == ["@hermes"]

    run(tmp_path, server, test)


def test_names_are_asked_once_and_a_message_does_not_need_them(tmp_path: Path, server: SlackServer) -> None:
    server.fail("users.info", 500, "missing_scope")

    async def test(adapter: SlackAdapter, inbox: RecordingInbox) -> None:
        for text in ("one", "two", "three"):  # fails, is refused for good, is not asked again
            server.say(text)
        await eventually(lambda: inbox.texts == ["one", "two", "three"], "the messages arrive")
        assert [each.source.user_name for each in inbox.accepted] == [None, None, None]
        assert len(server.called("users.info")) == 2

    run(tmp_path, server, test)


def test_mention_in_a_chat_of_unknown_kind_waits_until_slack_says_the_kind(tmp_path: Path, server: SlackServer) -> None:
    server.fail("conversations.info", 500)

    async def test(adapter: SlackAdapter, inbox: RecordingInbox) -> None:
        event = message_event(f"<@{BOT}> hello", SEVERAL, ALICE, "1.1")
        del event["channel_type"]
        server.deliver({**event, "type": "app_mention"}, "Ev1")
        await eventually(lambda: len(server.called("conversations.info")) == 1, "the kind is asked")
        await asyncio.sleep(QUIET_S)
        assert server.acknowledged == []
        server.disconnect()
        await acknowledged(server, "Ev1")
        assert inbox.accepted[0].source.chat_type == "group"

    run(tmp_path, server, test)


def test_replies_in_a_thread_of_the_bot_need_no_mention(tmp_path: Path, server: SlackServer) -> None:
    mine, other = "1690000000.000001", "1690000000.000002"
    server.page_size = 2
    server.messages[CHANNEL] = [
        *({"ts": f"1690000001.{number:06}", "user": BOB, "text": "noise", "thread_ts": mine} for number in range(5)),
        {"ts": "1690000002.000001", "user": BOT, "text": "answered before", "thread_ts": mine},
        {"ts": other, "user": BOB, "text": "unrelated"},
    ]

    async def test(adapter: SlackAdapter, inbox: RecordingInbox) -> None:
        ts = server.say("between people", CHANNEL, thread_ts=other)
        await acknowledged(server, f"Ev{ts[-6:]}")
        server.say("for the bot", CHANNEL, thread_ts=mine)
        server.say("and more", CHANNEL, thread_ts=mine)
        server.say(f"<@{BOT}> join us", CHANNEL, thread_ts=other)
        server.say("now for the bot", CHANNEL, thread_ts=other)
        wanted = ["for the bot", "and more", "join us", "now for the bot"]
        await eventually(lambda: inbox.texts == wanted, "the messages arrive")
        assert {each["ts"] for each in server.called("conversations.replies")} == {mine, other}

    run(tmp_path, server, test)


@pytest.mark.parametrize(("failure", "is_acknowledged"), [("missing_scope", True), ("pause", False)])
def test_thread_that_cannot_be_read_is_not_the_bots_unless_slack_may_say_so_later(
    tmp_path: Path, server: SlackServer, failure: str, is_acknowledged: bool
) -> None:
    server.fail("conversations.replies", failure)

    async def test(adapter: SlackAdapter, inbox: RecordingInbox) -> None:
        ts = server.say("a reply", CHANNEL, thread_ts="1690000000.000001")
        await eventually(lambda: bool(server.called("conversations.replies")), "the thread is read")
        server.say("a marker")
        await eventually(lambda: inbox.texts == ["a marker"], "the marker arrives")
        await eventually(lambda: "Ev000002" in server.acknowledged, "the marker is acknowledged")
        assert (f"Ev{ts[-6:]}" in server.acknowledged) is is_acknowledged

    run(tmp_path, server, test)


def test_chat_learns_why_a_message_was_refused_but_not_each_time(tmp_path: Path, server: SlackServer) -> None:
    async def refuse(inbound: Inbound) -> Admission:
        return Admission("refused", code="unauthorized", message="I do not know you <!here>")

    async def test() -> None:
        adapter = make_adapter(tmp_path, server.base_url)
        await adapter.start(refuse)
        server.files["a.txt"] = ("text/plain", b"secret")
        file = {"name": "a.txt", "mimetype": "text/plain", "url_private": f"{server.origin}/files/a.txt"}
        for _ in range(3):
            server.say("hello", files=[file])
        await acknowledged(server, "Ev000001", "Ev000002", "Ev000003")
        await adapter.stop()

    asyncio.run(test())
    assert server.shown() == ["I do not know you &lt;!here&gt;"]
    assert [each for each in (tmp_path / "media").rglob("*") if each.is_file()] == []
