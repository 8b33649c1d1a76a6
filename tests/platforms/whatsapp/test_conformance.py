"""The adapter passes every check of the kit."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hermes.platforms.http.server import HttpServer
from hermes.platforms.testing import CHECKS, Failure, Harness, run_checks
from hermes.platforms.whatsapp.adapter import WhatsAppAdapter
from tests.platforms.local_gateway import run
from tests.platforms.whatsapp.meta import OWN, USER, Meta, refusal
from tests.platforms.whatsapp.numbers import PATH, make_adapter


class WhatsAppHarness:
    """Meta, and an adapter with its webhook."""

    chat_id = USER

    def __init__(self, home: Path) -> None:
        self.meta = Meta()
        self._server = HttpServer()
        self._home = home
        self._acknowledged: set[int] = set()
        self._delivering: set[asyncio.Task[None]] = set()
        self._adapter: WhatsAppAdapter | None = None

    async def start(self) -> None:
        await self._server.start()
        self.meta.webhook = f"{self._server.url}{PATH}"
        self._adapter = make_adapter(self._home, self.meta.base_url, self._server)

    @property
    def adapter(self) -> WhatsAppAdapter:
        assert self._adapter is not None
        return self._adapter

    async def deliver(self, number: int, text: str, *, is_own: bool = False) -> None:
        task = asyncio.create_task(self._deliver(number, text, OWN if is_own else USER))
        self._delivering.add(task)
        task.add_done_callback(self._delivering.discard)

    async def _deliver(self, number: int, text: str, sender: str) -> None:
        if await asyncio.to_thread(self.meta.say, text, f"wamid.{number}", sender) == 200:
            self._acknowledged.add(number)

    async def deliver_malformed(self) -> None:
        for body in (b"{", b"[]", b"\xff", b"[" * 100_000, b'{"entry": [{"changes": 5}]}'):
            assert await asyncio.to_thread(self.meta.post, body) == 200
        for value in ({"messages": [5, {}, {"id": 5}]}, {"messages": "x"}, {"statuses": [None, {"status": 5}]}):
            assert await asyncio.to_thread(self.meta.notify, value) == 200

    async def is_acknowledged(self, number: int) -> bool:
        return number in self._acknowledged

    async def shown(self) -> list[str]:
        return self.meta.texts

    async def fail_next(self, failure: Failure) -> None:
        self.meta.answers.append("lost" if failure == "lost" else refusal(130429, 429))

    async def disconnect(self) -> None:
        """Let the webhook have no address for a moment."""
        await self._server.stop()
        await self._server.start()

    async def close(self) -> None:
        await asyncio.gather(*self._delivering)
        await self._server.stop()
        self.meta.close()


def test_the_adapter_passes_every_check(tmp_path: Path) -> None:
    async def make() -> Harness:
        harness = WhatsAppHarness(tmp_path)
        await harness.start()
        return harness

    async def test() -> None:
        results = await run_checks(make)
        assert [each for each in results if each.problem] == []
        assert len(results) == len(CHECKS)

    run(test())
