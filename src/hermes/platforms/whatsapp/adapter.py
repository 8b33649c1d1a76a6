"""The adapter of the WhatsApp Cloud API."""

from __future__ import annotations

import asyncio
import mimetypes
from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from typing import Any

from hermes.errors import ConfigError
from hermes.gateway.engine.ports import Admission, Delivery, Inbound, MaybeSent, NotSent, Receipt, Receive
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource
from hermes.log import warn
from hermes.platforms.base.adapter import BaseAdapter, Part
from hermes.platforms.base.admissions import NotStored, Unstored
from hermes.platforms.base.context import AdapterContext
from hermes.platforms.base.http import HttpRequest, HttpResponse
from hermes.platforms.base.in_order import InOrder
from hermes.platforms.base.media import MediaFile
from hermes.platforms.base.splitting import split_text
from hermes.platforms.whatsapp.files import file_message, mime_of, read_file
from hermes.platforms.whatsapp.graph import GraphApi, WrongToken, failure_of
from hermes.platforms.whatsapp.settings import WhatsAppSettings, read_settings
from hermes.platforms.whatsapp.statuses import Status, Statuses, new_mark
from hermes.platforms.whatsapp.webhook import (
    MAX_BYTES,
    WhatsAppMessage,
    is_signed,
    read_notification,
    same_word,
)

CONFIRM_S = 3.0
"""How long a message that the platform has accepted waits for the report that it was sent, or why not."""
DOUBT_S = 8.0
"""How long a message without a response waits for such a report."""
_MAX_REMEMBERED = 5000
_MAX_TEXTS, _MAX_QUOTED = 1000, 2000
_NOTICE_S = 30.0
_TYPING_S = 20.0
"""The platform shows for 25 seconds that an answer is being written."""
_CHALLENGE = {"content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff"}


def make(context: AdapterContext) -> WhatsAppAdapter:
    """Return the adapter without connecting it; raise `ConfigError` if a setting is missing or wrong."""
    settings = read_settings(context.config)
    if context.routes is None:
        raise ConfigError(
            "WhatsApp needs the gateway's HTTP server for its webhook", hint="set api_server.enabled: true"
        )
    return WhatsAppAdapter(context, settings)


