"""The client of the local socket, and processes that end while it is connected."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hermes.gateway.engine.ports import Delivery
from hermes.platforms.local.client import LocalClient, LocalMessage
from hermes.platforms.local.socket_file import SOCKET_NAME
from tests.platforms.local_gateway import local_gateway, run, until

ROOT = Path(__file__).parents[2]
LIMIT_S = 20.0


@asynccontextmanager
async def served(home: Path) -> AsyncIterator[subprocess.Popen[bytes]]:
    """Serve a home in another process."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    home.mkdir(exist_ok=True)
    process = subprocess.Popen([sys.executable, "-m", "tests.platforms.serve_local", str(home)], env=env, cwd=ROOT)
    try:
        await until((home / SOCKET_NAME).exists, "the other process listens")
        yield process
    finally:
        process.kill()
        await asyncio.to_thread(process.wait)


class TestTalking:
    def test_a_message_and_its_reply(self, tmp_path: Path) -> None:
        async def test() -> None:
            async with local_gateway(tmp_path) as gateway, await LocalClient.connect(tmp_path) as client:
                await client.subscribe("c1")
                said = await client.say("hello", "c1", "u1", message_id="m1", thread_id="t1", user_name="Ann")
                assert (said.state, said.message_id) == ("accepted", "m1")
                assert (await client.say("hello", "c1", "u1", message_id="m1")).state == "known"
                refused = await client.say("refuse me", "c1")
                assert (refused.state, refused.code) == ("refused", "limit")
                await gateway.reply("k1", thread_id="t1", answers=["m0", "m1"])
                expected = LocalMessage("reply", "k1", "c1", "text of k1", True, "t1", "m1", ("m0", "m1"))
                assert await client.next(LIMIT_S) == expected
                await gateway.reply("k2", kind="notice")
                notice = await client.next(LIMIT_S)
                assert (notice.type, notice.final) == ("notice", True)
                async with asyncio.timeout(LIMIT_S):
                    while (await gateway.state_of("k1"), await gateway.state_of("k2")) != ("sent", "sent"):
                        await asyncio.sleep(0.005)

        run(test())

    def test_many_messages_at_the_same_time(self, tmp_path: Path) -> None:
        async def test() -> None:
            async with local_gateway(tmp_path), await LocalClient.connect(tmp_path) as client:
                said = await asyncio.gather(*(client.say(f"text {number}", f"c{number % 7}") for number in range(200)))
                assert {each.state for each in said} == {"accepted"}
                assert len({each.message_id for each in said}) == 200

        run(test())

    def test_replies_that_the_caller_did_not_take_are_delivered_again(self, tmp_path: Path) -> None:
        async def test() -> None:
            async with local_gateway(tmp_path) as gateway:
                for number in range(3):
                    await gateway.reply(f"k{number}")
                async with await LocalClient.connect(tmp_path) as client:
                    await client.subscribe()
                    assert (await client.next(LIMIT_S)).delivery_id == "k0"
                async with await LocalClient.connect(tmp_path, confirm=False) as client:
                    await client.subscribe()
                    assert [(await client.next(LIMIT_S)).delivery_id for _ in range(2)] == ["k1", "k2"]
                    await client.received("k2")
                async with await LocalClient.connect(tmp_path) as client:
                    await client.subscribe()
                    assert (await client.next(LIMIT_S)).delivery_id == "k1"

        run(test())

    def test_previews_are_not_confirmed_and_the_newest_one_is_enough(self, tmp_path: Path) -> None:
        async def test() -> None:
            async with local_gateway(tmp_path) as gateway, await LocalClient.connect(tmp_path) as client:
                await client.subscribe("c1")
                await client.say("hello", "c1")
                gateway.adapter.preview(Delivery("k1", "c1", "He", is_final=False))
                first = await client.next(LIMIT_S)
                assert (first.text, first.final) == ("He", False)
                for text in ("Hell", "Hello"):
                    gateway.adapter.preview(Delivery("k1", "c1", text, is_final=False))
                await gateway.reply("k1", text="Hello!")
                await until(lambda: any(each.final for each in client._replies), "the final reply arrives")
                last = await client.next(LIMIT_S)
                assert (last.text, last.final) == ("Hello!", True)

        run(test())

    def test_commands_of_an_operator(self, tmp_path: Path) -> None:
        async def control(command: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
            return {"command": command, "seconds": request.get("seconds")}

        async def test() -> None:
            async with local_gateway(tmp_path, control=control), await LocalClient.connect(tmp_path) as client:
                results = await asyncio.gather(client.control("drain", seconds=3), client.control("status"))
                assert list(results) == [{"command": "drain", "seconds": 3}, {"command": "status", "seconds": None}]

        run(test())

    def test_a_home_with_a_very_long_path(self, tmp_path: Path) -> None:
        home = tmp_path / ("long" * 30) / ("name" * 30)

        async def test() -> None:
            async with local_gateway(home), await LocalClient.connect(home) as client:
                assert (await client.say("hello", "c1")).state == "accepted"

        run(test())


class TestEnds:
    def test_without_a_gateway_the_client_says_so(self, tmp_path: Path) -> None:
        async def test() -> None:
            with pytest.raises(ConnectionError, match="no gateway listens on"):
                await LocalClient.connect(tmp_path)

        run(test())

    def test_iteration_ends_when_the_gateway_stops(self, tmp_path: Path) -> None:
        async def test() -> None:
            async with local_gateway(tmp_path) as gateway:
                client = await LocalClient.connect(tmp_path)
                await client.subscribe()
                await gateway.reply("k1")
                found = []
                async for each in client:
                    found.append(each.delivery_id)
                    await gateway.reply("last")
                    await gateway.adapter.stop()
                assert found == ["k1", "last"]
                with pytest.raises(ConnectionError):
                    await client.say("hello", "c1")
                await client.close()

        run(test())

    def test_a_killed_gateway_ends_the_wait_and_the_next_node_takes_the_socket_over(self, tmp_path: Path) -> None:
        async def test() -> None:
            async with served(tmp_path) as process:
                client = await LocalClient.connect(tmp_path, confirm=False)
                await client.subscribe()
                assert (await client.say("hello", "c1", message_id="m1")).state == "accepted"
                assert (await client.next(LIMIT_S)).delivery_id == "reply:m1"
                async with local_gateway(tmp_path, node="second") as gateway:
                    assert f"child (pid {process.pid}) has the socket" in gateway.adapter.status
                    process.kill()
                    with pytest.raises(ConnectionError):
                        await client.next(LIMIT_S)
                    await client.close()
                    await until(lambda: gateway.adapter.is_listening, "the socket is taken over")
                    async with await LocalClient.connect(tmp_path) as again:
                        assert (await again.say("hello", "c1", message_id="m1")).state == "known"
                        await again.subscribe()
                        reply = await again.next(LIMIT_S)
                        assert (reply.delivery_id, reply.reply_to, reply.text) == (
                            *("reply:m1", "m1", "text of reply:m1"),
                        )

        run(test())

    def test_a_reply_that_another_process_stored_reaches_the_subscriber(self, tmp_path: Path) -> None:
        async def test() -> None:
            async with local_gateway(tmp_path) as gateway, await LocalClient.connect(tmp_path) as client:
                await client.subscribe("c1")
                await client.say("hello", "c1")
                program = (
                    "import sys; from hermes_state import SessionDB; from hermes.state.lanes.types import Intent\n"
                    "with SessionDB(sys.argv[1]) as db:\n"
                    "    db.outbox.intend(Intent('far', {'chat_id': 'c1', 'text': 'hi'}, 'local', session_key='l'))"
                )
                env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
                command = [sys.executable, "-c", program, str(tmp_path / "state.db")]
                await asyncio.to_thread(subprocess.run, command, env=env, check=True, timeout=60)
                assert (await client.next(LIMIT_S)).delivery_id == "far"
                assert gateway.adapter.clients == 1

        run(test())
