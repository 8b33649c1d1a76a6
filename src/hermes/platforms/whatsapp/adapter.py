"""The adapter of the WhatsApp Cloud API."""

from __future__ import annotations

import asyncio
import mimetypes
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from hermes.errors import ConfigError
from hermes.gateway.engine.ports import Admission, Inbound, MaybeSent, NotSent, Receive
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource
from hermes.log import warn
from hermes.platforms.base.adapter import BaseAdapter, Part
from hermes.platforms.base.admissions import NotStored, check_stored
from hermes.platforms.base.context import AdapterContext
from hermes.platforms.base.http import HttpRequest, HttpResponse
from hermes.platforms.base.media import MAX_FILE_BYTES, MediaFile
from hermes.platforms.whatsapp.graph import GraphApi
from hermes.platforms.whatsapp.settings import WhatsAppSettings, read_settings
from hermes.platforms.whatsapp.webhook import (
    SendFailure,
    WhatsAppMessage,
    is_signed,
    read_notification,
    same_word,
)

_MAX_REMEMBERED = 5000
_NOTICE_S = 30.0
_TYPES: Mapping[str, str] = {"image": "image", "audio": "audio", "video": "video", "file": "document"}


def make(context: AdapterContext) -> WhatsAppAdapter:
    """Return the adapter without connecting it; raise `ConfigError` if a setting is missing or wrong."""
    settings = read_settings(context.config)
    if context.routes is None:
        raise ConfigError(
            "whatsapp_cloud needs the gateway's HTTP server for its webhook", hint="turn the HTTP server on"
        )
    return WhatsAppAdapter(context, settings)


