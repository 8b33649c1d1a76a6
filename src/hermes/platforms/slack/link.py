"""The connection of socket mode, which is made again whenever it is lost or Slack wants a new one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hermes.gateway.engine.ports import MaybeSent, NotSent
from hermes.log import warn
from hermes.platforms.base.backoff import Backoff
from hermes.platforms.slack.api import SlackApi

if TYPE_CHECKING:
    from aiohttp import ClientWebSocketResponse

HEARTBEAT_S = 20.0
"""How often the connection is tried; without a response within half of that it counts as lost."""
_LASTING_S = 10.0
"""A connection that lasted so long was a good one: the next is made at once."""
_FINISH_S = 5.0
"""How long an old connection stays for the acknowledgements of what it has delivered."""
_MAX_BYTES = 4 * 1024 * 1024

OnEnvelope = Callable[[Mapping[str, Any]], Awaitable[bool]]
"""Handles an envelope and returns whether it may be acknowledged."""


@dataclass(slots=True, eq=False)
class _Connection:
    socket: ClientWebSocketResponse
    working: set[asyncio.Task[None]] = field(default_factory=set)

    async def finish(self) -> None:
        """Acknowledge what is being handled, within a limit, and close."""
        if self.working:
            await asyncio.wait(self.working, timeout=_FINISH_S)
        await self.socket.close()
        if self.working:
            await asyncio.wait(self.working)

    async def abandon(self) -> None:
        """Close at once; what is being handled stays unacknowledged, and Slack delivers it again."""
        for task in self.working:
            task.cancel()
        await asyncio.gather(*self.working, return_exceptions=True)
        await self.socket.close()


class SocketLink:
    """Receives envelopes and acknowledges those that were handled."""

    def __init__(
        self, api: SlackApi, app_token: str, handle: OnEnvelope, backoff: Backoff, *, heartbeat_s: float = HEARTBEAT_S
    ) -> None:
        self._api, self._app_token, self._handle = api, app_token, handle
        self._backoff, self._heartbeat_s = backoff, heartbeat_s
        self._connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Connect, and stay connected; raise `NotSent` or `MaybeSent` if Slack cannot be reached."""
        connection = await self._connect()
        self._start_task(self._stay_connected(connection), "hermes-slack-socket")

    async def stop(self) -> None:
        """Disconnect; what is being handled is given up unacknowledged."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(each.abandon() for each in self._connections), return_exceptions=True)
        self._connections.clear()

    async def _connect(self) -> _Connection:
        import aiohttp

        token = self._app_token
        data = await self._api.call(lambda client: client.apps_connections_open(app_token=token))
        url = str(data.get("url") or "")
        if not url.startswith("wss://" if self._api.is_encrypted else ("wss://", "ws://")):
            raise NotSent("Slack gave no address for socket mode")
        client = self._api.client
        assert client.session is not None
        try:
            socket = await client.session.ws_connect(
                url, heartbeat=self._heartbeat_s, max_msg_size=_MAX_BYTES, proxy=client.proxy
            )
        except (aiohttp.ClientError, OSError) as error:  # its text has the address, which contains a ticket
            raise NotSent(f"the connection of socket mode failed: {type(error).__name__}") from None
        connection = _Connection(socket)
        self._connections.add(connection)
        return connection

    async def _stay_connected(self, connection: _Connection | None) -> None:
        loop, is_noted = asyncio.get_running_loop(), False
        while True:
            since = loop.time()
            if connection is None:
                try:
                    connection = await self._connect()
                except (NotSent, MaybeSent, OSError) as error:
                    if not is_noted:
                        warn(__name__, "Slack is not connected: %s", error)
                    is_noted = True
                    pause_s = error.retry_after_s if isinstance(error, NotSent) else None
                    await asyncio.sleep(self._backoff.next_s(pause_s))
                    continue
            is_noted = False
            try:
                await self._read(connection)
            except Exception as error:  # noqa: BLE001 - whatever it was, a new connection follows
                warn(__name__, "the connection to Slack failed: %s", type(error).__name__)
            self._start_task(self._leave(connection), "hermes-slack-old-socket")
            connection = None
            if loop.time() - since >= _LASTING_S:
                self._backoff.reset()
            else:
                await asyncio.sleep(self._backoff.next_s())

    async def _read(self, connection: _Connection) -> None:
        """Handle what Slack sends, until the connection ends or Slack wants a new one."""
        from aiohttp import WSMsgType

        async for message in connection.socket:
            if message.type is not WSMsgType.TEXT:
                continue
            try:
                envelope = json.loads(message.data)
            except (ValueError, RecursionError):
                envelope = None
            if not isinstance(envelope, dict):
                warn(__name__, "Slack sent something that is no envelope")
            elif isinstance(envelope.get("envelope_id"), str):
                # A task runs up to its first wait in the order of its start: so messages stay in order.
                task = asyncio.create_task(self._serve(connection, envelope))
                connection.working.add(task)
                task.add_done_callback(connection.working.discard)
            elif envelope.get("type") == "disconnect":
                if (reason := str(envelope.get("reason"))) not in ("warning", "refresh_requested"):
                    warn(__name__, "Slack ends the connection: %s", reason[:100])
                return

    async def _serve(self, connection: _Connection, envelope: Mapping[str, Any]) -> None:
        if not await self._handle(envelope):
            return
        try:
            await connection.socket.send_json({"envelope_id": envelope["envelope_id"]})
        except (OSError, RuntimeError):  # the connection is closed; Slack delivers it again, and then it is known
            warn(__name__, "an event could not be acknowledged, because the connection was lost")

    async def _leave(self, connection: _Connection) -> None:
        await connection.finish()
        self._connections.discard(connection)

    def _start_task(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
