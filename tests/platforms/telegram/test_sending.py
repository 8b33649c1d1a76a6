"""Sending: each message once, errors that say what Telegram has, formatting, files, and groups that move."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from hermes.gateway.delivery.receipts import PartlySent
from hermes.gateway.engine.ports import Delivery, MaybeSent, NotSent
from hermes.platforms.base import Part
from hermes.platforms.base.media import MediaFile
from hermes.platforms.telegram.bot import TelegramAdapter
from hermes.platforms.telegram.formatting import to_html, utf16_length
from tests.platforms.telegram.bot_api import TOKEN, BotApi, message_of, plain_text, rate_limit
from tests.platforms.telegram.bots import make_adapter, running

T = TypeVar("T")
HELLO = Delivery("k1", "7", "hello")


def with_bot(adapter: TelegramAdapter, work: Callable[[TelegramAdapter], Awaitable[T]]) -> T:
    """Run work with an adapter that is connected."""

    async def run() -> T:
        async with running(adapter):
            return await work(adapter)

    return asyncio.run(run())


@pytest.fixture
def adapter(api: BotApi, tmp_path: Path) -> TelegramAdapter:
    return make_adapter(tmp_path, api.base_url)


class TestErrors:
    def refuse(self, adapter: TelegramAdapter, api: BotApi, failure: Any) -> NotSent | MaybeSent:
        api.fail("sendMessage", failure)
        with pytest.raises((NotSent, MaybeSent)) as caught:
            with_bot(adapter, lambda bot: bot.send(HELLO))
        assert TOKEN.partition(":")[2] not in str(caught.value)
        assert isinstance(caught.value, NotSent | MaybeSent)
        return caught.value

    def test_pause_is_passed_on_and_nothing_is_repeated(self, adapter: TelegramAdapter, api: BotApi) -> None:
        error = self.refuse(adapter, api, rate_limit(17))
        assert isinstance(error, NotSent)
        assert (error.retry_after_s, error.is_final) == (17, False)
        assert len(api.sent("sendMessage")) == 1

    @pytest.mark.parametrize("failure", ["lost", "close", "hang", 500, 502, 504])
    def test_lost_result_is_in_doubt_and_nothing_is_repeated(
        self, adapter: TelegramAdapter, api: BotApi, failure: Any
    ) -> None:
        assert isinstance(self.refuse(adapter, api, failure), MaybeSent)
        assert len(api.sent("sendMessage")) == 1

    @pytest.mark.parametrize(
        ("status", "description"),
        [
            (403, "Forbidden: bot was blocked by the user"),
            (400, "Bad Request: chat not found"),
            (413, "Request Entity Too Large"),
        ],
    )
    def test_refusal_is_final(self, adapter: TelegramAdapter, api: BotApi, status: int, description: str) -> None:
        error = self.refuse(adapter, api, {"status": status, "description": description})
        assert isinstance(error, NotSent)
        assert error.is_final
        assert "Telegram" in error.reason

    def test_revoked_token_keeps_the_message(self, adapter: TelegramAdapter, api: BotApi) -> None:
        error = self.refuse(adapter, api, {"status": 401, "description": "Unauthorized"})
        assert isinstance(error, NotSent)
        assert not error.is_final

    def test_server_that_cannot_be_reached_has_nothing(self, adapter: TelegramAdapter, api: BotApi) -> None:
        async def run() -> None:
            async with running(adapter):
                await asyncio.to_thread(api.stop)
                with pytest.raises(NotSent) as caught:
                    await adapter.send(HELLO)
                assert not caught.value.is_final

        asyncio.run(run())

    def test_bot_that_is_not_connected_has_nothing(self, adapter: TelegramAdapter) -> None:
        with pytest.raises(NotSent):
            asyncio.run(adapter.send(HELLO))

    def test_parts_that_were_sent_are_not_sent_again(self, adapter: TelegramAdapter, api: BotApi) -> None:
        text = "\n".join(f"line {number} {'x' * 60}" for number in range(150))
        api.fail("sendMessage", None, rate_limit(1))

        async def run(bot: TelegramAdapter) -> None:
            with pytest.raises(PartlySent) as caught:
                await bot.send(Delivery("k", "7", text))
            done = {"finished_ids": caught.value.finished_ids}
            await bot.send(Delivery("k", "7", text, preview=done))

        with_bot(adapter, run)
        assert "\n".join(api.texts()) == text


class TestTexts:
    def test_markdown_is_shown_formatted(self, adapter: TelegramAdapter, api: BotApi) -> None:
        text = (
            "# Title\n**bold** and *it* and `a < b` and [here](https://example.org/?a=1&b=2)\n```py\nif a < b: x\n```"
        )
        with_bot(adapter, lambda bot: bot.send(Delivery("k", "7", text)))
        (sent,) = api.sent("sendMessage")
        assert sent["parse_mode"] == "HTML"
        assert sent["text"].startswith("<b>Title</b>\n<b>bold</b> and <i>it</i> and <code>a &lt; b</code>")
        assert api.texts() == ["Title\nbold and it and a < b and here\nif a < b: x"]

    def test_text_is_sent_plainly_if_telegram_refuses_its_formatting(
        self, adapter: TelegramAdapter, api: BotApi
    ) -> None:
        api.fail("sendMessage", {"description": "Bad Request: can't parse entities: unclosed"})
        with_bot(adapter, lambda bot: bot.send(Delivery("k", "7", "**bold**")))
        assert api.texts() == ["**bold**"]
        assert "parse_mode" not in api.sent("sendMessage")[1]

    def test_text_with_only_formatting_is_sent_plainly(self, adapter: TelegramAdapter, api: BotApi) -> None:
        with_bot(adapter, lambda bot: bot.send(Delivery("k", "7", "```\n```")))
        assert api.texts() == ["```\n```"]

    def test_characters_that_cannot_be_sent_are_replaced(self, adapter: TelegramAdapter, api: BotApi) -> None:
        with_bot(adapter, lambda bot: bot.send(Delivery("k", "7", "a\0b\ud800c\x1b[0m")))
        assert api.texts() == ["ab?c[0m"]

    def test_long_text_counts_in_utf16(self, adapter: TelegramAdapter, api: BotApi) -> None:
        with_bot(adapter, lambda bot: bot.send(Delivery("k", "7", "😀" * 4000)))
        assert "".join(api.texts()) == "😀" * 4000
        assert max(utf16_length(each) for each in api.texts()) <= 4096

    @pytest.mark.parametrize(("mode", "quoted"), [("off", 0), ("first", 1), ("all", 3)])
    def test_parts_quote_as_configured(self, api: BotApi, tmp_path: Path, mode: str, quoted: int) -> None:
        adapter = make_adapter(tmp_path, api.base_url, reply_to_mode=mode)
        delivery = Delivery("k", "7", "x" * 9000, reply_to="5", thread_id="11")
        with_bot(adapter, lambda bot: bot.send(delivery))
        sent = api.sent("sendMessage")
        quotes = [each["reply_parameters"] for each in sent if "reply_parameters" in each]
        assert (len(sent), len(quotes)) == (3, quoted)
        assert all('"message_id": 5' in each and '"allow_sending_without_reply": true' in each for each in quotes)
        assert {each["message_thread_id"] for each in sent} == {"11"}

    def test_general_topic_and_ids_of_other_platforms_are_left_out(self, adapter: TelegramAdapter, api: BotApi) -> None:
        with_bot(adapter, lambda bot: bot.send(Delivery("k", "-100", "x", thread_id="1", reply_to="$event")))
        (sent,) = api.sent("sendMessage")
        assert not {"message_thread_id", "reply_parameters"} & sent.keys()


class TestEdits:
    def preview(self, *numbers: str) -> dict[str, list[str]]:
        return {"message_ids": list(numbers)}

    def test_same_text_again_is_a_success(self, adapter: TelegramAdapter, api: BotApi) -> None:
        async def run(bot: TelegramAdapter) -> None:
            first = await bot.send(HELLO)
            again = await bot.send(Delivery("k1", "7", "hello", preview=self.preview(*first.message_ids)))
            assert again.message_ids == first.message_ids

        with_bot(adapter, run)
        assert api.texts() == ["hello"]

    def test_deleted_preview_is_sent_as_a_new_message(self, adapter: TelegramAdapter, api: BotApi) -> None:
        with_bot(adapter, lambda bot: bot.send(Delivery("k", "7", "whole", preview=self.preview("55"))))
        assert api.texts() == ["whole"]

    def test_final_text_that_needs_two_messages_shows_each_once(self, adapter: TelegramAdapter, api: BotApi) -> None:
        async def run(bot: TelegramAdapter) -> None:
            first = await bot.send(Delivery("k", "7", "x" * 4000, is_final=False))
            await bot.send(Delivery("k", "7", "x" * 5000, preview=self.preview(*first.message_ids)))

        with_bot(adapter, run)
        assert "".join(api.texts()) == "x" * 5000
        assert len(api.messages) == 2

    @pytest.mark.parametrize(("failure", "kind"), [(rate_limit(2), NotSent), ("hang", MaybeSent)])
    def test_edit_that_fails_says_what_telegram_has(
        self, adapter: TelegramAdapter, api: BotApi, failure: Any, kind: type[Exception]
    ) -> None:
        api.fail("editMessageText", failure)

        async def run(bot: TelegramAdapter) -> None:
            first = await bot.send(HELLO)
            with pytest.raises(kind):
                await bot.send(Delivery("k1", "7", "other", preview=self.preview(*first.message_ids)))

        with_bot(adapter, run)

    def test_message_is_deleted_once(self, adapter: TelegramAdapter, api: BotApi) -> None:
        async def run(bot: TelegramAdapter) -> None:
            (first,) = (await bot.send(HELLO)).message_ids
            for _ in range(2):
                await bot.delete(first, HELLO)

        with_bot(adapter, run)
        assert api.texts() == []

    def test_typing_never_fails(self, adapter: TelegramAdapter, api: BotApi) -> None:
        api.fail("sendChatAction", rate_limit(1), 500)

        async def run(bot: TelegramAdapter) -> None:
            for _ in range(3):
                await bot.typing("7", "11")

        with_bot(adapter, run)
        assert [each["message_thread_id"] for each in api.sent("sendChatAction")] == ["11"] * 3


class TestMovedGroups:
    def test_message_for_a_group_goes_to_the_supergroup_that_it_has_become(
        self, adapter: TelegramAdapter, api: BotApi
    ) -> None:
        moved = {"description": "group chat was upgraded", "parameters": {"migrate_to_chat_id": -1005}}
        api.fail("sendMessage", moved)

        async def run(bot: TelegramAdapter) -> None:
            for text in ("one", "two"):
                await bot.send(Delivery(text, "-5", text))

        with_bot(adapter, run)
        assert api.texts(-1005) == ["one", "two"]
        assert [each["chat_id"] for each in api.sent("sendMessage")] == ["-5", "-1005", "-1005"]

    def test_notice_of_telegram_is_enough(self, adapter: TelegramAdapter, api: BotApi) -> None:
        api.deliver({"message": message_of(api.next_id(), "", chat=-5, kind="group", migrate_to_chat_id=-1005)})

        async def run(bot: TelegramAdapter) -> None:
            while not api.offset:
                await asyncio.sleep(0.01)
            await bot.send(Delivery("k", "-5", "hello"))

        with_bot(adapter, run)
        assert api.texts(-1005) == ["hello"]


class TestFiles:
    def send(self, adapter: TelegramAdapter, path: Path, kind: Any, content: bytes = b"content") -> None:
        path.write_bytes(content)
        part = Part(Delivery("k", "7", "look", reply_to="5"), "look")
        with_bot(adapter, lambda bot: bot.post_file(part, MediaFile(path, kind)))

    @pytest.mark.parametrize(
        ("name", "kind", "method", "field"),
        [
            ("a.png", "image", "sendPhoto", "photo"),
            ("a.ogg", "audio", "sendVoice", "voice"),
            ("a.mp3", "audio", "sendAudio", "audio"),
            ("a.mp4", "video", "sendVideo", "video"),
            ("a.pdf", "file", "sendDocument", "document"),
        ],
    )
    def test_file_is_sent_as_what_it_is(
        self, adapter: TelegramAdapter, api: BotApi, tmp_path: Path, name: str, kind: str, method: str, field: str
    ) -> None:
        self.send(adapter, tmp_path / name, kind)
        (sent,) = api.sent(method)
        assert (sent[field], sent["caption"], sent["chat_id"]) == (b"content", "look", "7")
        assert '"message_id": 5' in sent["reply_parameters"]

    def test_picture_that_telegram_cannot_show_is_sent_as_a_file(
        self, adapter: TelegramAdapter, api: BotApi, tmp_path: Path
    ) -> None:
        api.fail("sendPhoto", {"description": "Bad Request: PHOTO_INVALID_DIMENSIONS"})
        self.send(adapter, tmp_path / "wide.png", "image")
        assert api.sent("sendDocument")[0]["document"] == b"content"

    def test_file_that_is_missing_or_too_large_is_not_sent(
        self, adapter: TelegramAdapter, api: BotApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        part, missing = Part(HELLO, "look"), MediaFile(tmp_path / "missing")
        with pytest.raises(NotSent, match="cannot be read"):
            with_bot(adapter, lambda bot: bot.post_file(part, missing))
        monkeypatch.setattr("hermes.platforms.telegram.outgoing._MAX_UPLOAD_BYTES", 3)
        with pytest.raises(NotSent, match="larger"):
            self.send(adapter, tmp_path / "a.bin", "file")
        assert api.messages == {}

    def test_lost_upload_is_in_doubt(self, adapter: TelegramAdapter, api: BotApi, tmp_path: Path) -> None:
        api.fail("sendDocument", "lost")
        with pytest.raises(MaybeSent):
            self.send(adapter, tmp_path / "a.bin", "file")


NASTY = [
    "**bold *both** it*",
    "a * b * c ** d",
    "`code with **stars**` and **`code` in bold**",
    "# heading with **bold** and `code`",
    "[a **bold** link](https://example.org/a_b_c)",
    "snake_case_name and _it_ and __bold__",
    "<script>alert(1)</script> & &amp; <b>",
    "```\nunclosed block <b>",
    "~~~\n```\n~~~",
    "```a`b\ncode\n```",
    "\ue0000\ue001 marks of ours \ue0005\ue001",
    "`" * 50,
    "*" * 5000,
    "_" * 5000,
    "[" * 5000,
    "[x](https://example.org)" * 300,
    "**a ~~b** c~~",
]


@pytest.mark.parametrize("text", NASTY, ids=lambda text: ascii(text[:20]))
def test_every_text_becomes_html_that_telegram_takes(text: str) -> None:
    plain_text(to_html(text))


def test_text_without_formatting_is_shown_exactly() -> None:
    text = "1 < 2 && a_b != *c  \n\n  - item\n> quote\n| a | b |"
    assert plain_text(to_html(text)) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see [the `foo` docs](https://x.org) and `a`", "see the foo docs and a"),
        ("[`a`/`b`](https://x.org/1)", "a/b"),
        ("[`<a>`](https://x.org)", "<a>"),
    ],
)
def test_code_in_the_label_of_a_link_is_shown(text: str, shown: str) -> None:
    assert plain_text(to_html(text)) == shown


def test_address_of_a_link_with_backticks_stays() -> None:
    assert to_html("[x](https://x.org/`b`?q=`c`)") == '<a href="https://x.org/`b`?q=`c`">x</a>'
