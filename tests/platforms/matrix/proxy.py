"""A proxy before the homeserver that loses, refuses, garbles and adds what a real one rarely does."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from typing import Any

import aiohttp
from aiohttp import web
from yarl import URL

from tests.support.waiting import LIMIT_S
from tests.support.web_servers import close_runner

_SENDS = "/send/m.room.message/"
_SYNC = "/_matrix/client/v3/sync"
RATE_LIMIT = {"errcode": "M_LIMIT_EXCEEDED", "error": "Too Many Requests", "retry_after_ms": 1500}


class Proxy:
    """Passes requests on; its methods are called on other threads than its own."""

    def __init__(self, target: str) -> None:
        self.failures: deque[str] = deque()
        """What happens to the next messages of the bot: `rate_limit`, or `lost`: stored without a response."""
        self.batches: deque[bytes] = deque()
        """The next responses to sync, instead of the homeserver's."""
        self.sent: list[tuple[str, dict[str, Any]]] = []
        """The transactions and the contents of the messages that the bot has sent, refused ones too."""
        self.calls: list[str] = []
        """The methods and paths of all requests."""
        self._target = target
        self._requests: dict[int, web.Request] = {}
        self._loop: asyncio.AbstractEventLoop
        self._stopping: asyncio.Event
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._ready.wait(LIMIT_S)

    def disconnect(self) -> None:
        """Break all connections."""
        asyncio.run_coroutine_threadsafe(self._break_all(), self._loop).result(LIMIT_S)

    def stop(self) -> None:
        """End the server."""
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive()

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with aiohttp.ClientSession(auto_decompress=False) as self._session:
            self._ready.set()
            await self._stopping.wait()
            await site.stop()
            await self._break_all()
            await close_runner(runner)

    async def _break_all(self) -> None:
        for request in list(self._requests.values()):
            if request.transport is not None:
                request.transport.abort()

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        self._requests[id(request)] = request
        try:
            return await self._respond(request)
        finally:
            del self._requests[id(request)]

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.calls.append(f"{request.method} {request.path}")
        failure = ""
        if _SENDS in request.path:
            self.sent.append((request.path.rpartition("/")[2], json.loads(body)))
            failure = self.failures.popleft() if self.failures else ""
        if request.path == _SYNC and self.batches and "since" in request.query:
            return web.Response(body=self.batches.popleft(), content_type="application/json")
        if failure == "rate_limit":
            return web.json_response(RATE_LIMIT, status=429)
        headers = {name: value for name, value in request.headers.items() if name in ("Authorization", "Content-Type")}
        url = URL(f"{self._target}{request.raw_path}", encoded=True)
        async with self._session.request(request.method, url, data=body, headers=headers) as response:
            content = await response.read()
        if failure == "lost" and request.transport is not None:
            request.transport.abort()
        return web.Response(status=response.status, body=content, content_type=response.content_type)
