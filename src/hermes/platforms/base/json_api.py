"""Requests to the HTTP interface of a platform: JSON in both directions, within limits of time and size."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from hermes.errors import ConfigError
from hermes.gateway.engine.ports import MaybeSent, NotSent

if TYPE_CHECKING:
    import ssl

    from httpx2 import AsyncClient, Response

MAX_JSON_BYTES = 16 * 1024 * 1024
CONNECT_S, READ_S = 10.0, 30.0
_HEADERS = {"User-Agent": "hermes", "Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """The response to a request; `data` is empty if the body is not a JSON object."""

    status: int
    data: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_success(self) -> bool:
        """Whether the platform did what was requested."""
        return 200 <= self.status < 300

    @property
    def retry_after_s(self) -> float | None:
        """The seconds of the header `Retry-After`; None without one, or if it is a date."""
        text = self.headers.get("retry-after", "")
        return float(text) if text.isascii() and text.isdigit() and len(text) <= 6 else None


class TooLarge(MaybeSent):
    """The response is larger than what is read."""


class JsonApi:
    """The interface of one platform; every request has the token, and goes to the configured server only."""

    def __init__(self, base_url: str, token: str, *, max_bytes: int = MAX_JSON_BYTES) -> None:
        self.base_url = base_url.rstrip("/")
        self._token = token
        self._max_bytes = max_bytes
        self._client: AsyncClient | None = None
        self._opening = asyncio.Lock()

    async def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content: bytes | AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        read_s: float = READ_S,
    ) -> ApiResponse:
        """Send a request and return the response, whatever its status is.

        Raise `NotSent` if the server was not reached, and `MaybeSent` if the response did not arrive.
        """
        sent = dict(headers or {})
        if body is not None:
            content = encode_json(body)
            sent["Content-Type"] = "application/json"
        try:
            async with (
                asyncio.timeout(CONNECT_S + read_s),
                self._respond(method, path, query=query, content=content, headers=sent, read_s=read_s) as response,
            ):
                found = await _read(response, self._max_bytes)
                return ApiResponse(response.status_code, _decode(found), dict(response.headers))
        except TimeoutError:
            raise MaybeSent("the platform does not respond") from None

    @asynccontextmanager
    async def download(self, path: str, *, total_s: float = 60.0) -> AsyncIterator[AsyncIterator[bytes]]:
        """Return the pieces of a file; raise `NotSent` if the platform does not give it."""
        try:
            async with asyncio.timeout(total_s), self._respond("GET", path) as response:
                if response.status_code != 200:
                    raise NotSent(f"the platform refuses the file (status {response.status_code})", is_final=True)
                yield response.aiter_raw()
        except TimeoutError:
            raise NotSent(f"the file did not arrive within {total_s:g} s") from None

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    @asynccontextmanager
    async def _respond(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        content: bytes | AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        read_s: float = READ_S,
    ) -> AsyncIterator[Response]:
        import httpx2

        client = await self._connect()
        try:
            async with client.stream(
                method,
                self.base_url + path,
                params=dict(query) if query else None,
                content=content,
                headers={**_HEADERS, "Authorization": f"Bearer {self._token}", **(headers or {})},
                timeout=httpx2.Timeout(read_s, connect=CONNECT_S, pool=CONNECT_S),
            ) as response:
                yield response
        except httpx2.HTTPError as error:
            raise _failure(error) from None  # its text may contain the address
        except httpx2.InvalidURL:
            raise NotSent("the address of the platform cannot be used", is_final=True) from None

    async def _connect(self) -> AsyncClient:
        async with self._opening:
            if self._client is None:
                self._client = await _make_client(self.base_url)
            return self._client


def checked_base_url(name: str, value: object, default: str = "") -> str:
    """Return the address of a platform's server from a setting; raise `ConfigError` if it is none."""
    text = str(value or default).strip()
    try:
        parts = urlsplit(text)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
        is_usable = is_usable and parts.username is None and (parts.port is None or parts.port > 0)
    except ValueError:
        is_usable = False
    if not is_usable:
        raise ConfigError(
            f"platforms.{name}.extra.base_url is not an address", hint="write it as https://server.example.org"
        )
    return text.rstrip("/")


def segment(text: str) -> str:
    """Return an id as one part of a path."""
    return quote(text.encode("utf-8", "replace"), safe="")


def encode_json(value: Mapping[str, Any]) -> bytes:
    """Return a JSON object; lone surrogates, which cannot be sent, become question marks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _failure(error: Exception) -> NotSent | MaybeSent:
    """Return what an error of the client says about the message: only without a connection it was surely not sent."""
    import httpx2

    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    reason = cause.strerror if isinstance(cause, OSError) and cause.strerror else type(error).__name__
    unsent = (
        httpx2.ConnectError,
        httpx2.ConnectTimeout,
        httpx2.PoolTimeout,
        httpx2.ProxyError,
        httpx2.UnsupportedProtocol,
        httpx2.LocalProtocolError,
    )
    if isinstance(error, unsent):
        return NotSent(f"the platform cannot be reached: {reason}")
    return MaybeSent(f"the connection was lost: {reason}")


async def _read(response: Response, limit: int) -> bytes:
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > limit:
            raise TooLarge(f"the response is larger than {limit // 1024} KB")
    return bytes(body)


def _decode(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


async def _make_client(base_url: str) -> AsyncClient:
    """Return a client that follows no redirects; this machine and unencrypted servers are reached without a proxy."""
    import logging

    import httpx2

    logging.getLogger("httpx2").setLevel(logging.WARNING)  # it would log addresses
    parts = urlsplit(base_url)
    verify = await asyncio.to_thread(_trusted, parts.scheme)
    limits = httpx2.Limits(max_connections=32, max_keepalive_connections=8, keepalive_expiry=30.0)
    if parts.scheme == "http" or _is_this_machine(parts.hostname or ""):
        transport = httpx2.AsyncHTTPTransport(verify=verify, limits=limits)
        return httpx2.AsyncClient(transport=transport, follow_redirects=False, trust_env=False)
    return httpx2.AsyncClient(verify=verify, limits=limits, follow_redirects=False)


@cache
def _trusted(scheme: str) -> ssl.SSLContext:
    """The certificates to trust; reading them is slow, and http needs none."""
    import ssl

    import httpcore2

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if scheme == "http" else httpcore2.default_ssl_context()


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
