"""discord.py as the adapter uses it: its connection, its cache of channels and its rate limits.

This module imports the library, so it is imported when the adapter connects.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import discord
from discord.http import HTTPClient, Route
from discord.state import ConnectionState

from hermes.gateway.engine.ports import MaybeSent, NotSent
from hermes.log import warn
from hermes.platforms.discord.failures import error_of
from hermes.platforms.discord.settings import DiscordSettings

REQUEST_S = 25.0
"""How long a request may take, with the pauses that the library makes because of rate limits."""
_LONGEST_PAUSE_S = 30.0
"""The longest pause that the library makes by itself; it allows no shorter limit."""
_TOO_MANY = 429

OnEvent = Callable[[Mapping[str, Any]], None]


@dataclass(slots=True)
class _Request:
    """What is known about a request that is being made."""

    is_written: bool = False
    """Whether Discord may have it."""
    wait_until: float | None = None


_request: ContextVar[_Request | None] = ContextVar("hermes_discord_request", default=None)


class Api(HTTPClient):
    """Requests to Discord, or to the server that the settings name."""

    def __init__(self, settings: DiscordSettings) -> None:
        super().__init__(asyncio.get_running_loop(), http_trace=_tracing(), max_ratelimit_timeout=_LONGEST_PAUSE_S)
        self._base_url, self._gateway_url = settings.base_url, settings.gateway_url

    async def request(self, route: Route, **more: Any) -> Any:
        """Send a request to the configured server, and return the content of the response."""
        route.url = self._base_url + route.url.removeprefix(Route.BASE)
        return await super().request(route, **more)

    async def ws_connect(self, url: str, *, compress: int = 0) -> aiohttp.ClientWebSocketResponse:
        """Connect to the gateway; with an address in the settings never to another one, also when resuming."""
        if self._gateway_url:
            mine = urlsplit(self._gateway_url)
            url = urlunsplit((mine.scheme, mine.netloc, mine.path or "/", urlsplit(url).query, ""))
        return await super().ws_connect(url, compress=compress)

    async def call(self, method: str, path: str, *, limit_s: float = REQUEST_S, **more: Any) -> Any:
        """Send a request; raise `NotSent` if Discord does not have it, and `MaybeSent` if it may have it."""
        ids = {name: more.pop(name) for name in ("channel_id", "message_id", "guild_id", "user_id") if name in more}
        return await self.run(lambda: self.request(Route(method, path, **ids), **more), limit_s)

    async def run(self, request: Callable[[], Any], limit_s: float = REQUEST_S) -> Any:
        """Make a request of the library within a limit, with its errors as what they say about a message."""
        about = _Request()
        token = _request.set(about)
        try:
            async with asyncio.timeout(limit_s):
                return await request()
        except TimeoutError:
            if about.is_written:
                raise MaybeSent("Discord did not respond in time") from None
            if about.wait_until is None:
                raise NotSent("Discord could not be reached in time") from None
            left_s = about.wait_until - asyncio.get_running_loop().time()
            raise NotSent("Discord wants a pause", retry_after_s=max(1.0, left_s)) from None
        except Exception as error:  # noqa: BLE001 - the library raises many kinds, and their texts may contain addresses
            raise error_of(error) from None
        finally:
            _request.reset(token)


class _State(ConnectionState["Connection"]):
    """What the library knows about servers and channels."""

    async def _delay_ready(self) -> None:
        """Wait for no servers: the adapter handles each when it arrives."""
        del self._ready_state


class Connection(discord.Client):
    """The connection to the gateway; events reach the adapter as they came, and a malformed one ends nothing."""

    http: Api

    def __init__(self, settings: DiscordSettings, handlers: Mapping[str, OnEvent]) -> None:
        _silence()
        self._settings = settings
        intents = discord.Intents.none()
        intents.guilds = intents.guild_messages = intents.dm_messages = True
        intents.message_content = settings.message_content
        super().__init__(
            intents=intents,
            max_messages=None,
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
        )
        parsers = self._connection.parsers
        for name in [each for each in parsers if each.startswith(("MESSAGE_", "PRESENCE_", "TYPING_"))]:
            del parsers[name]
        for name in {*parsers, *handlers}:
            parsers[name] = partial(_handle, name, (parsers.get(name), handlers.get(name)))

    def _get_state(self, **options: Any) -> Any:
        self.http = Api(self._settings)
        handlers, hooks = self._handlers, self._hooks
        return _State(dispatch=self.dispatch, handlers=handlers, hooks=hooks, http=self.http, **options)

    async def on_error(self, event_method: str, /, *args: Any, **kwargs: Any) -> None:
        """Write the name of what failed to the log, and no content."""
        warn(__name__, "handling %s of Discord failed", event_method)


def _handle(name: str, parts: tuple[Callable[[Any], object] | None, ...], data: Any) -> None:
    """Pass an event to the library and to the adapter; one that cannot be understood is logged without its content."""
    for part in parts:
        try:
            if part is not None:
                part(data)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with an event must not end the connection
            warn(__name__, "an event %s of Discord cannot be understood: %s", name, type(error).__name__)


def _tracing() -> aiohttp.TraceConfig:
    """Return what notes whether a request was written, and whether Discord wants a pause."""
    trace = aiohttp.TraceConfig()

    async def written(
        _: aiohttp.ClientSession, __: SimpleNamespace, ___: aiohttp.TraceRequestHeadersSentParams
    ) -> None:
        if (about := _request.get()) is not None:
            about.is_written, about.wait_until = True, None

    async def ended(_: aiohttp.ClientSession, __: SimpleNamespace, found: aiohttp.TraceRequestEndParams) -> None:
        about = _request.get()
        if about is None or found.response.status != _TOO_MANY:
            return
        error = error_of(discord.HTTPException(found.response, ""))
        wait_s = error.retry_after_s if isinstance(error, NotSent) else None
        about.is_written, about.wait_until = False, asyncio.get_running_loop().time() + (wait_s or 1.0)

    trace.on_request_headers_sent.append(written)
    trace.on_request_end.append(ended)
    return trace


def _silence() -> None:
    """Keep the library from writing to the log, whose records contain addresses and content; the adapter writes."""
    logger = logging.getLogger("discord")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL + 1)
