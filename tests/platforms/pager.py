"""The Pager server of docs/guide/write-an-adapter.md, as a harness of the conformance kit."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

from hermes.platforms.base import BaseAdapter
from hermes.platforms.testing import Failure

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "write-an-adapter.md"


def code_of_the_page() -> str:
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def load_page() -> ModuleType:
    module = ModuleType("hermes_pager")
    exec(compile(code_of_the_page(), "write-an-adapter.md", "exec"), vars(module))
    return module


class PagerHarness:
    """A Pager server, and the adapter of the page."""

    chat_id = "room"

    def __init__(self) -> None:
        self._updates: dict[int, dict[str, Any]] = {}
        self._acknowledged: set[int] = set()
        self._texts: dict[str, str] = {}
        self._failure: Failure | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._adapter: BaseAdapter | None = None

    @classmethod
    async def start(cls) -> PagerHarness:
        harness = cls()
        harness._server = await asyncio.start_server(harness._serve, "127.0.0.1", 0)
        port = harness._server.sockets[0].getsockname()[1]
        harness._adapter = load_page().PagerAdapter("127.0.0.1", port)
        return harness

    @property
    def adapter(self) -> BaseAdapter:
        assert self._adapter is not None
        return self._adapter

    async def deliver(self, number: int, text: str, *, is_own: bool = False) -> None:
        update = {"update": number, "id": f"m{number}", "chat": self.chat_id, "user": "u", "text": text, "bot": is_own}
        self._updates[number] = update
        self._push(json.dumps(update).encode())

    async def deliver_malformed(self) -> None:
        for line in (b"{", b"[]", b'{"update": "x"}', b'{"update": 5}', b"\xff"):
            self._push(line)

    async def is_acknowledged(self, number: int) -> bool:
        return number in self._acknowledged

    async def shown(self) -> list[str]:
        return list(self._texts.values())

    async def fail_next(self, failure: Failure) -> None:
        self._failure = failure

    async def disconnect(self) -> None:
        for writer in list(self._writers):
            writer.close()
        self._writers.clear()

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        await self.disconnect()
        await self._server.wait_closed()

    def _push(self, line: bytes) -> None:
        for writer in self._writers:
            writer.write(line + b"\n")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        for number, update in self._updates.items():
            if number not in self._acknowledged:
                writer.write(json.dumps(update).encode() + b"\n")
        try:
            while line := await reader.readline():
                self._handle(json.loads(line), writer)
        except ConnectionError:
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    def _handle(self, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        if "ack" in request:
            self._acknowledged.add(request["ack"])
            return
        failure, self._failure = self._failure, None
        key = request.get("post") or request["key"]
        answer: dict[str, Any] = {"to": key}
        if failure == "rate_limit":
            answer |= {"error": "too many messages", "wait": 3}
        elif "edit" in request:
            self._texts[request["edit"]] = request["text"]
        else:
            answer["id"] = f"b{len(self._texts) + 1}"
            self._texts[answer["id"]] = request["text"]
        if failure == "lost":
            writer.close()
        else:
            writer.write(json.dumps(answer).encode() + b"\n")
