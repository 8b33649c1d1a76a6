"""The connection of socket mode, which is made again whenever it is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from hermes.log import warn
from hermes.platforms.slack.api import SlackApi, silent_logger

if TYPE_CHECKING:
    from slack_sdk.socket_mode.aiohttp import SocketModeClient

CONNECT_S = 30.0
_WATCH_S = 1.0
_PATIENCE_S = 45.0
"""After how long without a connection everything is made new: the library asks an old address for ever."""
_RETRY_S = (1.0, 2.0, 5.0, 15.0, 30.0)

OnEnvelope = Callable[[Mapping[str, Any]], Awaitable[bool]]
"""Handles an envelope and returns whether it may be acknowledged."""


class SocketLink:
    """Receives envelopes and acknowledges those that were handled."""

    def __init__(self, api: SlackApi, app_token: str, handle: OnEnvelope, *, ping_s: float = 5.0) -> None:
        self._api, self._app_token, self._handle, self._ping_s = api, app_token, handle, ping_s
        self._client: SocketModeClient | None = None
        self._watching: asyncio.Task[None] | None = None
        self._working: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Connect; raise TimeoutError if Slack cannot be reached."""
        await self._connect()
        self._watching = asyncio.create_task(self._watch(), name="hermes-slack-socket")

    async def stop(self) -> None:
        """Disconnect; what is being handled is given up unacknowledged."""
        tasks = [each for each in (self._watching, *self._working) if each is not None]
        self._watching = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._close()

    async def _connect(self) -> None:
        from slack_sdk.socket_mode.aiohttp import SocketModeClient

        await self._close()
        client = self._client = SocketModeClient(
            self._app_token, silent_logger(), self._api.client, ping_interval=self._ping_s
        )
        client.message_listeners.append(self._listen)  # type: ignore[arg-type]
        try:
            async with asyncio.timeout(CONNECT_S):
                client.wss_uri = await client.issue_new_wss_url()
                await client.connect()  # type: ignore[no-untyped-call]
        except BaseException:
            await self._close()
            raise

    async def _close(self) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        tasks = [client.message_processor, client.current_session_monitor, client.message_receiver]
        await client.close()  # type: ignore[no-untyped-call]
        await asyncio.gather(*(each for each in tasks if each is not None), return_exceptions=True)

    async def _listen(self, client: SocketModeClient, message: Mapping[str, Any], _: str | None = None) -> None:
        """Handle an envelope in a task; the library starts the listeners in the order of arrival."""
        if not isinstance(message.get("envelope_id"), str):
            if message.get("type") not in ("hello", "disconnect"):
                warn(__name__, "Slack sent something that is no envelope")
            return
        task = asyncio.create_task(self._serve(client, message))
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    async def _serve(self, client: SocketModeClient, envelope: Mapping[str, Any]) -> None:
        if not await self._handle(envelope):
            return
        try:
            await client.send_socket_mode_response({"envelope_id": envelope["envelope_id"]})
        except (OSError, RuntimeError, AttributeError) as error:
            # Slack delivers it again, and then it is known
            warn(__name__, "an event could not be acknowledged: %s", type(error).__name__)

    async def _watch(self) -> None:
        """Make a new client if the present one stays without a connection."""
        loop = asyncio.get_running_loop()
        connected_at, failures = loop.time(), 0
        while True:
            await asyncio.sleep(_WATCH_S)
            if self._client is not None and await self._client.is_connected():
                connected_at, failures = loop.time(), 0
                continue
            if self._client is not None and loop.time() - connected_at < _PATIENCE_S:
                continue
            try:
                await self._connect()
            except Exception as error:  # noqa: BLE001 - whatever it is, the next attempt follows
                if failures == 0:
                    warn(__name__, "Slack is not connected: %s", type(error).__name__)
                await asyncio.sleep(_RETRY_S[min(failures, len(_RETRY_S) - 1)])
                failures += 1
