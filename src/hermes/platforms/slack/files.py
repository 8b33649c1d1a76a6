"""Files of messages: those of people are stored before their message is, and discarded if it is not accepted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from hermes.gateway.engine.ports import MaybeSent, NotSent
from hermes.platforms.base.media import MAX_FILE_BYTES, MediaFile, MediaFolder, discard
from hermes.platforms.slack.api import SlackApi
from hermes.platforms.slack.mrkdwn import to_mrkdwn

_ATTEMPTS = 3
_PAUSE_S = 0.5
_MAX_NAME = 100


class IncomingFiles:
    """Fetches the files of messages into the folder of the platform."""

    def __init__(self, api: SlackApi, media: MediaFolder) -> None:
        self._api = api
        self._media = media

    async def fetch(self, files: Sequence[Mapping[str, Any]]) -> tuple[list[Mapping[str, str]], list[str]]:
        """Return the stored files, and a sentence for each that was not received."""
        stored: list[Mapping[str, str]] = []
        notes = []
        for file in files:
            name = _name_of(file)
            try:
                stored.append(await self._fetch(file, name))
            except NotSent as error:
                notes.append(f"[the file {name} was not received: {error.reason}]")
            except BaseException:
                await discard(stored)
                raise
        return stored, notes

    async def _fetch(self, file: Mapping[str, Any], name: str) -> Mapping[str, str]:
        size, url = file.get("size"), file.get("url_private_download") or file.get("url_private")
        if isinstance(size, int) and size > self._media.max_bytes:
            raise NotSent(f"it is larger than {self._media.max_bytes // 1024 // 1024} MB", is_final=True)
        if not isinstance(url, str):
            raise NotSent("Slack gives no address for it", is_final=True)
        mime = str(file.get("mimetype") or "")[:100]
        mime = mime if mime.isascii() and mime.isprintable() and mime else "application/octet-stream"
        for attempt in range(_ATTEMPTS):
            try:
                async with self._api.download(url, mime) as chunks:
                    return await self._media.save(chunks, name=name, mime=mime)
            except NotSent as error:
                if error.is_final or attempt == _ATTEMPTS - 1:
                    raise
            await asyncio.sleep(_PAUSE_S * 2**attempt)
        raise AssertionError("the last attempt returns or raises")


def read_file(file: MediaFile) -> bytes:
    """Return the content of a file to send; raise `NotSent` if it is too large or cannot be read."""
    try:
        with file.path.open("rb") as opened:
            content = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise NotSent(f"the file cannot be read: {error.strerror}", is_final=True) from error
    if len(content) > MAX_FILE_BYTES:
        raise NotSent(f"the file is larger than {MAX_FILE_BYTES // 1024 // 1024} MB", is_final=True)
    return content


async def upload(api: SlackApi, file: MediaFile, *, channel: str, thread: str | None, text: str) -> str:
    """Send a file with a text and return the id of the file."""
    content, name = await asyncio.to_thread(read_file, file), file.path.name
    try:
        place = await api.ask("files.getUploadURLExternal", filename=name, length=len(content))
        await api.upload(str(place.get("upload_url")), content)
    except MaybeSent as error:
        raise NotSent(str(error)) from error  # nothing is shown in the chat yet
    file_id = str(place.get("file_id"))
    await api.ask(
        "files.completeUploadExternal",
        files=json.dumps([{"id": file_id, "title": name}]),
        channel_id=channel,
        thread_ts=thread,
        initial_comment=to_mrkdwn(text) or None,
    )
    return file_id


def _name_of(file: Mapping[str, Any]) -> str:
    name = str(file.get("name") or "file")[:_MAX_NAME]
    return "".join(each if each.isprintable() else "_" for each in name)
