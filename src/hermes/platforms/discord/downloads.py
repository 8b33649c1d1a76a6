"""Files that users send: fetched from Discord's servers within limits, before the message is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hermes.gateway.engine.ports import NotSent
from hermes.log import warn
from hermes.platforms.base.media import MediaFolder
from hermes.platforms.discord.events import Attachment
from hermes.platforms.discord.settings import BASE_URL

if TYPE_CHECKING:
    import aiohttp

_SERVERS = frozenset({"https://cdn.discordapp.com", "https://media.discordapp.net"})
_ATTEMPTS, _PAUSE_S, _DOWNLOAD_S = 3, 1.0, 60.0
_PIECE = 64 * 1024


class Downloads:
    """Fetches files of messages into the folder of the platform, without the token of the bot."""

    def __init__(self, media: MediaFolder, base_url: str) -> None:
        self._media = media
        own = urlsplit(base_url)
        self._servers = _SERVERS if base_url == BASE_URL else _SERVERS | {f"{own.scheme}://{own.netloc}"}
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def fetch(self, attachments: tuple[Attachment, ...]) -> tuple[list[Mapping[str, str]], list[str]]:
        """Return the stored files, and a line for each that could not be had."""
        media: list[Mapping[str, str]] = []
        notes = []
        for each in attachments:
            found = await self._fetch_one(each)
            if isinstance(found, str):
                notes.append(f"[the file {each.name} was not received: {found}]")
            else:
                media.append(found)
        return media, notes

    async def _fetch_one(self, attachment: Attachment) -> Mapping[str, str] | str:
        """Return a stored file, or why it could not be had."""
        import aiohttp

        if attachment.size > self._media.max_bytes:
            return f"it is larger than {self._media.max_bytes // 1024 // 1024} MB"
        if not self._is_trusted(attachment.url):
            return "its address is not one of Discord"
        reason = ""
        for attempt in range(_ATTEMPTS):
            if attempt:
                await asyncio.sleep(_PAUSE_S * attempt)
            try:
                async with asyncio.timeout(_DOWNLOAD_S):
                    return await self._media.save(
                        self._pieces(attachment.url), name=attachment.name, mime=attachment.mime
                    )
            except NotSent as error:
                reason = error.reason
                break
            except (aiohttp.ClientError, TimeoutError) as error:
                reason = f"Discord did not send it ({type(error).__name__})"
        warn(__name__, "a file of a message was not received: %s", reason)
        return reason

    def _is_trusted(self, url: str) -> bool:
        try:
            parts = urlsplit(url)
        except ValueError:
            return False
        return f"{parts.scheme}://{parts.netloc}" in self._servers

    async def _pieces(self, url: str) -> AsyncIterator[bytes]:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        async with self._session.get(url, allow_redirects=False) as response:
            if response.status != 200:
                if response.status >= 500:
                    raise aiohttp.ClientPayloadError(f"status {response.status}")
                raise NotSent(f"Discord refuses it (status {response.status})", is_final=True)
            async for piece in response.content.iter_chunked(_PIECE):
                yield piece
