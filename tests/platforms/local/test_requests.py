"""Requests of clients of the local socket: each is accepted once, and a wrong one is refused."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import StoreBusy
from hermes.gateway.engine.ports import Admission, Inbound
from hermes.gateway.platform import Platform
from tests.platforms.local_gateway import MESSAGE, PlainClient, local_gateway, run, until


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
