"""The connection to Discord, which is made again whenever it is lost for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from hermes.errors import ConfigError
from hermes.gateway.engine.ports import NotSent
from hermes.log import inform, warn
from hermes.platforms.base.backoff import Backoff
from hermes.platforms.discord.failures import error_of
from hermes.platforms.discord.settings import DiscordSettings

if TYPE_CHECKING:
    from hermes.platforms.discord.client import Connection, OnEvent

CONNECT_S = 60.0
PATIENCE_S = 60.0
"""After how long without a connection everything is made new: the library pauses for up to a quarter of an hour."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 120.0
"""The pauses between new connections: Discord allows 1,000 of them in a day."""
LASTING_S = 150.0
"""After a connection that lasted this long, the pauses begin again."""
HOPELESS_S = 300.0
"""The pause after an error that only the operator can mend."""
_LOGIN_S, _CLOSE_S = 30.0, 5.0
_WATCH_S = 1.0
_WRONG_TOKEN, _WRONG_INTENTS, _REFUSED_INTENTS = 4004, 4013, 4014
PORTAL: Final = "Discord's developer portal"


class Link:
    """Keeps one connection, and knows whether there is one."""

    def __init__(self, settings: DiscordSettings, handlers: Mapping[str, OnEvent]) -> None:
        self._settings = settings
        self._handlers = {**handlers, "READY": self._on_ready, "RESUMED": self._on_resumed}
        self._on_identified: Callable[[Mapping[str, Any]], None] | None = handlers.get("READY")
        self._client: Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._lost_at: float | None = None
        self.status = "connecting"
        """What the connection does now, as a phrase."""

    @property
    def client(self) -> Connection:
        """The present connection; raise `NotSent` if there is none."""
        if self._client is None:
            raise NotSent("Discord is not connected")
        return self._client

    async def log_in(self) -> Connection:
        """Check the token and return the connection, which receives nothing yet."""
        self._client = await self._make()
        flags = self._client.application_flags
        if self._settings.message_content and not (
            flags.gateway_message_content or flags.gateway_message_content_limited
        ):
            raise missing_intent()  # an attempt to connect would count, and Discord allows 1,000 in a day
        return self._client

    async def start(self) -> None:
        """Receive events from now on; raise `ConfigError` if Discord refuses the bot, `NotSent` if it is away."""
        self._ready.clear()
        self._task = asyncio.create_task(self._run(), name="hermes-discord")
        waiting = asyncio.ensure_future(self._ready.wait())
        await asyncio.wait({waiting, self._task}, timeout=CONNECT_S, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._task.done():
            self._task.result()
        if not self._ready.is_set():
            raise NotSent("Discord's gateway does not respond")

    async def stop(self) -> None:
        """Disconnect."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._close()
        self.status = "stopped"

    async def _make(self) -> Connection:
        from discord import LoginFailure

        from hermes.platforms.discord.client import Connection

        client = Connection(self._settings, self._handlers)
        client.event(self._disconnect_listener())
        try:
            async with asyncio.timeout(_LOGIN_S):
                await client.login(self._settings.token)
        except BaseException as error:
            await client.close()
            if isinstance(error, LoginFailure):
                raise wrong_token() from None
            if isinstance(error, Exception):
                raise error_of(error) from None  # an address may be part of its text
            raise
        return client

    def _disconnect_listener(self) -> Any:
        async def on_disconnect() -> None:
            if self._lost_at is None:
                self._lost_at = asyncio.get_running_loop().time()
                self.status = "connecting again"

        return on_disconnect

    def _on_ready(self, data: Mapping[str, Any]) -> None:
        self._note_connected()
        if self._on_identified is not None:
            self._on_identified(data)

    def _on_resumed(self, _: Mapping[str, Any]) -> None:
        self._note_connected()

    def _note_connected(self) -> None:
        if self._lost_at is not None and self._ready.is_set():
            inform(__name__, "Discord is connected again")
        self._lost_at = None
        self.status = "connected"
        self._ready.set()

    async def _run(self) -> None:
        """Stay connected; raise only if the first connection is refused."""
        backoff = Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        loop = asyncio.get_running_loop()
        while True:
            began_at = loop.time()
            try:
                self._client = self._client or await self._make()
                problem = await self._connect(self._client)
            except Exception as error:  # noqa: BLE001 - whatever it is, the next attempt follows
                problem = error
            await self._close()
            if not self._ready.is_set():
                raise problem
            if self._lost_at is None:
                self._lost_at = loop.time()
            if loop.time() > began_at + LASTING_S:
                backoff.reset()
            is_hopeless = isinstance(problem, ConfigError)
            if is_hopeless or backoff.failures == 0:
                warn(__name__, "Discord is not connected: %s", _described(problem))
            self.status = f"not connected: {_described(problem)}"
            await asyncio.sleep(HOPELESS_S if is_hopeless else backoff.next_s(_wait_of(problem)))

    async def _connect(self, client: Connection) -> Exception:
        """Be connected until that ends for good or too long, and return why."""
        loop = asyncio.get_running_loop()
        self._lost_at = self._lost_at or loop.time()
        began_at = loop.time()
        connecting = asyncio.create_task(client.connect(), name="hermes-discord-gateway")
        try:
            while True:
                done, _ = await asyncio.wait({connecting}, timeout=min(_WATCH_S, PATIENCE_S))
                if done:
                    error = connecting.exception()
                    return (
                        _problem_of(error) if isinstance(error, Exception) else NotSent("Discord ended the connection")
                    )
                if self._lost_at is not None and loop.time() > max(self._lost_at, began_at) + PATIENCE_S:
                    return NotSent("Discord's gateway does not respond")
        finally:
            connecting.cancel()
            await asyncio.gather(connecting, return_exceptions=True)

    async def _close(self) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        try:
            async with asyncio.timeout(_CLOSE_S):
                await client.close()
        except TimeoutError:  # the server does not say goodbye
            await client.http.close()


def wrong_token() -> ConfigError:
    """Return the error of a token that Discord refuses."""
    return ConfigError(
        "Discord refuses the token of the bot",
        hint=f"create a new one in {PORTAL}, page Bot of your application, and set platforms.discord.token",
    )


def missing_intent() -> ConfigError:
    """Return the error of a bot that requests more than its application may have."""
    return ConfigError(
        "Discord does not let the bot read the content of messages",
        hint=f"turn on Message Content Intent in {PORTAL}, page Bot of your application; or set "
        "platforms.discord.extra.message_content: false, then the bot reads direct messages and mentions only",
    )


def _problem_of(error: Exception) -> Exception:
    """Return an error of the gateway; a `ConfigError` if only the operator can mend it."""
    from discord import ConnectionClosed, PrivilegedIntentsRequired

    if isinstance(error, PrivilegedIntentsRequired):
        return missing_intent()
    if not isinstance(error, ConnectionClosed):
        return error_of(error)
    if error.code == _WRONG_TOKEN:
        return wrong_token()
    if error.code in (_WRONG_INTENTS, _REFUSED_INTENTS):
        return missing_intent()
    return NotSent(f"Discord ended the connection with code {error.code}")


def _described(problem: Exception) -> str:
    return str(problem) or type(problem).__name__


def _wait_of(problem: Exception) -> float | None:
    return problem.retry_after_s if isinstance(problem, NotSent) else None
