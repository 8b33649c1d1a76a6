"""Updates by polling: stored before they are acknowledged, each once, with their files."""

from __future__ import annotations

import asyncio
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import HermesError
from hermes.gateway.engine.ports import Admission, Inbound
from hermes.platforms.telegram.bot import TelegramAdapter
from hermes.platforms.testing.harness import RecordingInbox, eventually
from tests.platforms.strangers import no_user_may_talk
from tests.platforms.telegram.bot_api import TOKEN, BotApi, mention, message_of
from tests.platforms.telegram.bots import make_adapter, running


@pytest.fixture
def adapter(api: BotApi, tmp_path: Path) -> TelegramAdapter:
    return make_adapter(tmp_path, api.base_url)


def files_of(home: Path) -> list[Path]:
    """The stored files of users."""
    return sorted((home / "media" / "telegram").glob("*"))


async def received(inbox: RecordingInbox, count: int) -> list[Inbound]:
    """Wait for messages."""
    await eventually(lambda: len(inbox.accepted) >= count, f"{count} messages arrive")
    return inbox.accepted


def test_messages_of_before_the_start_are_read_in_their_order(api: BotApi, adapter: TelegramAdapter) -> None:
    for text in ("one", "two", "three"):
        api.say(text)

    async def run() -> None:
        async with running(adapter) as inbox:
            await received(inbox, 3)
            assert inbox.texts == ["one", "two", "three"]

    asyncio.run(run())
    assert [each.get("drop_pending_updates", "false").lower() for each in api.sent("deleteWebhook")] == ["false"]
    assert {each["allowed_updates"] for each in api.sent("getUpdates")} == {'["message", "channel_post"]'}


def test_offset_stays_before_a_message_that_is_not_stored(api: BotApi, adapter: TelegramAdapter) -> None:
    """Other chats go on, but nothing after the message is acknowledged."""
    first = api.deliver({"message": message_of(1, "one", chat=7)})
    api.deliver({"message": message_of(2, "two", chat=8, user=8)})

    class Inbox(RecordingInbox):
        is_down = True

        async def __call__(self, inbound: Inbound) -> Admission:
            if self.is_down and inbound.source.chat_id == "7":
                self.calls += 1
                return Admission("refused", code="store_busy", message="later")
            return await super().__call__(inbound)

    async def run() -> None:
        inbox = Inbox()
        await adapter.start(inbox)
        try:
            await eventually(lambda: inbox.calls >= 3, "the message is tried again")
            assert (api.offset, inbox.texts) == (0, ["two"])
            inbox.is_down = False
            await eventually(lambda: api.offset > first + 1, "both are acknowledged")
            assert inbox.texts == ["two", "one"]
        finally:
            await adapter.stop()

    asyncio.run(run())


def test_message_that_fails_for_an_unknown_reason_does_not_block_the_others(
    api: BotApi, adapter: TelegramAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    api.say("poison")
    api.say("good")

    class Inbox(RecordingInbox):
        async def __call__(self, inbound: Inbound) -> Admission:
            if inbound.text == "poison":
                raise ArithmeticError("secret of the message")
            return await super().__call__(inbound)

    async def run() -> None:
        inbox = Inbox()
        await adapter.start(inbox)
        await eventually(lambda: inbox.texts == ["good"], "the good message arrives")
        await adapter.stop()

    asyncio.run(run())
    assert "is left out" in caplog.text
    assert "secret" not in caplog.text


def test_album_is_passed_on_with_its_files(api: BotApi, adapter: TelegramAdapter, tmp_path: Path) -> None:
    for number in range(3):
        photo = [api.add_file(b"picture %d" % number)]
        api.say("", photo=photo, media_group_id="g", **({"caption": "look"} if number == 0 else {}))

    async def run() -> None:
        async with running(adapter) as inbox:
            messages = await received(inbox, 3)
            assert inbox.texts == ["look", "", ""]
            assert {each.message_type for each in messages} == {"image"}
            contents = [Path(each.media[0]["path"]).read_bytes() for each in messages]
            assert contents == [b"picture 0", b"picture 1", b"picture 2"]
            described = {**messages[0].media[0], "path": ""}
            assert described == {"path": "", "mime": "image/jpeg", "name": "photo.jpg", "type": "image"}

    asyncio.run(run())
    assert {stat.S_IMODE(each.stat().st_mode) for each in files_of(tmp_path)} == {0o600}
    assert stat.S_IMODE((tmp_path / "media" / "telegram").stat().st_mode) == 0o700


def test_album_of_a_group_is_for_the_bot_if_one_of_its_messages_is(api: BotApi, adapter: TelegramAdapter) -> None:
    group: dict[str, Any] = {"chat": -100, "kind": "supergroup", "media_group_id": "g"}
    entities = {"caption_entities": mention("@test_bot look")["entities"], "caption": "@test_bot look"}
    for number in range(3):
        api.say("", photo=[api.add_file(b"x")], **group, **(entities if number == 1 else {}))
    api.say("", photo=[api.add_file(b"x")], **{**group, "media_group_id": "other"})
    api.say("end", chat=8, user=8)

    async def run() -> None:
        async with running(adapter) as inbox:
            await received(inbox, 4)
            await eventually(lambda: api.offset > 5, "everything is acknowledged")
            assert sorted(inbox.texts) == ["", "", "end", "look"]

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["voice", "document", "video"])
def test_file_of_a_message_is_stored(api: BotApi, adapter: TelegramAdapter, kind: str) -> None:
    more = {"file_name": "../../etc/passwd.sh", "mime_type": "text/x-sh"} if kind == "document" else {}
    api.say("", caption="read this", **{kind: {**api.add_file(b"content"), **more}})

    async def run() -> None:
        async with running(adapter) as inbox:
            (message,) = await received(inbox, 1)
            path = Path(message.media[0]["path"])
            assert path.parent.name == "telegram"
            assert (path.read_bytes(), message.text) == (b"content", "read this")

    asyncio.run(run())


