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

    from hermes.platforms.base.media import MediaFolder
    from hermes.platforms.telegram.settings import TelegramSettings
    from hermes.platforms.telegram.updates import Attachment

ATTEMPTS = 3
DOWNLOAD_S = 120.0


class Downloads:
    """Fetches files of messages into the folder of the platform."""

    def __init__(self, bot: Bot, media: MediaFolder, settings: TelegramSettings) -> None:
        self._bot = bot
        self._media = media
        self._settings = settings
        self._client = httpx.AsyncClient(timeout=settings.timeout_s)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def fetch(self, attachment: Attachment) -> Mapping[str, str] | str:
        """Return the stored file, or a sentence that says why it could not be stored."""
        most = self._media.max_bytes
        if attachment.size > most:
            return f"[{attachment.name} is larger than {most // 1024 // 1024} MB and was not read]"
        reason = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(self._settings.retry_s[min(attempt, len(self._settings.retry_s)) - 1])
            try:
                async with asyncio.timeout(DOWNLOAD_S):
                    return await self._fetch(attachment)
            except (BadRequest, Forbidden, InvalidToken, NotSent) as error:
                reason = type(error).__name__
                break
            except (TelegramError, httpx.HTTPError, TimeoutError) as error:
                reason = type(error).__name__
        warn(__name__, "a file of a message was not read: %s", reason)
        return f"[{attachment.name} could not be read]"

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
