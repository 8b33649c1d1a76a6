"""The adapter on an independent server of Telegram: polling, groups, replies, edits, and two pollers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.gateway.engine.ports import Delivery
from hermes.platforms.telegram.bot import TelegramAdapter
from hermes.platforms.testing.harness import RecordingInbox, eventually
from tests.gateway.reliability.nodes import NodeThread
from tests.gateway.reliability.world import world
from tests.platforms.telegram.bot_api import TOKEN
from tests.platforms.telegram.bots import make_adapter, running
from tests.support.crabline import Crabline, crabline
from tests.support.fetched import PATIENCE_S as INSTALL_S
from tests.support.waiting import wait_until

PATIENCE_S = 30.0
GROUP = {"chatId": "-1001234567890", "chatType": "supergroup"}
MENTION = {"entities": [{"type": "mention", "offset": 0, "length": len("@crabline_bot")}]}

pytestmark = pytest.mark.timeout(INSTALL_S)


@pytest.fixture
def server() -> Iterator[Crabline]:
    with crabline("telegram", botToken=TOKEN) as made:
        yield made


def say(server: Crabline, text: str, **more: Any) -> int:
    """Let a user write, and return the message id."""
    return int(server.say({"chatId": "42", "fromId": 42, "text": text, **more})["update"]["message"]["message_id"])


def texts(server: Crabline) -> list[str]:
    """What the bot has sent."""
    return [each["body"]["text"] for each in server.calls("sendMessage")]


def test_conversation_continues_after_a_restart_and_nothing_is_lost_or_doubled(
    server: Crabline, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world() as place:
        monkeypatch.setenv("HERMES_HOME", str(place.home()))

        def gateway() -> NodeThread:
            return place.thread(adapters=lambda _: [make_adapter(place.home(), server.api_root)])

        first = say(server, "one please")
        node = gateway()
        wait_until(lambda: texts(server) == ["answer to one"], "the first answer", PATIENCE_S)
        node.stop()
        second = say(server, "two please")
        node = gateway()
        wait_until(lambda: texts(server) == ["answer to one", "answer to two"], "the second answer", PATIENCE_S)
        say(server, "three please")
        wait_until(lambda: len(texts(server)) == 3, "the third answer", PATIENCE_S)
        assert texts(server)[2:] == ["answer to three"]
        assert place.lane_of(str(first)) == place.lane_of(str(second)) == "agent:main:telegram:dm:42"
        answers = [text for role, text in place.transcript(str(second)) if role == "assistant"]
        assert answers == ["answer to one", "answer to two", "answer to three"]
        quoted = [json.loads(each["body"]["reply_parameters"]) for each in server.calls("sendMessage")]
        assert [each["message_id"] for each in quoted[:2]] == [first, second]


def test_group_is_answered_when_the_bot_is_meant(server: Crabline, tmp_path: Path) -> None:
    async def run() -> None:
        async with running(make_adapter(tmp_path, server.api_root)) as inbox:
            for text, more in (
                ("unaddressed", {}),
                ("@crabline_bot named", MENTION),
                ("/new@crabline_bot", {}),
                ("/new@other_bot", {}),
                ("@crabline_bot last", MENTION),
            ):
                await asyncio.to_thread(say, server, text, **GROUP, **more)
            await eventually(lambda: "last" in inbox.texts, "the last message arrives")
            assert inbox.texts == ["named", "/new", "last"]
            assert {each.source.chat_type for each in inbox.accepted} == {"group"}

    asyncio.run(run())


def test_preview_is_completed_by_editing_its_message(server: Crabline, tmp_path: Path) -> None:
    adapter = make_adapter(tmp_path, server.api_root)
    message = say(server, "hello")

    async def run() -> None:
        async with running(adapter):
            first = await adapter.send(Delivery("k", "42", "the who", is_final=False, reply_to=str(message)))
            shown = {"message_ids": list(first.message_ids)}
            for _ in range(2):
                last = await adapter.send(Delivery("k", "42", "the **whole**", preview=shown, reply_to=str(message)))
                assert last.message_ids == first.message_ids

    asyncio.run(run())
    assert len(texts(server)) == 1
    assert {each["body"]["text"] for each in server.calls("editMessageText")} == {"the <b>whole</b>"}


def test_two_programs_with_one_token_lose_nothing_and_name_each_other_once(
    server: Crabline, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Two programs with one token, which share no database: Telegram itself refuses one of them."""
    adapters: list[TelegramAdapter] = [make_adapter(tmp_path / name, server.api_root) for name in ("a", "b")]

    async def run() -> None:
        inboxes = [RecordingInbox(), RecordingInbox()]
        for adapter, inbox in zip(adapters, inboxes, strict=True):
            await adapter.start(inbox)
        try:
            await eventually(lambda: "another program receives" in caplog.text, "the conflict is named")
            for number in range(5):
                await asyncio.to_thread(say, server, f"message {number}")
            await eventually(lambda: len({text for each in inboxes for text in each.texts}) == 5, "all arrive")
        finally:
            for adapter in adapters:
                await adapter.stop()

    asyncio.run(run())
    assert 1 <= caplog.text.count("another program receives for this bot") <= 2
