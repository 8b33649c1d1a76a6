"""The Discord adapter against the kit that every adapter can run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hermes.platforms.testing import CHECKS, Failure, run_checks
from tests.platforms.discord.bots import make_adapter
from tests.platforms.discord.server import BOT, DiscordServer, user


class DiscordHarness:
    """A direct chat."""

    def __init__(self, home: Path) -> None:
        self._server = DiscordServer()
        self._home = home
        self._ids: dict[int, str] = {}
        self.chat_id = self._server.direct()
        self.adapter = make_adapter(home, self._server)

    async def deliver(self, number: int, text: str, *, is_own: bool = False) -> None:
        if number not in self._ids:
            message = self._server.message(self.chat_id, text, user(BOT if is_own else "7"))
            self._ids[number] = message["id"]
        self._server.deliver(self._ids[number])

    async def deliver_malformed(self) -> None:
        no_author = {"id": "6", "channel_id": self.chat_id, "author": []}
        malformed: list[Any] = [{}, [], None, {"id": "x"}, {"id": "5"}, no_author]
        for data in malformed:
            self._server.emit("MESSAGE_CREATE", data)
            self._server.emit("GUILD_CREATE", data)
        self._server.push('{"op": 99}')

    async def is_acknowledged(self, number: int) -> bool:
        message_id = int(self._ids[number])
        (file,) = (self._home / "platforms" / "discord").glob("*.json")
        stored = json.loads(file.read_text())
        return message_id in stored["done"] or message_id <= stored["upto"]

    async def shown(self) -> list[str]:
        return self._server.texts(self.chat_id)

    async def fail_next(self, failure: Failure) -> None:
        self._server.faults.append(failure)

    async def disconnect(self) -> None:
        self._server.disconnect()

    async def close(self) -> None:
        self._server.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda each: str(each.__name__))
def test_adapter_passes_every_check_of_the_kit(check: Any, tmp_path: Path) -> None:
    async def make_harness() -> DiscordHarness:
        return DiscordHarness(tmp_path)

    (result,) = asyncio.run(run_checks(make_harness, [check]))
    assert result.problem == ""
