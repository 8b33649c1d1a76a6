"""Calls of Slack's Web API, whose errors say what Slack has."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hermes.gateway.engine.ports import MaybeSent, NotSent
from hermes.platforms.slack.events import ChatKind
from hermes.platforms.slack.failures import error_of
from hermes.platforms.slack.settings import SlackSettings

if TYPE_CHECKING:
    from slack_sdk.web.async_client import AsyncWebClient

TIMEOUT_S = 30.0
_CONNECT_S = 10.0
_MOST_NAMES = 2000
_CHUNK = 64 * 1024


def silent_logger() -> logging.Logger:
    """Return a logger for the library that writes nothing: its records contain addresses with tickets."""
    return logging.Logger("slack_sdk", level=logging.CRITICAL + 1)


class SlackApi:
    """The Web API for one bot; requests are never repeated here."""

    def __init__(self, settings: SlackSettings) -> None:
        self._settings = settings
        self._client: AsyncWebClient | None = None
        self._names: OrderedDict[str, str | None] = OrderedDict()
        self._kinds: OrderedDict[str, ChatKind] = OrderedDict()

    @property
    def client(self) -> AsyncWebClient:
        """The library's client, which is made at the first use."""
        if self._client is None:
            import aiohttp
            from slack_sdk.web.async_client import AsyncWebClient

            timeout = aiohttp.ClientTimeout(total=TIMEOUT_S, sock_connect=_CONNECT_S)
            self._client = AsyncWebClient(
                self._settings.token,
                base_url=self._settings.base_url,
                session=aiohttp.ClientSession(timeout=timeout),
                retry_handlers=[],
                logger=silent_logger(),
            )
        return self._client

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None and client.session is not None:
            await client.session.close()

    async def call(self, request: Awaitable[Any]) -> Mapping[str, Any]:
        """Return the data of a response; raise `NotSent` or `MaybeSent`."""
        try:
            response = await request
        except Exception as error:
            raise error_of(error) from error
        data = response.data
        if not isinstance(data, dict):
            raise MaybeSent("Slack's response cannot be read")
        return data

    async def name_of_user(self, user: str) -> str | None:
        """Return the name that a user shows to others; None if Slack does not tell."""
        if user not in self._names:
            found = await self._ask(self.client.users_info(user=user), "user")
            profile = found.get("profile")
            shown = profile.get("display_name") if isinstance(profile, dict) else None
            _keep(self._names, user, str(shown or found.get("real_name") or found.get("name") or "") or None)
        return self._names[user]

    async def name_of_chat(self, channel: str) -> str | None:
        """Return the name of a channel; None if it has none."""
        if channel not in self._names:
            await self.kind_of_chat(channel)
        return self._names.get(channel)

    async def kind_of_chat(self, channel: str) -> ChatKind:
        """Return whether a chat is a direct message, one with several people, or a channel."""
        if channel not in self._kinds or channel not in self._names:
            found = await self._ask(self.client.conversations_info(channel=channel), "channel")
            _keep(self._names, channel, str(found.get("name") or "") or None)
            kind: ChatKind = "im" if found.get("is_im") else "mpim" if found.get("is_mpim") else "channel"
            _keep(self._kinds, channel, kind)
        return self._kinds[channel]

    async def download(self, url: str) -> AsyncIterator[bytes]:
        """Yield the content of a file; the token goes only to Slack, and a redirect is not followed."""
        host, own = urlsplit(url), urlsplit(self._settings.base_url)
        is_slack = host.scheme == "https" and (host.hostname or "").endswith((".slack.com", ".slack-files.com"))
        if not is_slack and (host.scheme, host.netloc) != (own.scheme, own.netloc):
            raise NotSent("the file is not on a server of Slack", is_final=True)
        session = self.client.session
        assert session is not None
        headers = {"Authorization": f"Bearer {self._settings.token}"}
        async with session.get(url, headers=headers, allow_redirects=False) as response:
            if response.status != 200 or response.content_type == "text/html":
                raise NotSent(f"Slack did not return the file (status {response.status})", is_final=True)
            async for chunk in response.content.iter_chunked(_CHUNK):
                yield chunk

    async def _ask(self, request: Awaitable[Any], name: str) -> Mapping[str, Any]:
        """Return an object of a response; empty if Slack does not tell."""
        try:
            found = (await self.call(request)).get(name)
        except (NotSent, MaybeSent):
            return {}  # a name is not worth the message
        return found if isinstance(found, dict) else {}


def _keep(cache: OrderedDict[str, Any], key: str, value: object) -> None:
    cache[key] = value
    if len(cache) > _MOST_NAMES:
        cache.popitem(last=False)