class WhatsAppAdapter(BaseAdapter):
    """One phone number of a business account; the platform sends its messages to the webhook until they are stored."""

    platform = str(Platform.WHATSAPP_CLOUD.value)
    text_limit = 4096

    def __init__(self, context: AdapterContext, settings: WhatsAppSettings) -> None:
        super().__init__()
        self.account = settings.account
        self._context = context
        self._settings = settings
        self._graph = GraphApi(settings.base_url, settings.token, settings.phone_number_id)
        self._last: OrderedDict[str, str] = OrderedDict()
        """The last message of each user, which shows that an answer is being written."""
        self._accepted: OrderedDict[str, None] = OrderedDict()
        self._told_at: OrderedDict[str, float] = OrderedDict()

    async def start(self, receive: Receive) -> None:
        """Answer requests to the webhook from now on."""
        await super().start(receive)
        if self._context.routes is not None:
            self._context.routes.add("GET", self._settings.path, self.verify)
            self._context.routes.add("POST", self._settings.path, self.notify)

    async def stop(self) -> None:
        """Refuse requests to the webhook; the platform repeats them."""
        if self._context.routes is not None:
            self._context.routes.remove("GET", self._settings.path)
            self._context.routes.remove("POST", self._settings.path)
        await self._graph.close()
        await super().stop()

    # --- the webhook --------------------------------------------------------------------------------------------------

    async def verify(self, request: HttpRequest) -> HttpResponse:
        """Confirm the webhook to a platform that knows the verify token."""
        query = request.query
        is_known = same_word(query.get("hub.verify_token", ""), self._settings.verify_token)
        if query.get("hub.mode") != "subscribe" or not is_known:
            return HttpResponse(403)
        challenge = query.get("hub.challenge", "")[:1000].encode("utf-8", "replace")
        return HttpResponse(200, challenge, {"content-type": "text/plain; charset=utf-8"})

    async def notify(self, request: HttpRequest) -> HttpResponse:
        """Store the messages of a notification; the platform repeats it unless the status is 200."""
        if not is_signed(request.body, request.headers.get("x-hub-signature-256", ""), self._settings.app_secret):
            return HttpResponse(403)
        if self.receive is None:
            return HttpResponse(503)
        try:
            for each in await asyncio.to_thread(read_notification, request.body, self._settings.phone_number_id):
                if isinstance(each, SendFailure):
                    warn(__name__, "WhatsApp could not deliver message %s: error %s", each.message_id, each.code)
                elif each.message_id not in self._accepted:
                    await self._accept(each, self.receive)
        except NotStored as error:
            warn(__name__, "a notification is not acknowledged: %s", error)
            return HttpResponse(503)
        return HttpResponse(200)

    async def _accept(self, message: WhatsAppMessage, receive: Receive) -> None:
        media, note = await self._files(message)
        source = SessionSource(
            Platform.WHATSAPP_CLOUD,
            message.sender,
            chat_name=message.name,
            user_id=message.sender,
            user_name=message.name,
            message_id=message.message_id,
        )
        admission = check_stored(
            await receive(
                Inbound(
                    "\n".join(each for each in (message.text, note) if each),
                    source,
                    message_id=message.message_id,
                    delivery_id=message.message_id,
                    account=self.account,
                    message_type=message.kind,
                    media=media,
                )
            )
        )
        _remember(self._accepted, message.message_id, None)
        _remember(self._last, message.sender, message.message_id)
        if admission.state == "refused":
            await self._explain_refusal(message, admission)

    async def _files(self, message: WhatsAppMessage) -> tuple[list[Mapping[str, str]], str]:
        """Return the stored file of a message; if it cannot be had, a sentence for the text."""
        file = message.file
        if file is None:
            return [], ""
        name = file.name or f"{message.kind}{mimetypes.guess_extension(file.mime) or ''}"
        try:
            async with self._graph.download(file.media_id) as chunks:
                return [await self._context.media.save(chunks, name=name, mime=file.mime)], ""
        except (NotSent, MaybeSent) as error:
            warn(__name__, "a file of a message was not received: %s", error)
            return [], f"[a file could not be received: {error}]"

    async def _explain_refusal(self, message: WhatsAppMessage, admission: Admission) -> None:
        """Tell a user why a message was refused, but not for each of many."""
        now = asyncio.get_running_loop().time()
        if not admission.message or now < self._told_at.get(message.sender, float("-inf")) + _NOTICE_S:
            return
        _remember(self._told_at, message.sender, now)
        try:
            await self._graph.send(_text_body(message.sender, admission.message[: self.text_limit]))
        except (NotSent, MaybeSent) as error:
            warn(__name__, "a notice was not sent: %s", error)

    # --- messages to users --------------------------------------------------------------------------------------------

    async def post(self, part: Part) -> str:
        """Send a text, as a reply to the message that it answers."""
        body = _text_body(part.delivery.chat_id, part.text)
        return await self._graph.send(self._as_reply(body, part))

    async def post_file(self, part: Part, file: MediaFile) -> str:
        """Upload a file and send it."""
        data = await asyncio.to_thread(_read_file, file)
        mime = mimetypes.guess_type(file.path.name)[0] or "application/octet-stream"
        try:
            media_id = await self._graph.upload(data, file.path.name, mime)
        except MaybeSent as error:
            raise NotSent(str(error)) from error  # an upload alone sends nothing
        about: dict[str, Any] = {"id": media_id}
        if file.caption and file.kind != "audio":
            about["caption"] = file.caption[:1024]
        if file.kind == "file":
            about["filename"] = file.path.name
        kind = _TYPES[file.kind]
        body = {"recipient_type": "individual", "to": part.delivery.chat_id, "type": kind, kind: about}
        return await self._graph.send(self._as_reply(body, part))

    async def typing(self, chat_id: str, thread_id: str | None) -> None:
        """Show that the last message was read and that an answer is being written."""
        if (message_id := self._last.get(chat_id)) is not None:
            await self._graph.mark_read(message_id, is_typing=True)

    def _as_reply(self, body: dict[str, Any], part: Part) -> dict[str, Any]:
        mode = self._settings.reply_to_mode
        reply_to = {"off": None, "all": part.delivery.reply_to}.get(mode, part.reply_to)
        return {**body, "context": {"message_id": reply_to}} if reply_to else body


def _text_body(to: str, text: str) -> dict[str, Any]:
    about = {"body": text, "preview_url": False}
    return {"recipient_type": "individual", "to": to, "type": "text", "text": about}


def _read_file(file: MediaFile) -> bytes:
    with file.path.open("rb") as stream:
        data = stream.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise NotSent(f"the file is larger than {MAX_FILE_BYTES // 1024 // 1024} MB", is_final=True)
    return data


def _remember(known: OrderedDict[str, Any], key: str, value: object) -> None:
    known[key] = value
    known.move_to_end(key)
    while len(known) > _MAX_REMEMBERED:
        known.popitem(last=False)
