"""Clients of the local socket that do harm: they neither read nor wait, or flood it."""

from __future__ import annotations

import asyncio
import gc
import resource
import socket
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.gateway.engine.ports import Admission, Delivery, Inbound
from hermes.platforms.local import connection, descriptors, wire
from hermes.platforms.local.adapter import LocalSettings
from hermes.platforms.local.lines import LineStream
from hermes.platforms.local.wire import Request
from tests.platforms.local_gateway import MESSAGE, QUICK, SUBSCRIBE, PlainClient, local_gateway, run, until


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
