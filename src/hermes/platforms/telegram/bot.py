"""The bot: what it receives is stored before Telegram learns of it, and what it sends is sent once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from telegram import Bot, ReplyParameters
from telegram.constants import ChatAction, ParseMode
from telegram.error import BadRequest, ChatMigrated, TelegramError
from telegram.request import HTTPXRequest

from hermes.errors import HermesError
from hermes.gateway.delivery.receipts import MESSAGE_IDS
from hermes.gateway.engine import texts
from hermes.gateway.engine.ports import Delivery, Inbound, NotSent, Receipt, Receive
from hermes.log import warn
from hermes.platforms.base import BaseAdapter, Part
from hermes.platforms.telegram import failures
from hermes.platforms.telegram.downloads import Downloads
from hermes.platforms.telegram.formatting import to_html, utf16_length
from hermes.platforms.telegram.polling import UPDATES, Polling
from hermes.platforms.telegram.settings import WEBHOOK_PATH, TelegramSettings
from hermes.platforms.telegram.updates import GENERAL_TOPIC, Addressing, parse_update
from hermes.platforms.telegram.webhook import Webhook

if TYPE_CHECKING:
    from hermes.platforms.base.context import AdapterContext
    from hermes.platforms.base.media import MediaFile

T = TypeVar("T")

_MAX_CAPTION = 1024
_MAX_UPLOAD_BYTES = 50 * 1024 * 1024
_REFUSAL_PAUSE_S = 30.0
"""A chat is told at most this often that its messages are refused."""
_MAX_REFUSED_CHATS = 1000


class TelegramAdapter(BaseAdapter):
    """One bot."""

    platform = "telegram"
    can_edit = True
    text_limit = 4096
    length = staticmethod(utf16_length)

    def __init__(self, context: AdapterContext, settings: TelegramSettings) -> None:
        super().__init__()
        _hide_addresses()
        self.needs_one_poller = not settings.uses_webhook
        self._context = context
        self._settings = settings
        self._bot: Bot | None = None
        self._requests: list[HTTPXRequest] = []
        self._downloads: Downloads | None = None
        self._polling: asyncio.Task[None] | None = None
        self._addressing = Addressing(0, "")
        self._name = ""
        self._refused: dict[str, float] = {}

    def describe(self) -> str:
        """Return the name of the bot and the link to talk to it; it is empty before the bot is connected."""
        username = self._addressing.username
        return f"{self._name} (https://t.me/{username})" if username else self._name

    # --- life ---------------------------------------------------------------------------------------------------------

    async def start(self, receive: Receive) -> None:
        """Check the token, and receive by polling or by the webhook; what waits at Telegram is kept."""
        await super().start(receive)
        settings = self._settings
        self._requests = [self._request(), self._request()]
        bot = Bot(
            settings.token,
            base_url=f"{settings.base_url}/bot",
            base_file_url=f"{settings.base_url}/file/bot",
            request=self._requests[0],
            get_updates_request=self._requests[1],
        )
        self._downloads = Downloads(bot, self._context.media, settings)
        try:
            await bot.initialize()
            self._bot, self._name = bot, bot.bot.full_name
            self._addressing = Addressing(
                bot.bot.id, bot.username, settings.require_mention, settings.free_response_chats
            )
            await self._listen(bot)
        except TelegramError as error:
            await self._close(bot)
            raise HermesError(f"Telegram refused the bot: {failures.text_of(error, settings.token)}") from None
        except BaseException:
            await self._close(bot)
            raise

    async def stop(self) -> None:
        """Stop receiving and close the connections; a webhook stays registered, so that messages wait for it."""
        if self._context.routes is not None and self._settings.uses_webhook:
            self._context.routes.remove("POST", WEBHOOK_PATH)
        polling, self._polling = self._polling, None
        if polling is not None:
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)
        bot, self._bot = self._bot, None
        if bot is not None:
            await self._close(bot)
        await super().stop()

    async def _listen(self, bot: Bot) -> None:
        settings = self._settings
        if not settings.uses_webhook:
            await bot.delete_webhook(drop_pending_updates=False)
            run = Polling(self._requests[1], settings, self.handle).run()
            self._polling = asyncio.create_task(run, name="hermes-telegram-polling")
            return
        assert self._context.routes is not None, "make() has checked it"
        self._context.routes.add("POST", WEBHOOK_PATH, Webhook(settings.webhook_secret, self.handle))
        await bot.set_webhook(
            settings.webhook_url,
            secret_token=settings.webhook_secret,
            allowed_updates=list(UPDATES),
            drop_pending_updates=False,
        )

    def _request(self) -> HTTPXRequest:
        seconds = self._settings.timeout_s
        return HTTPXRequest(
            connection_pool_size=32,
            read_timeout=seconds,
            write_timeout=seconds,
            connect_timeout=seconds,
            pool_timeout=seconds,
        )

    async def _close(self, bot: Bot) -> None:
        downloads, self._downloads = self._downloads, None
        if downloads is not None:
            await downloads.close()
        with contextlib.suppress(TelegramError):  # the connections are closed anyway
            await bot.shutdown()
        for request in self._requests:
            await request.shutdown()

    # --- receiving ----------------------------------------------------------------------------------------------------

    async def handle(self, update: dict[str, Any]) -> bool:
        """Store an update and return whether it may be acknowledged: everything but what may work later."""
        try:
            received = parse_update(update, self._addressing)
        except Exception as error:  # noqa: BLE001 - a malformed update must not block those behind it
            warn(__name__, "an update of Telegram cannot be read and is left out: %s", type(error).__name__)
            return True
        if received is None:
            return True
        if self.receive is None or self._downloads is None:
            return False
        inbound = received.inbound
        if received.attachment is not None:
            file = await self._downloads.fetch(received.attachment)
            if isinstance(file, str):
                inbound = replace(inbound, text=f"{inbound.text}\n{file}".strip(), message_type="text")
            else:
                inbound = replace(inbound, media=(file,))
        try:
            admission = await self.receive(inbound)
        except Exception as error:  # noqa: BLE001 - Telegram delivers it again
            warn(__name__, "a message of Telegram was not stored: %s", type(error).__name__)
            return False
        if admission.state != "refused":
            return True
        if admission.message == texts.UNAVAILABLE:
            return False  # the database cannot be reached now; Telegram keeps the message
        await self._tell_refusal(inbound, admission.message)
        return True

    async def _tell_refusal(self, inbound: Inbound, message: str) -> None:
        """Say why a message was refused, not more often than a person can use."""
        chat, now = inbound.source.chat_id, time.monotonic()
        if not message or now - self._refused.get(chat, -_REFUSAL_PAUSE_S) < _REFUSAL_PAUSE_S:
            return
        if len(self._refused) >= _MAX_REFUSED_CHATS:
            self._refused.clear()
        self._refused[chat] = now
        try:
            await self._call(self._connected().send_message, chat, text=message, **_thread(inbound.source.thread_id))
        except (TelegramError, NotSent) as error:
            warn(__name__, "a refusal was not sent: %s", type(error).__name__)

    # --- sending ------------------------------------------------------------------------------------------------------

    async def send(self, delivery: Delivery) -> Receipt:
        """Send a text; if the user deleted the preview that it completes, as a new message."""
        try:
            return await super().send(delivery)
        except failures.MessageGone:
            preview = {name: value for name, value in (delivery.preview or {}).items() if name != MESSAGE_IDS}
            return await super().send(replace(delivery, preview=preview))

    async def post(self, part: Part) -> str:
        """Send a message and return its id."""
        bot = self._connected()
        more = {**_thread(part.delivery.thread_id), **self._reply(part)}
        message = await self._formatted(bot.send_message, part.text, part.delivery.chat_id, **more)
        return str(message.message_id)

    async def edit(self, message_id: str, part: Part) -> None:
        """Change the text of a message."""
        bot = self._connected()
        await self._formatted(bot.edit_message_text, part.text, part.delivery.chat_id, message_id=_number(message_id))

    async def delete(self, message_id: str, chat: Delivery) -> None:
        """Delete a message."""
        bot = self._connected()
        try:
            await self._call(bot.delete_message, chat.chat_id, message_id=_number(message_id))
        except TelegramError as error:
            raise failures.translate(error, self._settings.token) from None

    async def typing(self, chat_id: str, thread_id: str | None) -> None:
        """Show that an answer is being written."""
        if self._bot is None:
            return
        with contextlib.suppress(TelegramError):  # it is only shown for some seconds, and shown again
            await self._bot.send_chat_action(chat_id, ChatAction.TYPING, **_thread(thread_id))

    async def post_file(self, part: Part, file: MediaFile) -> str:
        """Send a file and return the id of its message."""
        bot = self._connected()
        content = await asyncio.to_thread(_read, file)
        calls: dict[str, tuple[Callable[..., Awaitable[Any]], str]] = {
            "image": (bot.send_photo, "photo"),
            "audio": (bot.send_audio, "audio"),
            "video": (bot.send_video, "video"),
            "file": (bot.send_document, "document"),
        }
        send, name = calls[file.kind]
        caption = (file.caption or part.text)[:_MAX_CAPTION]
        more = {**_thread(part.delivery.thread_id), **self._reply(part), name: content, "filename": file.path.name}
        try:
            message = await self._call(send, part.delivery.chat_id, caption=caption or None, **more)
        except TelegramError as error:
            raise failures.translate(error, self._settings.token) from None
        return str(message.message_id)

    async def _formatted(self, call: Callable[..., Awaitable[T]], text: str, chat_id: str, **more: Any) -> T:
        """Send a text with its formatting, or plainly if Telegram refuses the formatting."""
        try:
            try:
                return await self._call(call, chat_id, text=to_html(text), parse_mode=ParseMode.HTML, **more)
            except BadRequest as error:
                if not failures.refuses_entities(error):
                    raise
                return await self._call(call, chat_id, text=text, **more)
        except BadRequest as error:
            if "message_id" in more and failures.is_unchanged(error):
                return None  # type: ignore[return-value]  # the message has this text already; edits return nothing
            raise failures.translate(error, self._settings.token) from None
        except TelegramError as error:
            raise failures.translate(error, self._settings.token) from None

    async def _call(self, call: Callable[..., Awaitable[T]], chat_id: str, **more: Any) -> T:
        """Call Telegram; a group that has become a supergroup has another id since."""
        try:
            return await call(chat_id=chat_id, **more)
        except ChatMigrated as error:
            return await call(chat_id=error.new_chat_id, **more)

    def _connected(self) -> Bot:
        if self._bot is None:
            raise NotSent("Telegram is not connected")
        return self._bot

    def _reply(self, part: Part) -> dict[str, Any]:
        mode = self._settings.reply_to_mode
        answered = None if mode == "off" else part.delivery.reply_to if mode == "all" else part.reply_to
        if not answered or not answered.isdecimal():
            return {}
        return {"reply_parameters": ReplyParameters(int(answered), allow_sending_without_reply=True)}


def _thread(thread_id: str | None) -> dict[str, Any]:
    """Return the argument for a topic; the general topic has a number that Telegram does not accept."""
    if not thread_id or thread_id == GENERAL_TOPIC or not thread_id.isdecimal():
        return {}
    return {"message_thread_id": int(thread_id)}


def _number(message_id: str) -> int:
    if not message_id.isdecimal():
        raise failures.MessageGone("the message has no number of Telegram", is_final=True)
    return int(message_id)


def _read(file: MediaFile) -> bytes:
    try:
        with file.path.open("rb") as opened:
            content = opened.read(_MAX_UPLOAD_BYTES + 1)
    except OSError as error:
        raise NotSent(f"the file cannot be read: {error.strerror}", is_final=True) from error
    if len(content) > _MAX_UPLOAD_BYTES:
        raise NotSent("the file is larger than 50 MB", is_final=True)
    return content


def _hide_addresses() -> None:
    """Keep the addresses of requests out of the log: they contain the token."""
    for name in ("httpx", "httpcore", "telegram"):
        logging.getLogger(name).setLevel(logging.WARNING)
