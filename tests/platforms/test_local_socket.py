"""The local socket: requests, replies, what is delivered again, and clients that do harm."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import socket
import stat
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.errors import StoreBusy
from hermes.gateway.engine.ports import Admission, Delivery, Inbound
from hermes.gateway.platform import Platform
from hermes.platforms.local import connection, descriptors, wire
from hermes.platforms.local.adapter import LocalSettings
from hermes.platforms.local.lines import LineStream
from hermes.platforms.local.socket_file import LOCK_NAME, SOCKET_NAME
from hermes.platforms.local.wire import Request
from hermes.state.lanes.delivery.outbox import Outbox
from hermes.state.lanes.types import Intent
from tests.platforms.local_gateway import QUICK, PlainClient, local_gateway, run, until

MESSAGE = {"type": "message", "message_id": "m1", "chat_id": "c1", "user_id": "u1", "text": "hello"}
SUBSCRIBE = {"type": "subscribe", "chat_id": "c1"}


@pytest.fixture
def home() -> Iterator[Path]:
    """A home with a short path, as plain clients need it."""
    with tempfile.TemporaryDirectory(prefix="hermes-") as folder:
        yield Path(folder) / "home"


class TestMessages:
    def test_a_message_is_accepted_once(self, home: Path) -> None:
        async def test() -> None:
            async with local_gateway(home) as gateway, PlainClient(home) as client:
                await client.send(MESSAGE)
                assert await client.read() == {"type": "accepted", "message_id": "m1", "state": "accepted"}
                (row,) = await gateway.db.inbox.find("m1")
                assert (row["state"], row["chat_id"]) == ("accepted", "c1")
                await client.send(MESSAGE, {**MESSAGE, "chat_id": "c2"})
                answers = await client.read_many(2)
                assert sorted(each["state"] for each in answers) == ["accepted", "known"]

        run(test())

    def test_a_message_is_known_after_a_restart(self, home: Path) -> None:
        async def test() -> None:
            for state in ("accepted", "known"):
                async with local_gateway(home), PlainClient(home) as client:
                    await client.send(MESSAGE)
                    assert (await client.read())["state"] == state

        run(test())

    def test_the_source_of_a_message_has_its_fields(self, home: Path) -> None:
        optional = {"user_name": "Ann", "chat_type": "group", "thread_id": 7, "chat_name": "Team"}

        async def test() -> None:
            async with local_gateway(home) as gateway, PlainClient(home) as client:
                await client.send({**MESSAGE, **optional}, {**MESSAGE, "message_id": 2, "user_id": None})
                assert [each["message_id"] for each in await client.read_many(2)] == ["m1", 2]
                first, second = (each.source for each in gateway.seen)
                assert first.platform is second.platform is Platform.LOCAL
                assert (first.user_name, first.chat_type, first.thread_id, first.chat_name) == (
                    *("Ann", "group", "7", "Team"),
                )
                assert (second.user_id, second.chat_type, second.thread_id) == ("c1", "dm", None)
                assert (gateway.seen[1].message_id, gateway.seen[0].source.user_id) == ("2", "u1")
                await client.send({**MESSAGE, "message_id": 3, "user_id": None, "chat_type": "group"})
                assert (await client.read())["type"] == "accepted"
                assert gateway.seen[2].source.user_id is None  # the lane is shared, not one of an invented user

        run(test())

    def test_messages_of_a_chat_are_accepted_in_order(self, home: Path) -> None:
        async def test() -> None:
            async with local_gateway(home) as gateway, PlainClient(home) as client:
                sent = [
                    {**MESSAGE, "message_id": f"{chat}-{number}", "chat_id": chat, "text": str(number)}
                    for number in range(40)
                    for chat in ("a", "b", "c")
                ]
                await client.send(*sent)
                await client.read_many(len(sent))
                for chat in ("a", "b", "c"):
                    rows = await gateway.db.inbox.waiting(f"agent:main:local:dm:{chat}")
                    assert [row["message_id"] for row in rows] == [f"{chat}-{number}" for number in range(40)]

        run(test())

    def test_a_refusal_is_passed_on_with_its_code(self, home: Path) -> None:
        async def test() -> None:
            async with local_gateway(home), PlainClient(home) as client:
                await client.send({**MESSAGE, "text": "refuse me"})
                refused = {"type": "refused", "message_id": "m1", "code": "limit"}
                assert await client.read() == {**refused, "message": "Your 20 turns of today are used up."}

        run(test())

    @pytest.mark.parametrize(("error", "code"), [(StoreBusy("busy"), StoreBusy.code), (KeyError("x"), "error")])
    def test_an_error_of_the_gateway_refuses_one_message_only(self, home: Path, error: Exception, code: str) -> None:
        async def fail(inbound: Inbound) -> Admission:
            raise error

        async def test() -> None:
            async with local_gateway(home) as gateway, PlainClient(home) as client:
                gateway.adapter.receive = fail
                await client.send(MESSAGE)
                assert (await client.read())["code"] == code
                gateway.adapter.receive = gateway.receive
                await client.send(MESSAGE)
                assert (await client.read())["state"] == "accepted"

        run(test())


class TestBadRequests:
    @pytest.mark.parametrize(
        ("line", "words"),
        [
            (b"{", "not JSON"),
            (b"\xff\xfe", "not UTF-8"),
            (b"[1]", "not a JSON object"),
            (b"[" * 100_000, "not JSON"),
            (b"1" * 5_000, "not JSON"),
            (b"{}", "type is missing"),
            (b'{"type": "fly"}', 'type is "fly"'),
            (b'{"type": ["message"]}', "type is"),
            (b'{"type": "message"}', "message_id and chat_id and text are missing"),
            (b'{"type": "message", "message_id": "m", "chat_id": "c"}', "text is missing"),
            (b'{"type": "message", "message_id": "m", "chat_id": "c", "text": 3}', "text is 3, expected text"),
            (b'{"type": "message", "message_id": "m", "chat_id": "c", "text": " "}', "text is blank"),
            (b'{"type": "message", "message_id": true, "chat_id": "c", "text": "t"}', "message_id is true"),
            (b'{"type": "message", "message_id": "m", "chat_id": 1.5, "text": "t"}', "chat_id is 1.5"),
            (b'{"type": "message", "message_id": "m", "chat_id": "*", "text": "t"}', "every chat"),
            (b'{"type": "message", "message_id": "m", "chat_id": "c", "text": "t", "user_id": {}}', "user_id is {}"),
            (b'{"type": "message", "message_id": "m", "chat_id": "c", "text": "t", "chat_type": 1}', "chat_type is 1"),
            (b'{"type": "subscribe"}', "chat_id is missing"),
            (b'{"type": "received"}', "delivery_id is missing"),
            (b'{"type": "control", "command": "explode"}', 'command is "explode"'),
            (b'{"type": "message", "text": "' + b"x" * (1024 * 1024) + b'"}', "longer than 1048576 bytes"),
        ],
    )
    def test_a_wrong_line_is_refused_and_the_connection_stays(self, home: Path, line: bytes, words: str) -> None:
        async def test() -> None:
            async with local_gateway(home), PlainClient(home) as client:
                await client.send(line + b"\n", MESSAGE)
                refused = await client.read()
                assert (refused["type"], refused["code"]) == ("refused", "bad_request")
                assert words in refused["message"]
                assert (await client.read())["type"] == "accepted"

        run(test())

    def test_a_refusal_names_the_message_if_it_can(self, home: Path) -> None:
        async def test() -> None:
            async with local_gateway(home), PlainClient(home) as client:
                await client.send({"type": "message", "message_id": 17}, {"type": "message", "message_id": [1]})
                assert [each["message_id"] for each in await client.read_many(2)] == [17, None]

        run(test())

    def test_blank_lines_and_a_last_line_without_end_are_fine(self, home: Path) -> None:
        async def test() -> None:
            async with local_gateway(home) as gateway:
                async with PlainClient(home) as client:
                    await client.send(b"\n \r\n", b'{"type": "message", "message_id": 1, "chat_id": 2, "text": "x"}')
                    client._socket.shutdown(socket.SHUT_WR)
                    assert (await client.read())["state"] == "accepted"
                    with pytest.raises(EOFError):
                        await client.read()
                await until(lambda: gateway.adapter.clients == 0, "the connection ends")

        run(test())


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


class TestSlowClients:
    def test_a_client_that_does_not_read_is_disconnected_and_others_are_served(self, home: Path) -> None:
        settings = LocalSettings(poll_s=0.02, retry_s=0.02, stall_s=0.5)

        async def test() -> None:
            async with (
                local_gateway(home, settings=settings) as gateway,
                PlainClient(home) as slow,
                PlainClient(home) as quick,
            ):
                await slow.send({"type": "subscribe", "chat_id": "*"})
                await quick.send(SUBSCRIBE)
                reading = asyncio.create_task(quick.read_many(12))
                for number in range(12):
                    await gateway.reply(f"k{number}", text="x" * 500_000)
                found = [each["delivery_id"] for each in await reading]
                assert found == [f"k{number}" for number in range(12)]
                await until(lambda: gateway.adapter.clients == 1, "the slow client is disconnected")
                await quick.send(MESSAGE)
                assert (await quick.read())["type"] == "accepted"

        run(test())

    def test_a_client_that_asks_without_reading_is_disconnected(self, home: Path) -> None:
        async def test() -> None:
            async with local_gateway(home) as gateway, PlainClient(home) as client:
                await until(lambda: gateway.adapter.clients == 1, "the client is connected")
                line = b'{"type": "message", "message_id": "' + b"i" * 400 + b'"}\n'
                sent = client.send(*([line * 100] * 400))
                with pytest.raises(ConnectionError):
                    await sent
                await until(lambda: gateway.adapter.clients == 0, "the client is disconnected")

        run(test())

    def test_a_slow_reader_gets_a_long_backlog_completely(self, home: Path) -> None:
        async def test() -> None:
            async with local_gateway(home) as gateway:
                count = 30
                for number in range(count):
                    await gateway.reply(f"k{number}", text="y" * 300_000)
                async with PlainClient(home) as client:
                    await client.send(SUBSCRIBE)
                    found = []
                    for _ in range(count):
                        await asyncio.sleep(0.01)
                        found.append((await client.read())["delivery_id"])
                    assert found == [f"k{number}" for number in range(count)]

        run(test())

    def test_previews_are_dropped_first(self, home: Path) -> None:
        async def test() -> None:
            async with local_gateway(home) as gateway, PlainClient(home) as client:
                await client.send(SUBSCRIBE, MESSAGE)
                assert (await client.read())["type"] == "accepted"
                for _ in range(100):
                    gateway.adapter.preview(Delivery("k1", "c1", "p" * 100_000, is_final=False))
                await gateway.reply("k1", text="done")
                lines = [await client.read()]
                while not lines[-1]["final"]:
                    lines.append(await client.read())
                assert lines[-1]["text"] == "done"
                assert len(lines) < 20

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


class TestControl:
    def test_commands_reach_the_gateway(self, home: Path) -> None:
        asked: list[Any] = []

        async def control(command: str, request: Any) -> dict[str, Any]:
            asked.append((command, request.get("timeout")))
            if command == "stop":
                raise StoreBusy("not now")
            if command == "restart":
                raise ZeroDivisionError
            return {"state": "running"}

        async def test() -> None:
            async with local_gateway(home, control=control), PlainClient(home) as client:
                await client.send({"type": "control", "command": "drain", "timeout": 3})
                assert await client.read() == {"type": "control", "command": "drain", "result": {"state": "running"}}
                await client.send({"type": "control", "command": "stop"})
                assert (await client.read())["result"]["error"]["code"] == StoreBusy.code
                await client.send({"type": "control", "command": "restart"})
                assert (await client.read())["result"]["error"]["code"] == "error"
                assert asked == [("drain", 3), ("stop", None), ("restart", None)]

        run(test())

    def test_a_gateway_without_commands_says_so(self, home: Path) -> None:
        async def test() -> None:
            async with local_gateway(home), PlainClient(home) as client:
                await client.send({"type": "control", "command": "status"})
                assert (await client.read())["result"]["error"]["code"] == "unavailable"

        run(test())


class TestTheFile:
    def test_only_the_user_can_connect(self, home: Path) -> None:
        async def test() -> None:
            old = os.umask(0)
            try:
                async with local_gateway(home / "sub"):
                    assert stat.S_IMODE((home / "sub" / SOCKET_NAME).stat().st_mode) == 0o600
                    assert stat.S_IMODE((home / "sub" / LOCK_NAME).stat().st_mode) == 0o600
                    assert sorted(each.name for each in (home / "sub").glob("gateway*")) == [SOCKET_NAME, LOCK_NAME]
            finally:
                os.umask(old)
            assert not (home / "sub" / SOCKET_NAME).exists()

        run(test())

    def test_a_stale_socket_is_replaced(self, home: Path) -> None:
        home.mkdir()
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(home / SOCKET_NAME))

        async def test() -> None:
            async with local_gateway(home), PlainClient(home) as client:
                await client.send(MESSAGE)
                assert (await client.read())["type"] == "accepted"

        run(test())

    def test_a_live_socket_without_a_lock_is_not_replaced(self, home: Path) -> None:
        home.mkdir()

        async def test() -> None:
            with socket.socket(socket.AF_UNIX) as live:
                live.bind(str(home / SOCKET_NAME))
                live.listen()
                async with local_gateway(home) as gateway:
                    assert not gateway.adapter.is_listening
                    assert "another process has the socket" in gateway.adapter.status
                    live.close()
                    await until(lambda: gateway.adapter.is_listening, "the socket is taken over")

        run(test())

    def test_a_second_node_waits_and_takes_the_socket_over(self, home: Path, caplog: pytest.LogCaptureFixture) -> None:
        async def test() -> None:
            async with local_gateway(home, node="n2") as second, local_gateway(home, node="n3") as third:
                assert (second.adapter.is_listening, third.adapter.is_listening) == (True, False)
                assert f"n2 (pid {os.getpid()}) has the socket" in third.adapter.status
                async with PlainClient(home) as client:
                    await client.send(SUBSCRIBE)
                    await third.reply("k1")
                    assert (await client.read())["delivery_id"] == "k1"
                await asyncio.sleep(5 * QUICK.retry_s)
                await second.adapter.stop()
                await until(lambda: third.adapter.is_listening, "the socket is taken over")
                async with PlainClient(home) as client:
                    await client.send(SUBSCRIBE)
                    assert (await client.read())["delivery_id"] == "k1"
            assert len([each for each in caplog.records if "n2 (pid" in each.getMessage()]) == 1

        run(test())

    def test_a_deleted_socket_is_created_again(self, home: Path) -> None:
        async def test() -> None:
            async with local_gateway(home) as gateway:
                (home / SOCKET_NAME).unlink()
                await until((home / SOCKET_NAME).exists, "the socket is there again")
                async with PlainClient(home) as client:
                    await client.send(MESSAGE)
                    assert (await client.read())["type"] == "accepted"
                assert gateway.adapter.is_listening

        run(test())

    def test_the_adapter_can_be_started_again(self, home: Path) -> None:
        async def test() -> None:
            async with local_gateway(home) as gateway:
                for _ in range(2):
                    await gateway.adapter.stop()
                    await gateway.adapter.start(gateway.receive)
                async with PlainClient(home) as client:
                    await client.send(MESSAGE)
                    assert (await client.read())["type"] == "accepted"

        run(test())


def test_hundreds_of_clients_that_do_not_wait_can_connect_while_the_event_loop_is_busy(home: Path) -> None:
    async def test() -> None:
        async with local_gateway(home):
            clients = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(300)]
            try:
                for each in clients:  # the loop accepts none of them before the next await
                    each.setblocking(False)
                    each.connect(str(home / "gateway.sock"))
                await asyncio.sleep(0.05)
            finally:
                for each in clients:
                    each.close()

    run(test())


class TestFloods:
    def test_a_flood_of_bad_lines_does_not_keep_others_waiting(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rounds, handled = 0, Counter[int]()
        parse = wire.parse_request

        def counted(line: bytes) -> Request:
            handled[rounds] += 1
            return parse(line)

        async def turn_around() -> None:
            nonlocal rounds
            while True:
                rounds += 1
                await asyncio.sleep(0)

        async def test() -> None:
            monkeypatch.setattr(connection, "parse_request", counted)
            async with local_gateway(home), PlainClient(home) as client:
                turning = asyncio.create_task(turn_around())
                await client.send(b"x\n" * 5000)
                assert {each["code"] for each in await client.read_many(5000)} == {"bad_request"}
                turning.cancel()
            assert max(handled.values()) <= 32, "so many lines in one round of the event loop"

        run(test())

    def test_requests_that_wait_for_others_leave_nothing_behind_when_the_process_ends(
        self, home: Path, recwarn: pytest.WarningsRecorder
    ) -> None:
        async def test() -> None:
            async with local_gateway(home) as gateway, PlainClient(home) as client:

                async def never(inbound: Inbound) -> Admission:
                    gateway.seen.append(inbound)
                    await asyncio.Event().wait()
                    raise AssertionError

                gateway.adapter.receive = never
                await client.send(*({**MESSAGE, "chat_id": f"c{number}"} for number in range(70)))
                await until(lambda: len(gateway.seen) == 64, "as many requests as may run")
                (serving,) = gateway.adapter._serving
                serving.cancel()
                await asyncio.wait([serving])
                del serving
                gc.collect()
            assert [str(each.message) for each in recwarn if "never awaited" in str(each.message)] == []

        run(test())

    def test_a_chunk_of_many_lines_is_divided_only_as_they_are_taken(self) -> None:
        async def test() -> None:
            stream = LineStream(8)
            stream.data_received(b"one\ntw")
            assert await anext(stream) == b"one"
            stream.data_received(b"o\n\nmuch too long")
            assert [await anext(stream), await anext(stream)] == [b"two", b""]
            waiting = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0)
            assert len(stream._buffer) == 0, "the beginning of a line that is too long is dropped"
            stream.data_received(b" to keep\nnext")
            assert await waiting is None
            stream.eof_received()
            assert await anext(stream) == b"next"
            with pytest.raises(StopAsyncIteration):
                await anext(stream)

        run(test())

    @given(st.lists(st.binary(max_size=12)), st.integers(1, 9))
    def test_lines_are_the_same_in_whatever_pieces_they_arrive(self, pieces: list[bytes], most: int) -> None:
        async def test() -> None:
            stream = LineStream(most)
            lines: list[bytes | None] = []

            async def take() -> None:
                lines.extend([line async for line in stream])

            taking = asyncio.create_task(take())
            for piece in pieces:
                stream.data_received(piece)
                await asyncio.sleep(0)
            stream.eof_received()
            await taking
            *full, rest = b"".join(pieces).split(b"\n")
            expected = [*full, *([rest] if rest else [])]
            assert lines == [line if len(line) <= most else None for line in expected]

        run(test())

    def test_empty_lines_are_not_read_faster_than_they_are_handled(self) -> None:
        async def test() -> None:
            near, far = socket.socketpair()
            with near:
                _, stream = await asyncio.get_running_loop().create_connection(lambda: LineStream(1024), sock=far)
                near.setblocking(False)
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(2):  # no reader takes the lines, so the system keeps the rest
                        await asyncio.get_running_loop().sock_sendall(near, b"\n" * 4_000_000)
                stream.abort()

        run(test())

    def test_too_many_clients_are_refused_and_the_others_work_on(
        self, home: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def test() -> None:
            settings = replace(QUICK, most_clients=2)
            async with local_gateway(home, settings=settings) as gateway:
                async with PlainClient(home) as first, PlainClient(home) as second:
                    await first.send(MESSAGE)
                    assert (await first.read())["type"] == "accepted"
                    await second.send(MESSAGE)
                    assert (await second.read())["state"] == "known"
                    for _ in range(3):
                        async with PlainClient(home) as third:
                            line = await third.read()
                            assert (line["type"], line["code"]) == ("refused", "too_many_clients")
                            with pytest.raises(EOFError):
                                await third.read()
                    await first.send(MESSAGE)
                    assert (await first.read())["state"] == "known"
                await until(lambda: not gateway.adapter.clients, "the clients have left")
                async with PlainClient(home) as later:
                    await later.send(MESSAGE)
                    assert (await later.read())["state"] == "known"
            assert len([each for each in caplog.records if "further ones are refused" in each.getMessage()]) == 1

        run(test())

    def test_a_client_subscribes_to_so_many_chats_only(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connection, "MOST_CHATS", 2)

        async def test() -> None:
            async with local_gateway(home) as gateway, PlainClient(home) as client:
                await client.send(*({**SUBSCRIBE, "chat_id": each} for each in ("c1", "c2", "c1", "c3")))
                line = await client.read()
                assert (line["type"], line["code"]) == ("refused", "bad_request")
                assert "subscribe to '*' instead" in line["message"]
                await gateway.reply("k1", "c2")
                assert (await client.read())["delivery_id"] == "k1"

        run(test())


def test_half_of_the_files_that_a_process_may_open_are_for_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"now": (256, 4096)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: limits.update(now=new))
    assert descriptors.most_clients() == 128
    assert descriptors.raise_limit() == 4096
    assert descriptors.most_clients() == 2048
    limits["now"] = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    assert descriptors.raise_limit() == resource.RLIM_INFINITY
    assert descriptors.most_clients() == 10_000
