"""A small gateway for tests of the local socket: real store, real socket, and a plain client that hides nothing."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hermes.gateway.engine.ports import Admission, Inbound
from hermes.platforms.local.adapter import LocalAdapter, LocalSettings
from hermes.platforms.local.socket_file import SOCKET_NAME
from hermes.state.asynchronous.session_db import AsyncSessionDB
from hermes.state.lanes.types import Intent, OutboxRow
from hermes.state.loop_guard import guard_event_loop
from hermes_state import SessionDB
from tests.support.waiting import LIMIT_S

QUICK = LocalSettings(poll_s=0.02, retry_s=0.02)
MESSAGE = {"type": "message", "message_id": "m1", "chat_id": "c1", "user_id": "u1", "text": "hello"}
SUBSCRIBE = {"type": "subscribe", "chat_id": "c1"}


def run(test: Coroutine[Any, Any, None], limit_s: float = 3 * LIMIT_S) -> None:
    """Run a test on an event loop that no call of the store blocks, with a limit."""

    async def limited() -> None:
        async with asyncio.timeout(limit_s):
            await test

    with guard_event_loop():
        asyncio.run(limited())


async def until(is_so: Callable[[], bool], what: str) -> None:
    """Wait until a condition is true, or fail after the limit."""
    try:
        async with asyncio.timeout(LIMIT_S):
            while not is_so():
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"waited {LIMIT_S:g} s in vain: {what}") from None


class PlainClient:
    """A client that writes and reads lines, without any code of the product."""

    def __init__(self, home: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        self._path = home / SOCKET_NAME
        self._buffer = b""

    async def __aenter__(self) -> PlainClient:
        await asyncio.get_running_loop().sock_connect(self._socket, str(self._path))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave at once, whatever was not read."""
        self._socket.close()

    async def send(self, *requests: Mapping[str, Any] | bytes) -> None:
        """Send requests, or bytes as they are."""
        data = [each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n" for each in requests]
        await asyncio.get_running_loop().sock_sendall(self._socket, b"".join(data))

    async def read(self) -> dict[str, Any]:
        """Return the next line; fail after the limit or at the end of the connection."""
        async with asyncio.timeout(LIMIT_S):
            while b"\n" not in self._buffer:
                chunk = await asyncio.get_running_loop().sock_recv(self._socket, 65_536)
                if not chunk:
                    raise EOFError
                self._buffer += chunk
        line, self._buffer = self._buffer.split(b"\n", 1)
        found: dict[str, Any] = json.loads(line)
        return found

    async def read_many(self, count: int) -> list[dict[str, Any]]:
        """Return the next lines."""
        return [await self.read() for _ in range(count)]

    async def is_silent(self, seconds: float = 0.15) -> bool:
        """Whether nothing arrives for some polls of the adapter."""
        try:
            async with asyncio.timeout(seconds):
                self._buffer += await asyncio.get_running_loop().sock_recv(self._socket, 65_536)
        except TimeoutError:
            return not self._buffer
        return False


class LocalGateway:
    """An adapter on a store; messages are accepted into the inbox, as a gateway does."""

    def __init__(self, home: Path, db: AsyncSessionDB, **options: Any) -> None:
        self.db = db
        self.seen: list[Inbound] = []
        self.adapter = LocalAdapter(home, db.outbox, **{"settings": QUICK, **options})

    async def receive(self, inbound: Inbound) -> Admission:
        """Store a message, as the engine does."""
        self.seen.append(inbound)
        if inbound.text == "refuse me":
            return Admission("refused", "limit", "Your 20 turns of today are used up.")
        accepted = await self.db.inbox.accept(
            f"agent:main:local:dm:{inbound.source.chat_id}",
            {"text": inbound.text},
            platform="local",
            chat_id=inbound.source.chat_id,
            message_id=inbound.message_id,
        )
        return Admission(accepted.state, uid=accepted.message["uid"])

    async def reply(self, key: str, chat_id: str = "c1", *, kind: str = "reply", **payload: Any) -> OutboxRow:
        """Store a reply, without waking the adapter: as another node does."""
        content = {"chat_id": chat_id, "text": f"text of {key}", "thread_id": None, "reply_to": "m1", **payload}
        return await self.db.outbox.intend(Intent(key, content, "local", session_key=f"lane {chat_id}", kind=kind))

    async def state_of(self, key: str) -> str:
        """The state of a reply."""
        row = await self.db.outbox.find(key)
        assert row is not None
        return row["state"]


@asynccontextmanager
async def local_gateway(home: Path, **options: Any) -> AsyncIterator[LocalGateway]:
    """Run an adapter on the store of a home."""
    home.mkdir(parents=True, exist_ok=True)
    db = await AsyncSessionDB.open(lambda: SessionDB(home / "state.db"))
    gateway = LocalGateway(home, db, **options)
    await gateway.adapter.start(gateway.receive)
    try:
        yield gateway
    finally:
        await gateway.adapter.stop()
        await db.close()
