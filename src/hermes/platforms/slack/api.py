"""Calls of Slack's Web API, whose errors say what Slack has."""

from __future__ import annotations

import io
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from hermes.gateway.engine.ports import MaybeSent, NotSent
from hermes.platforms.slack.failures import error_of
from hermes.platforms.slack.settings import SlackSettings

if TYPE_CHECKING:
    from slack_sdk.web.async_client import AsyncWebClient
    from yarl import URL

TIMEOUT_S = 30.0
_CONNECT_S = 10.0
_TRANSFER_S = 120.0
_CHUNK = 64 * 1024
_FILE_HOSTS = (".slack.com", ".slack-files.com", ".slack-gov.com")


def silent_logger() -> logging.Logger:
    """Return a logger for the library that writes nothing: its records contain addresses with tickets."""
    return logging.Logger("slack_sdk", level=logging.CRITICAL + 1)


class SlackApi:
    """The Web API for one bot; requests are never repeated here."""

    def __init__(self, settings: SlackSettings, *, timeout_s: float = TIMEOUT_S) -> None:
        self._settings = settings
        self._timeout_s = timeout_s
        self._client: AsyncWebClient | None = None

    def open(self) -> None:
        """Make the client; it connects at the first request."""
        import aiohttp
        from slack_sdk.web.async_client import AsyncWebClient

        timeout = aiohttp.ClientTimeout(total=self._timeout_s, sock_connect=_CONNECT_S)
        self._client = AsyncWebClient(
            self._settings.token,
            base_url=self._settings.base_url,
            session=aiohttp.ClientSession(timeout=timeout),
            retry_handlers=[],
            logger=silent_logger(),
        )

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None and client.session is not None:
            await client.session.close()

    @property
    def client(self) -> AsyncWebClient:
        """The library's client; raise `NotSent` if it is closed."""
        if self._client is None:
            raise NotSent("Slack is not connected")
        return self._client

    @property
    def is_encrypted(self) -> bool:
        """Whether the platform is reached by https, as it always is outside of tests."""
        return self._settings.base_url.startswith("https:")

    async def call(self, request: Callable[[AsyncWebClient], Awaitable[Any]]) -> Mapping[str, Any]:
        """Return the data of a response; raise `NotSent` or `MaybeSent`."""
        try:
            response = await request(self.client)
            data = response.data
        except Exception as error:
            raise error_of(error) from error
        if not isinstance(data, dict):
            raise MaybeSent("Slack's response cannot be read")
        return data

    async def ask(self, method: str, **arguments: str | int | None) -> Mapping[str, Any]:
        """Call a method with a form; the library would put the arguments into the address, or repeat the request."""
        form = {name: str(value) for name, value in arguments.items() if value is not None}
        return await self.call(lambda client: client.api_call(method, data=form))

    async def upload(self, address: str, content: bytes) -> None:
        """Give Slack the content of a file; nothing is shown yet."""
        import aiohttp

        session = self.client.session
        assert session is not None
        timeout = aiohttp.ClientTimeout(total=_TRANSFER_S, sock_connect=_CONNECT_S, sock_read=self._timeout_s)
        options: dict[str, Any] = {"proxy": self.client.proxy, "allow_redirects": False, "timeout": timeout}
        try:
            async with session.post(address, data=io.BytesIO(content), **options) as response:
                if response.status != 200:
                    raise NotSent(f"Slack did not take the file (status {response.status})")
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise NotSent(f"the file could not be uploaded ({type(error).__name__})") from error

    @asynccontextmanager
    async def download(self, address: str, mime: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Give the content of a file; the token goes only to Slack, and a redirect is not followed."""
        import aiohttp

        url = self._address_of_file(address)
        if url is None:
            raise NotSent("it is not on a server of Slack", is_final=True)
        session = self.client.session
        assert session is not None
        headers = {"Authorization": f"Bearer {self._settings.token}"}
        timeout = aiohttp.ClientTimeout(total=_TRANSFER_S, sock_connect=_CONNECT_S, sock_read=self._timeout_s)
        options: dict[str, Any] = {"proxy": self.client.proxy, "allow_redirects": False, "timeout": timeout}
        try:
            async with session.get(url, headers=headers, **options) as response:
                if response.status != 200:
                    is_final = response.status != 429 and response.status < 500
                    raise NotSent(f"Slack returned the status {response.status}", is_final=is_final)
                if response.content_type == "text/html" != mime:
                    raise NotSent("the bot may not read files", is_final=True)  # this is the page to log in
                yield response.content.iter_chunked(_CHUNK)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NotSent(f"the connection to Slack was lost ({type(error).__name__})") from error

    def _address_of_file(self, address: str) -> URL | None:
        """Return an address to which the token may be sent; None for every other."""
        from yarl import URL

        try:
            url = URL(address)
            if url.scheme == "https" and (url.host or "").endswith(_FILE_HOSTS):
                return url
            return url if url.host and url.origin() == URL(self._settings.base_url).origin() else None
        except ValueError:
            return None
