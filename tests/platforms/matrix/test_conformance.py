"""The Matrix adapter against the kit that every adapter can run, on a real homeserver."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hermes.gateway.engine.ports import Receive
from hermes.platforms.matrix.adapter import MatrixAdapter
from hermes.platforms.matrix.position import SHARED
from hermes.platforms.testing import CHECKS, Failure, run_checks
from tests.platforms.matrix.bots import make_adapter
from tests.platforms.matrix.proxy import Proxy
from tests.support.fetched import PATIENCE_S
from tests.support.synapse import homeserver

pytestmark = pytest.mark.timeout(PATIENCE_S)


class MatrixHarness:
    """A direct chat on a homeserver, which the adapter reaches through a proxy."""

    def __init__(self, home: Path) -> None:
        server = homeserver()
        self._home = home
        self._alice, self._bot = server.user("alice"), server.user("bot")
        self.chat_id = self._alice.create_room(self._bot.user_id, is_direct=True)
        self._bot.join(self.chat_id)
        self._proxy = Proxy(server.base_url)
        self.adapter: MatrixAdapter = make_adapter(home, self._proxy.base_url, self._bot.token)
        self._events: dict[int, str] = {}
        self._before: dict[int, dict[str, Any]] = {}

    async def deliver(self, number: int, text: str, *, is_own: bool = False) -> None:
        """Let a user write; a message again is one that was processed before a crash, but not noted."""
        if number in self._events:
            await self._crash(self._before[number])
            return
        self._before[number] = self._position()
        sender = self._bot if is_own else self._alice
        self._events[number] = await asyncio.to_thread(sender.say, self.chat_id, text)

    async def _crash(self, position: dict[str, Any]) -> None:
        receive = self.adapter.receive
        assert receive is not None
        await self.adapter.stop()
        (file,) = (self._home / "platforms" / "matrix").glob("*.json")
        file.write_text(json.dumps(position))
        path = f"/user/{self._bot.user_id}/account_data/{SHARED}"
        await asyncio.to_thread(self._bot.call, "PUT", path, {})
        started: Receive = receive
        await self.adapter.start(started)

    async def deliver_malformed(self) -> None:
        """Send what no homeserver should, and what users can."""
        since = self._position()["since"]
        events: list[Any] = [
            None,
            5,
            [],
            {},
            {"type": "m.room.message"},
            {"type": "m.room.message", "event_id": 5, "content": []},
        ]
        rooms: dict[str, Any] = {
            "join": {
                self.chat_id: {"timeline": {"events": events, "limited": "x"}, "state": {"events": 7}},
                "!other:localhost": 5,
                "": {"timeline": {"events": events}},
            },
            "invite": {"!x:localhost": {"invite_state": {"events": [None, {"type": "m.room.member"}]}}, "y": []},
        }
        self._proxy.batches += [b"[", json.dumps({"next_batch": since, "rooms": rooms, "account_data": []}).encode()]
        for content in ({"msgtype": 5, "body": "x"}, {"msgtype": "m.image", "body": 5, "url": "mxc://../.."}):
            path = f"/_matrix/client/v3/rooms/{self.chat_id}/send/m.room.message/{len(str(content))}"
            await asyncio.to_thread(self._alice.server.request, "PUT", path, content, self._alice.token)

    async def is_acknowledged(self, number: int) -> bool:
        """Whether the homeserver would not send the message again after a crash."""
        found = await asyncio.to_thread(
            lambda: self._bot.call("GET", "/sync", since=self._position()["since"], timeout="0")
        )
        room = found.get("rooms", {}).get("join", {}).get(self.chat_id, {})
        waiting = [each["event_id"] for each in room.get("timeline", {}).get("events", [])]
        return self._events[number] not in waiting

    def _position(self) -> dict[str, Any]:
        (file,) = (self._home / "platforms" / "matrix").glob("*.json")
        return dict(json.loads(file.read_text()))

    async def shown(self) -> list[str]:
        """The texts of the bot, as they are after edits."""
        events = await asyncio.to_thread(self._alice.events, self.chat_id)
        texts: dict[str, str] = {}
        for event in events:
            content = event["content"]
            relation = content.get("m.relates_to", {})
            if event["sender"] != self._bot.user_id or event["event_id"] in self._events.values():
                continue
            if relation.get("rel_type") == "m.replace":
                texts[relation["event_id"]] = content["m.new_content"]["body"]
            else:
                texts[event["event_id"]] = content["body"]
        return list(texts.values())

    async def fail_next(self, failure: Failure) -> None:
        """Refuse the next message, or lose the response to it."""
        self._proxy.failures.append(failure)

    async def disconnect(self) -> None:
        """Break all connections."""
        await asyncio.to_thread(self._proxy.disconnect)

    async def close(self) -> None:
        """Stop the proxy."""
        await asyncio.to_thread(self._proxy.stop)


@pytest.mark.parametrize("check", CHECKS, ids=lambda each: str(each.__name__))
def test_adapter_passes_every_check_of_the_kit(check: Any, tmp_path: Path) -> None:
    async def make_harness() -> MatrixHarness:
        return await asyncio.to_thread(MatrixHarness, tmp_path)

    (result,) = asyncio.run(run_checks(make_harness, [check]))
    assert result.problem == ""