@pytest.mark.parametrize(
    ("size", "told"),
    [
        pytest.param(5_000, "[photo.jpg is larger than 0 MB and was not read]", id="told"),
        pytest.param(1, "[photo.jpg could not be read]", id="not told"),
    ],
)
def test_file_that_is_too_large_is_named_in_the_text(
    api: BotApi, adapter: TelegramAdapter, tmp_path: Path, size: int, told: str
) -> None:
    api.say("", photo=[api.add_file(b"x" * 5_000, size)], caption="big")

    async def run() -> None:
        async with running(adapter) as inbox:
            (message,) = await received(inbox, 1)
            assert (message.text, list(message.media), message.message_type) == (f"big\n{told}", [], "text")

    asyncio.run(run())
    assert files_of(tmp_path) == []


def test_file_is_fetched_again_after_an_error_and_given_up_at_last(api: BotApi, adapter: TelegramAdapter) -> None:
    api.fail("file", 500, "ok", 500, 500, 500)
    for _ in range(2):
        api.say("", photo=[api.add_file(b"content")])

    async def run() -> None:
        async with running(adapter) as inbox:
            first, second = await received(inbox, 2)
            assert Path(first.media[0]["path"]).read_bytes() == b"content"
            assert second.text == "[photo.jpg could not be read]"

    asyncio.run(run())


def test_file_of_a_user_who_may_not_talk_is_not_fetched(api: BotApi, adapter: TelegramAdapter, tmp_path: Path) -> None:
    adapter._context = replace(adapter._context, may_talk=no_user_may_talk)
    api.say("", photo=[api.add_file(b"from a stranger")])

    async def run() -> None:
        async with running(adapter) as inbox:
            (message,) = await received(inbox, 1)
            assert (message.text, list(message.media)) == ("[a file that was not received]", [])

    asyncio.run(run())
    assert files_of(tmp_path) == []


def test_file_of_a_message_that_is_not_accepted_is_deleted(
    api: BotApi, adapter: TelegramAdapter, tmp_path: Path
) -> None:
    api.say("", photo=[api.add_file(b"from a stranger")])

    async def refuse(inbound: Inbound) -> Admission:
        assert len(files_of(tmp_path)) == 1
        return Admission("refused", code="unauthorized")

    async def run() -> None:
        await adapter.start(refuse)
        await eventually(lambda: api.offset > 1, "the message is acknowledged")
        await adapter.stop()

    asyncio.run(run())
    assert files_of(tmp_path) == []


def test_file_of_a_message_that_waits_for_the_store_is_fetched_once(
    api: BotApi, adapter: TelegramAdapter, tmp_path: Path
) -> None:
    api.say("", photo=[api.add_file(b"content")])

    async def run() -> None:
        async with running(adapter) as inbox:
            inbox.is_failing = True
            await eventually(lambda: inbox.calls > 3, "the message is tried again")
            inbox.is_failing = False
            (message,) = await received(inbox, 1)
            assert files_of(tmp_path) == [Path(message.media[0]["path"])]

    asyncio.run(run())


def test_refusal_is_sent_once_in_a_while(api: BotApi, adapter: TelegramAdapter) -> None:
    for number in range(5):
        api.say(f"message {number}", is_topic_message=True, message_thread_id=11)

    async def refuse(inbound: Inbound) -> Admission:
        return Admission("refused", code="unauthorized", message="Your code is ABC.")

    async def run() -> None:
        await adapter.start(refuse)
        await eventually(lambda: api.offset > 5, "all are acknowledged")
        await eventually(lambda: len(api.texts()) > 0, "the refusal is sent")
        await adapter.stop()

    asyncio.run(run())
    (told,) = api.sent("sendMessage")
    assert (told["text"], told["message_thread_id"]) == ("Your code is ABC.", "11")


