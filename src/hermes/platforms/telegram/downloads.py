"""Files that users send: fetched within limits before the message is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

import httpx
from telegram.error import BadRequest, Forbidden, InvalidToken, TelegramError

from hermes.gateway.engine.ports import NotSent
from hermes.log import warn

if TYPE_CHECKING:
    from telegram import Bot

    from hermes.gateway.source import SessionSource
    from hermes.platforms.base.context import AdapterContext
    from hermes.platforms.telegram.attachments import Attachment
    from hermes.platforms.telegram.settings import TelegramSettings

ATTEMPTS = 3
DOWNLOAD_S = 60.0
"""How long the file of a message may take, with all attempts: the messages behind it wait meanwhile."""
AT_ONCE = 8


class Downloads:
    """Fetches files of messages into the folder of the platform."""

    def __init__(self, bot: Bot, context: AdapterContext, settings: TelegramSettings) -> None:
        self._bot = bot
        self._context = context
        self._media = context.media
        self._settings = settings
        self._places = asyncio.Semaphore(AT_ONCE)
        self._client = httpx.AsyncClient(timeout=settings.timeout_s, trust_env=settings.uses_proxy)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def are_wanted(self, source: SessionSource) -> bool:
        """Whether files of a message are fetched: not those of users who may not talk."""
        return await self._context.wants_files_of(source)

    async def fetch(self, attachment: Attachment) -> Mapping[str, str] | str:
        """Return the stored file, or a sentence that says why it could not be stored."""
        most = self._media.max_bytes
        if attachment.size > most:
            return f"[{attachment.name} is larger than {most // 1024 // 1024} MB and was not read]"
        try:
            async with asyncio.timeout(DOWNLOAD_S), self._places:
                return {**await self._try(attachment), "type": attachment.kind}
        except (TelegramError, httpx.HTTPError, httpx.InvalidURL, NotSent, OSError, TimeoutError) as error:
            warn(__name__, "a file of a message was not read: %s", type(error).__name__)
        return f"[{attachment.name} could not be read]"

    async def _try(self, attachment: Attachment) -> Mapping[str, str]:
        pauses = self._settings.retry_s
        for attempt in range(1, ATTEMPTS):
            try:
                return await self._fetch(attachment)
            except (BadRequest, Forbidden, InvalidToken):
                raise
            except (TelegramError, httpx.HTTPError):
                await asyncio.sleep(pauses[min(attempt, len(pauses)) - 1])
        return await self._fetch(attachment)

    async def _fetch(self, attachment: Attachment) -> Mapping[str, str]:
        file = await self._bot.get_file(attachment.file_id)
        if not file.file_path:
            raise BadRequest("the file has no address")
        async with self._client.stream("GET", file.file_path) as response:
            if response.status_code != httpx.codes.OK:
                raise httpx.HTTPError(f"status {response.status_code}")
            return await self._media.save(_chunks(response), name=attachment.name, mime=attachment.mime)


async def _chunks(response: httpx.Response) -> AsyncIterator[bytes]:
    async for chunk in response.aiter_bytes(65_536):
        yield chunk
