"""Replies at the local socket: what is not confirmed is delivered again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.gateway.engine.ports import Delivery
from hermes.state.lanes.delivery.outbox import Outbox
from hermes.state.lanes.types import Intent
from tests.platforms.local_gateway import MESSAGE, SUBSCRIBE, PlainClient, local_gateway, run


class TestReplies:
    def test_a_reply_has_the_documented_fields(self, home: Path) -> None:
        async def test() -> None:
            async with local_gateway(home) as gateway, PlainClient(home) as client:
                await client.send(SUBSCRIBE)
                await gateway.reply("k1", thread_id="t", reply_to="m2", answers=["m1", "m2"])
                head = {"type": "reply", "delivery_id": "k1", "chat_id": "c1", "thread_id": "t", "reply_to": "m2"}
                assert await client.read() == {**head, "answers": ["m1", "m2"], "text": "text of k1", "final": True}
                await gateway.reply("k2", kind="notice")
                notice = {"type": "notice", "delivery_id": "k2", "chat_id": "c1", "text": "text of k2"}
                assert await client.read() == notice

        run(test())

    def test_a_reply_that_was_not_confirmed_is_delivered_again_with_the_same_id(self, home: Path) -> None:
        async def test() -> None:
            async with local_gateway(home) as gateway:
                for key in ("k1", "k2", "k3"):
                    await gateway.reply(key)
                for _ in range(2):
                    async with PlainClient(home) as client:
                        await client.send(SUBSCRIBE)
                        assert [each["delivery_id"] for each in await client.read_many(3)] == ["k1", "k2", "k3"]
                async with PlainClient(home) as client:
                    await client.send(SUBSCRIBE)
                    await client.read_many(3)
                    await client.send({"type": "received", "delivery_id": "k2"}, SUBSCRIBE)
                    assert [each["delivery_id"] for each in await client.read_many(2)] == ["k1", "k3"]
                    assert [await gateway.state_of(key) for key in ("k1", "k2", "k3")] == ["pending", "sent", "pending"]
            async with local_gateway(home), PlainClient(home) as client:
                await client.send({"type": "subscribe", "chat_id": "*"})
                assert [each["delivery_id"] for each in await client.read_many(2)] == ["k1", "k3"]

        run(test())

    def test_a_connection_gets_a_reply_once(self, home: Path) -> None:
        async def test() -> None:
            async with local_gateway(home) as gateway, PlainClient(home) as client:
                await client.send(SUBSCRIBE)
                for number in range(20):
                    await gateway.reply(f"k{number}")
                    gateway.adapter.wake()
                found = [each["delivery_id"] for each in await client.read_many(20)]
                assert found == [f"k{number}" for number in range(20)]
                assert await client.is_silent()

        run(test())

    def test_a_system_without_a_free_thread_does_not_end_the_replies(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        failures, awaiting = [RuntimeError("can't start new thread")], Outbox.awaiting

        def failing(self: Outbox, *args: Any, **kwargs: Any) -> Any:
            if failures:
                raise failures.pop()
            return awaiting(self, *args, **kwargs)

        monkeypatch.setattr(Outbox, "awaiting", failing)

        async def test() -> None:
            async with local_gateway(home) as gateway, PlainClient(home) as client:
                await gateway.reply("k1")
                await client.send(SUBSCRIBE)
                assert (await client.read())["delivery_id"] == "k1"

        run(test())

    def test_a_confirmation_just_before_leaving_counts(self, home: Path) -> None:
        """The client has unread lines when it leaves, so the connection is reset."""

        async def test() -> None:
            async with local_gateway(home) as gateway:
                await gateway.reply("k1")
                await gateway.reply("k2")
                async with PlainClient(home) as client:
                    await client.send(SUBSCRIBE)
                    assert (await client.read())["delivery_id"] == "k1"
                    await gateway.reply("k3")
                    await client.send({"type": "received", "delivery_id": "k1"})
                async with PlainClient(home) as client:
                    await client.send(SUBSCRIBE)
                    assert [each["delivery_id"] for each in await client.read_many(2)] == ["k2", "k3"]

        run(test())

    def test_subscribers_get_the_replies_of_their_chats(self, home: Path) -> None:
        async def test() -> None:
            async with (
                local_gateway(home) as gateway,
                PlainClient(home) as one,
                PlainClient(home) as both,
                PlainClient(home) as none,
            ):
                await one.send(SUBSCRIBE)
                await both.send({"type": "subscribe", "chat_id": "*"})
                await none.send({"type": "subscribe", "chat_id": "c9"})
                await gateway.reply("k2", "c2")
                await gateway.reply("k1", "c1")
                assert (await one.read())["delivery_id"] == "k1"
                assert [each["delivery_id"] for each in await both.read_many(2)] == ["k2", "k1"]
                assert await none.is_silent()
                await one.send({"type": "subscribe", "chat_id": "c2"})
                assert (await one.read())["delivery_id"] == "k2"
                assert await one.is_silent()

        run(test())

    def test_confirmations_do_not_reach_other_platforms(self, home: Path) -> None:
        async def test() -> None:
            async with local_gateway(home) as gateway, PlainClient(home) as client:
                await gateway.db.outbox.intend(Intent("far", {"chat_id": "c1", "text": "x"}, "telegram"))
                received = [{"type": "received", "delivery_id": key} for key in ("far", "missing", 5)]
                await client.send(*received, MESSAGE)
                assert (await client.read())["type"] == "accepted"
                assert await gateway.state_of("far") == "pending"

        run(test())

    def test_a_delayed_reply_waits_and_an_expired_one_is_not_sent(self, home: Path) -> None:
        async def test() -> None:
            async with local_gateway(home) as gateway, PlainClient(home) as client:
                payload = {"chat_id": "c1", "text": "x"}
                await gateway.db.outbox.intend(Intent("late", payload, "local", delay_seconds=60))
                await gateway.db.outbox.intend(Intent("old", payload, "local", ttl_seconds=0))
                await gateway.reply("k1")
                await client.send(SUBSCRIBE)
                assert (await client.read())["delivery_id"] == "k1"
                assert await client.is_silent()

        run(test())

    def test_text_of_any_kind_is_one_line(self, home: Path) -> None:
        text = "a\nb\u2028c\u0085d \U0001f468\u200d\U0001f469 \x00 \udcff"

        async def test() -> None:
            async with local_gateway(home) as gateway, PlainClient(home) as client:
                await client.send({**MESSAGE, "text": text})
                assert (await client.read())["state"] == "accepted"
                assert gateway.seen[0].text == text
                await client.send(SUBSCRIBE)
                await gateway.reply("k1", text=text)
                assert (await client.read())["text"] == text

        run(test())


class TestPreviews:
    def test_previews_have_the_id_of_the_final_reply(self, home: Path) -> None:
        async def test() -> None:
            async with local_gateway(home) as gateway, PlainClient(home) as client, PlainClient(home) as other:
                await client.send(SUBSCRIBE)
                await other.send({"type": "subscribe", "chat_id": "c2"}, MESSAGE)
                await other.read()
                gateway.adapter.preview(Delivery("k1", "c1", "Hel", reply_to="m1", is_final=False))
                await gateway.adapter.send(Delivery("k1", "c1", "Hello", reply_to="m1", is_final=False))
                await gateway.reply("k1", text="Hello!")
                lines = await client.read_many(3)
                assert [(each["delivery_id"], each["text"], each["final"]) for each in lines] == [
                    *(("k1", "Hel", False), ("k1", "Hello", False), ("k1", "Hello!", True)),
                ]
                assert await other.is_silent()

        run(test())


class TestBacklog:
    def test_hundreds_of_unconfirmed_replies_of_other_chats_do_not_hide_new_ones(self, home: Path) -> None:
        async def test() -> None:
            async with local_gateway(home) as gateway:
                for number in range(450):
                    await gateway.reply(f"old{number}", "c2")
                async with PlainClient(home) as client:
                    await client.send(SUBSCRIBE)
                    for number in range(5):
                        await gateway.reply(f"new{number}")
                        assert (await client.read())["delivery_id"] == f"new{number}"
                    await client.send({"type": "subscribe", "chat_id": "c2"})
                    found = [each["delivery_id"] for each in await client.read_many(450)]
                    assert found == [f"old{number}" for number in range(450)]
                    assert await client.is_silent()

        run(test())