def test_own_post_in_a_channel_is_not_answered(api: BotApi, adapter: TelegramAdapter) -> None:
    async def run() -> None:
        async with running(adapter) as inbox:
            await adapter._connected().say("-200", None, "/help yourself")
            (number,) = api.messages
            api.deliver({"channel_post": message_of(number, "/help yourself", chat=-200, kind="channel")})
            api.say("/help me", chat=-200, kind="channel")
            await received(inbox, 1)
            assert inbox.texts == ["/help me"]

    asyncio.run(run())


def test_hostile_updates_are_acknowledged_and_named_in_the_log_without_their_content(
    api: BotApi, adapter: TelegramAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    deep: dict[str, Any] = message_of(1, "deep-secret")
    for _ in range(300):
        deep = message_of(1, "deep-secret", reply_to_message=deep)
    for message in (
        {"chat": "secret"},
        message_of(1, "x", sender=["secret"]),
        message_of(1, "secret", date=2**90),
        message_of(1, "", photo="secret"),
        {"text": "secret" * 200_000, "chat": {}, "message_id": -1},
        deep,
    ):
        api.deliver({"message": message})
    api.deliver(["no object"])
    api.deliver({"message": message_of(-5, "a\0b\ud800", chat=-7, user=-7)})
    last = api.deliver({"message": message_of(2, "x" * 1_000_000)})

    async def run() -> None:
        async with running(adapter) as inbox:
            await eventually(lambda: api.offset > last, "everything is acknowledged")
            assert {"a\0b\ud800", "x" * 1_000_000} <= set(inbox.texts)

    asyncio.run(run())
    assert "cannot be read and is left out" in caplog.text
    assert "secret" not in caplog.text


def test_other_poller_is_named_once_and_polling_goes_on(
    api: BotApi, adapter: TelegramAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    conflict = {"status": 409, "description": "Conflict: terminated by other getUpdates request"}
    api.fail("getUpdates", *(dict(conflict) for _ in range(4)))

    async def run() -> None:
        async with running(adapter) as inbox:
            api.say("after")
            await received(inbox, 1)

    asyncio.run(run())
    assert caplog.text.count("another program receives for this bot") == 1


@pytest.mark.parametrize(
    "failure", [500, 502, "close", "hang", {"status": 429, "description": "x", "parameters": {"retry_after": 1}}]
)
def test_polling_goes_on_after_an_error(api: BotApi, adapter: TelegramAdapter, failure: Any) -> None:
    api.fail("getUpdates", failure)

    async def run() -> None:
        async with running(adapter) as inbox:
            api.say("after")
            await received(inbox, 1)

    asyncio.run(run())


def test_wrong_token_is_named_without_the_token(api: BotApi, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    adapter = make_adapter(tmp_path, api.base_url, "1:wrong-token")
    with pytest.raises(HermesError, match="refuses the token") as caught:
        asyncio.run(adapter.start(RecordingInbox()))
    assert "wrong-token" not in str(caught.value) + caplog.text


def test_unreachable_server_is_named_without_the_token(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    adapter = make_adapter(tmp_path, "http://127.0.0.1:1")
    with pytest.raises(HermesError, match="cannot be used now") as caught:
        asyncio.run(adapter.start(RecordingInbox()))
    assert TOKEN.partition(":")[2] not in str(caught.value) + caplog.text


def test_log_of_a_whole_conversation_has_no_token(
    api: BotApi, adapter: TelegramAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    api.say("", photo=[api.add_file(b"x")])
    api.fail("file", 500, 500, 500)
    api.fail("getUpdates", 500, "close")

    async def run() -> None:
        async with running(adapter) as inbox:
            await received(inbox, 1)
            await adapter._connected().say("7", None, "hello")

    asyncio.run(run())
    assert TOKEN.partition(":")[2] not in caplog.text


def test_apps_are_offered_the_commands_of_everybody(api: BotApi, adapter: TelegramAdapter) -> None:
    async def run() -> None:
        async with running(adapter):
            await eventually(lambda: bool(api.sent("setMyCommands")), "the commands are offered")

    asyncio.run(run())
    (offered,) = api.sent("setMyCommands")
    assert '"new"' in offered["commands"]
    assert '"restart"' not in offered["commands"]


def test_adapter_can_be_started_again(api: BotApi, adapter: TelegramAdapter) -> None:
    async def run() -> None:
        for text in ("one", "two"):
            async with running(adapter) as inbox:
                api.say(text)
                await eventually(lambda: text in inbox.texts, "the message arrives")  # noqa: B023 - called at once

    asyncio.run(run())
    assert adapter.describe() == "Test (https://t.me/test_bot)"