class WhatsAppAdapter(BaseAdapter):
    """One phone number of a business account; the platform sends its messages to the webhook until they are stored."""

    platform = str(Platform.WHATSAPP_CLOUD.value)
    text_limit = 4096

    def __init__(
        self,
        context: AdapterContext,
        settings: WhatsAppSettings,
        *,
        confirm_s: float = CONFIRM_S,
        doubt_s: float = DOUBT_S,
    ) -> None:
        super().__init__()
        self.account = settings.account
        self.reply_to_mode = settings.reply_to_mode
        self._context = context
        self._settings = settings
        self._confirm_s, self._doubt_s = confirm_s, doubt_s
        self._graph = GraphApi(settings.base_url, settings.token, settings.phone_number_id)
        self._statuses = Statuses()
        self._order = InOrder()
        self._who = ""
        self._last: OrderedDict[str, str] = OrderedDict()
        """The last message of each user, which shows that an answer is being written."""
        self._accepted: OrderedDict[str, None] = OrderedDict()
        self._texts: OrderedDict[str, str] = OrderedDict()
        """The texts of the last messages in both directions, which users quote."""
        self._unstored = Unstored()
        self._told_at: OrderedDict[str, float] = OrderedDict()
        self._shown_at: OrderedDict[str, float] = OrderedDict()
        self._strangers: set[str] = set()

    async def start(self, receive: Receive) -> None:
        """Serve the webhook from now on; raise `NotSent` if the access token is wrong."""
        await super().start(receive)
        if self._context.routes is not None:
            self._context.routes.add("GET", self._settings.path, self.verify)
            self._context.routes.add("POST", self._settings.path, self.notify)
        try:
            self._who = await self._graph.who_am_i()
        except WrongToken:
            raise
        except (NotSent, MaybeSent) as error:  # messages are accepted, and answered when the platform is back
            warn(__name__, "WhatsApp cannot be asked about the phone number now: %s", error)

    async def stop(self) -> None:
        """Refuse requests to the webhook; the platform repeats them."""
        if self._context.routes is not None:
            self._context.routes.remove("GET", self._settings.path)
            self._context.routes.remove("POST", self._settings.path)
        await self._order.stop()
        await self._graph.close()
        await super().stop()

    def describe(self) -> str:
        """Return the phone number, and the path to which the platform has to send messages."""
        return f"{self._who or f'number {self._settings.phone_number_id}'}, webhook at {self._settings.path}"

    # --- the webhook --------------------------------------------------------------------------------------------------

    async def verify(self, request: HttpRequest) -> HttpResponse:
        """Confirm the webhook to a platform that knows the verify token."""
        query = request.query
        is_known = same_word(query.get("hub.verify_token", ""), self._settings.verify_token)
        if query.get("hub.mode") != "subscribe" or not is_known:
            return HttpResponse(403)
        challenge = query.get("hub.challenge", "")[:1000].encode("utf-8", "replace")
        return HttpResponse(200, challenge, _CHALLENGE)

    async def notify(self, request: HttpRequest) -> HttpResponse:
        """Store the messages of a notification; the platform repeats it unless the status is 200."""
        if len(request.body) > MAX_BYTES:
            return HttpResponse(413)
        if not is_signed(request.body, request.headers.get("x-hub-signature-256", ""), self._settings.app_secret):
            return HttpResponse(403)
        try:
            found = await asyncio.to_thread(read_notification, request.body, self._settings.phone_number_id)
        except ValueError:
            warn(__name__, "WhatsApp sent a notification that cannot be read")
            return HttpResponse(200)
        self._note_stranger(found.other_number)
        for status in found.statuses:
            await self._note(status)
        stored = [self._order.add(each.sender, partial(self._accept, each)) for each in found.messages]
        problems = [each for each in await asyncio.gather(*stored, return_exceptions=True) if each is not None]
        if not problems:
            return HttpResponse(200)
        reason = str(problems[0]) if isinstance(problems[0], NotStored) else type(problems[0]).__name__
        warn(__name__, "a notification is not acknowledged, and comes again: %s", reason)
        return HttpResponse(503)

    async def _note(self, status: Status) -> None:
        """Use a report about a message that was sent."""
        if status.is_failure:
            warn(__name__, "message %s: %s", status.message_id, failure_of(status))
        await self._statuses.note(status)

    def _note_stranger(self, number: str) -> None:
        if number and number not in self._strangers and len(self._strangers) < 100:
            self._strangers.add(number)
            warn(__name__, "WhatsApp sends messages for the phone number %s, which is not the configured one", number)

    async def _accept(self, message: WhatsAppMessage) -> None:
        """Store a message; raise if it cannot be stored now. The file of one that comes again is not fetched again."""
        if message.file is not None and message.message_id in self._accepted:
            return
        source = SessionSource(
            Platform.WHATSAPP_CLOUD,
            message.sender,
            chat_name=message.name,
            user_id=message.sender,
            user_name=message.name,
            message_id=message.message_id,
        )
        admission = await self._unstored.store(
            message.message_id, lambda: self._inbound(message, source), self._receive
        )
        _remember(self._accepted, message.message_id, None)
        _remember(self._last, message.sender, message.message_id)
        _remember(self._texts, message.message_id, message.text[:_MAX_QUOTED], _MAX_TEXTS)
        if admission is not None and admission.state == "refused":
            await self._explain_refusal(message, admission)

    async def _receive(self, inbound: Inbound) -> Admission:
        if self.receive is None:
            raise NotStored("the gateway is stopping")
        return await self.receive(inbound)

    async def _inbound(self, message: WhatsAppMessage, source: SessionSource) -> Inbound:
        media, note = await self._files(message, source)
        return Inbound(
            "\n".join(each for each in (message.text, note) if each),
            source,
            message_id=message.message_id,
            delivery_id=message.message_id,
            account=self.account,
            message_type=message.kind,
            media=media,
            reply_to_text=self._texts.get(message.answers or "") or None,
        )

    async def _files(self, message: WhatsAppMessage, source: SessionSource) -> tuple[list[Mapping[str, str]], str]:
        """Return the stored file of a message; if it cannot be had, a sentence for the text."""
        file = message.file
        if file is None:
            return [], ""
        if not await self._context.wants_files_of(source):
            return [], "[a file that was not received]"
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
        message_id = await self._send(part, _text_body(part.delivery.chat_id, part.text), part.key)
        _remember(self._texts, message_id, part.text[:_MAX_QUOTED], _MAX_TEXTS)
        return message_id

    async def post_file(self, part: Part, file: MediaFile) -> str:
        """Upload a file and send it."""
        data = await asyncio.to_thread(read_file, file)
        try:
            media_id = await self._graph.upload(data, file.path.name, mime_of(file))
        except MaybeSent as error:
            raise NotSent(str(error)) from error  # an upload alone sends nothing
        body = {"recipient_type": "individual", "to": part.delivery.chat_id, **file_message(file, media_id)}
        return await self._send(part, body, f"{part.key} {file.path.name}")

    async def find(self, delivery: Delivery) -> Receipt | None:
        """Return the receipt of a message if the platform has reported all its parts; else it cannot tell."""
        count = len(split_text(delivery.text, self.text_limit, self.length))
        keys = [self._part(delivery, "", index, count).key for index in range(count)]
        found = [await self._statuses.of_key(keys[0], self._doubt_s)]
        found += [await self._statuses.of_key(key, 0.0) for key in keys[1:]]
        ids = [each.message_id for each in found if each is not None]
        return Receipt(ids) if len(ids) == count else None

    async def typing(self, chat_id: str, thread_id: str | None) -> None:
        """Show that the last message was read and that an answer is being written."""
        now = asyncio.get_running_loop().time()
        message_id = self._last.get(chat_id)
        if message_id is None or now < self._shown_at.get(message_id, float("-inf")) + _TYPING_S:
            return
        _remember(self._shown_at, message_id, now)
        await self._graph.mark_read(message_id, is_typing=True)

    async def _send(self, part: Part, body: dict[str, Any], key: str) -> str:
        """Send a message, and wait a moment for what the platform reports about it.

        The platform accepts messages that it then refuses to deliver, for example after 24 hours without one of the
        user; only the report says so. It also says whether a message whose response was lost has arrived. Waiting
        keeps the parts of a long text in order, too.
        """
        mark, reply_to = new_mark(key), part.reply_to
        body = {**body, "biz_opaque_callback_data": mark} if mark else body
        body = {**body, "context": {"message_id": reply_to}} if reply_to else body
        try:
            message_id = await self._graph.send(body)
        except MaybeSent:
            status = await self._statuses.of_attempt(mark, self._doubt_s)
            if status is None:
                raise
            message_id = status.message_id
        else:
            status = await self._statuses.of_message(message_id, self._confirm_s)
        if status is not None and status.is_failure:
            raise failure_of(status)
        return message_id


def _text_body(to: str, text: str) -> dict[str, Any]:
    about = {"body": text, "preview_url": False}
    return {"recipient_type": "individual", "to": to, "type": "text", "text": about}


def _remember(known: OrderedDict[str, Any], key: str, value: object, most: int = _MAX_REMEMBERED) -> None:
    known[key] = value
    known.move_to_end(key)
    while len(known) > most:
        known.popitem(last=False)
