"""The bot: what it receives is stored before Telegram learns of it, and what it sends is sent once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from telegram import Bot, BotCommand
from telegram.error import InvalidToken, TelegramError
from telegram.request import HTTPXRequest

from hermes.errors import HermesError
from hermes.gateway.commands.parsing import ADMIN_COMMANDS, APPROVER_COMMANDS, COMMANDS
from hermes.gateway.delivery.receipts import MESSAGE_IDS
from hermes.gateway.engine.ports import Delivery, NotSent, Receipt, Receive
from hermes.platforms.base import BaseAdapter, Part
from hermes.platforms.base.splitting import split_text
from hermes.platforms.telegram import failures
from hermes.platforms.telegram.addressing import Addressing
from hermes.platforms.telegram.downloads import Downloads
from hermes.platforms.telegram.formatting import utf16_length
from hermes.platforms.telegram.incoming import Incoming
from hermes.platforms.telegram.outgoing import Outgoing
from hermes.platforms.telegram.polling import Polling
from hermes.platforms.telegram.settings import WEBHOOK_PATH, TelegramSettings
from hermes.platforms.telegram.updates import UPDATES
from hermes.platforms.telegram.webhook import Webhook

if TYPE_CHECKING:
    from hermes.platforms.base.context import AdapterContext
    from hermes.platforms.base.media import MediaFile

_UPLOAD_S = 120.0
_MAX_TASKS = 16


class TelegramAdapter(BaseAdapter):
    """One bot."""

    platform = "telegram"
    can_edit = True
    text_limit = 4096
    length = staticmethod(utf16_length)

    def __init__(self, context: AdapterContext, settings: TelegramSettings) -> None:
        super().__init__()
        _prepare_library()
        self.account = settings.account
        self.needs_one_poller = not settings.uses_webhook
        self.reply_to_mode = settings.reply_to_mode
        self._context = context
        self._settings = settings
        self._bot: Bot | None = None
        self._requests: list[HTTPXRequest] = []
        self._downloads: Downloads | None = None
        self._outgoing: Outgoing | None = None
        self._polling: asyncio.Task[None] | None = None
        self._webhook: Webhook | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._addressing = Addressing(0, "")
        self._name = ""

    def describe(self) -> str:
        """Return the name of the bot and the link to talk to it; it is empty before the bot is connected."""
        username = self._addressing.username
        return f"{self._name} (https://t.me/{username})" if username else self._name

    async def topics(self) -> tuple[bool | None, bool | None]:
        """Return whether private chats can have topics, and whether users may create them; None: not known now."""
        if self._bot is None:
            return None, None
        try:
            me = await self._bot.get_me()
        except TelegramError:
            return None, None
        return bool(me.has_topics_enabled), me.allows_users_to_create_topics

    # --- life ---------------------------------------------------------------------------------------------------------

    async def start(self, receive: Receive) -> None:
        """Check the token, and receive by polling or by the webhook; what waits at Telegram is kept."""
        await super().start(receive)
        settings = self._settings
        self._requests = [self._request(), self._request()]
        bot = self._bot = Bot(
            settings.token,
            base_url=f"{settings.base_url}/bot",
            base_file_url=f"{settings.base_url}/file/bot",
            request=self._requests[0],
            get_updates_request=self._requests[1],
        )
        self._downloads = Downloads(bot, self._context, settings)
        try:
            await bot.initialize()
            self._name = bot.bot.full_name
            self._addressing = Addressing(
                bot.bot.id, bot.username, settings.require_mention, settings.free_response_chats, settings.account
            )
            self._outgoing = Outgoing(bot, settings.token)
            await self._listen(bot, Incoming(receive, self._addressing, self._downloads, self._outgoing, self._spawn))
        except TelegramError as error:
            await self._disconnect()
            what = "refuses the token" if isinstance(error, InvalidToken) else "cannot be used now"
            raise HermesError(f"Telegram {what}: {failures.text_of(error, settings.token)}") from None
        except BaseException:
            await self._disconnect()
            raise
        self._spawn(self._offer_commands(bot))

    async def stop(self) -> None:
        """Stop receiving and close the connections; a webhook stays registered, so that messages wait for it."""
        webhook, self._webhook = self._webhook, None
        if webhook is not None and self._context.routes is not None:
            self._context.routes.remove("POST", WEBHOOK_PATH)
            await webhook.stop()
        polling, self._polling = self._polling, None
        tasks = [*self._tasks, *([polling] if polling else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._disconnect()
        await super().stop()

    async def _listen(self, bot: Bot, incoming: Incoming) -> None:
        settings = self._settings
        if not settings.uses_webhook:
            await bot.delete_webhook(drop_pending_updates=False)
            polling = Polling(self._requests[1], settings, incoming.handle, incoming.look_ahead)
            self._polling = asyncio.create_task(polling.run(), name="hermes-telegram-polling")
            return
        assert self._context.routes is not None, "make() has checked it"
        self._webhook = Webhook(settings.webhook_secret, incoming.handle)
        self._context.routes.add("POST", WEBHOOK_PATH, self._webhook)
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
            media_write_timeout=_UPLOAD_S,
            httpx_kwargs={"trust_env": self._settings.uses_proxy},
        )

    async def _offer_commands(self, bot: Bot) -> None:
        """Let the apps of users offer the commands that everybody may use."""
        hidden = ADMIN_COMMANDS | APPROVER_COMMANDS
        offered = [BotCommand(each.name, each.summary) for each in COMMANDS if each.name not in hidden]
        with contextlib.suppress(TelegramError):  # users can type them anyway
            await bot.set_my_commands(offered)

    async def _disconnect(self) -> None:
        bot, self._bot, self._outgoing = self._bot, None, None
        downloads, self._downloads = self._downloads, None
        if downloads is not None:
            await downloads.close()
        if bot is not None:
            with contextlib.suppress(TelegramError):  # the connections are closed anyway
                await bot.shutdown()
        for request in self._requests:
            await request.shutdown()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work beside; when too much runs, it is left out."""
        if len(self._tasks) >= _MAX_TASKS:
            work.close()
            return
        task: asyncio.Task[None] = asyncio.create_task(work, name="hermes-telegram")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- sending ------------------------------------------------------------------------------------------------------

    async def send(self, delivery: Delivery) -> Receipt:
        """Send a text; if the user deleted the preview that it completes, as a new message."""
        try:
            return await super().send(delivery)
        except failures.MessageGone:
            preview = {name: value for name, value in (delivery.preview or {}).items() if name != MESSAGE_IDS}
            return await super().send(replace(delivery, preview=preview))

    async def show_draft(self, delivery: Delivery) -> None:
        """Show a text that is being written, of a long one the end; Telegram does that in private chats."""
        if delivery.chat_type != "dm":
            raise NotSent("Telegram shows drafts in private chats only", is_final=True)
        end = split_text(delivery.text, self.text_limit, self.length)[-1]
        await self._connected().show_draft(Part(delivery, end))

    async def post(self, part: Part) -> str:
        """Send a message and return its id."""
        return await self._connected().post(part)

    async def edit(self, message_id: str, part: Part) -> None:
        """Change the text of a message."""
        await self._connected().edit(message_id, part)

    async def delete(self, message_id: str, chat: Delivery) -> None:
        """Delete a message."""
        await self._connected().delete(chat.chat_id, message_id)

    async def typing(self, chat_id: str, thread_id: str | None) -> None:
        """Show that an answer is being written."""
        if self._outgoing is not None:
            await self._outgoing.typing(chat_id, thread_id)

    async def post_file(self, part: Part, file: MediaFile) -> str:
        """Send a file and return the id of its message."""
        return await self._connected().post_file(part, file)

    def _connected(self) -> Outgoing:
        if self._outgoing is None:
            raise NotSent("Telegram is not connected")
        return self._outgoing


def _prepare_library() -> None:
    """Keep the addresses of requests out of the log, because they contain the token; use the newer types of times."""
    os.environ.setdefault("PTB_TIMEDELTA", "true")  # without it, every request of a pause is a warning
    for name in ("httpx", "httpcore", "telegram"):
        logging.getLogger(name).setLevel(logging.WARNING)
