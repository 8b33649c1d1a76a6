"""The file of the local socket: who can connect, and which node has it."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from pathlib import Path

import pytest

from hermes.platforms.local.socket_file import LOCK_NAME, SOCKET_NAME
from tests.platforms.local_gateway import MESSAGE, QUICK, SUBSCRIBE, PlainClient, local_gateway, run, until


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
