"""The adapter of Slack."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from hermes.errors import ConfigError
from hermes.gateway.engine.ports import Delivery, Inbound, MaybeSent, NotSent, Receipt, Receive
from hermes.log import warn
from hermes.platforms.base.adapter import BaseAdapter, Part
from hermes.platforms.base.admissions import NotStored, check_stored
from hermes.platforms.base.context import AdapterContext
from hermes.platforms.base.http import HttpRequest, HttpResponse
from hermes.platforms.base.in_order import InOrder
from hermes.platforms.base.media import MediaFile
from hermes.platforms.base.splitting import split_text
from hermes.platforms.slack.api import SlackApi
from hermes.platforms.slack.events import (
    ChatKind,
    SlackMessage,
    is_clearly_addressed,
    kind_of,
    read_command,
    read_event,
    source_of,
    text_of,
)
from hermes.platforms.slack.failures import error_of, is_missing_permission
from hermes.platforms.slack.link import SocketLink
from hermes.platforms.slack.mrkdwn import escape, mentions, shown_length
from hermes.platforms.slack.outgoing import Outgoing
from hermes.platforms.slack.settings import SlackSettings
from hermes.platforms.slack.webhook import PATH, challenge_response, is_genuine, read_body

TEXT_LIMIT = 3900
"""A longer text can be sent but not be changed later: Slack changes texts up to 4,000 characters."""
_MOST_THREADS = 5000
_MOST_WAITING = 2000
"""How many events may be worked on; Slack delivers the others again."""


class SlackAdapter(BaseAdapter):
    """One bot in one workspace."""

    platform = "slack"
    can_edit = True
    text_limit = TEXT_LIMIT
    length = staticmethod(shown_length)

    def __init__(self, context: AdapterContext) -> None:
        super().__init__()
        self._settings = SlackSettings.of(context.config)
        self._media, self._routes = context.media, context.routes
        if not self._settings.app_token and self._routes is None:
            raise ConfigError(
                "Slack's webhooks need the gateway's HTTP server, which is off",
                hint="turn it on, or set platforms.slack.extra.app_token to use socket mode",
            )
        self._api = SlackApi(self._settings)
        self._outgoing = Outgoing(self._api)
        self._order = InOrder()
        self._link: SocketLink | None = None
        self._threads: OrderedDict[tuple[str, str], bool] = OrderedDict()
        """Threads that the bot was asked about, and whether it takes part in them."""
        self._waiting = 0
        self.bot_user = ""
        self.bot_id = ""

    async def start(self, receive: Receive) -> None:
        """Check the token, then receive events."""
        await super().start(receive)
        who = await self._api.call(self._api.client.auth_test())
        self.bot_user, self.bot_id = str(who.get("user_id") or ""), str(who.get("bot_id") or "")
        if self._settings.app_token:
            self._link = SocketLink(self._api, self._settings.app_token, self.handle_envelope)
            await self._link.start()
        elif self._routes is not None:
            self._routes.add("POST", PATH, self.handle_request)

    async def stop(self) -> None:
        """Stop receiving and close the connections."""
        if self._routes is not None and not self._settings.app_token:
            self._routes.remove("POST", PATH)
        link, self._link = self._link, None
        if link is not None:
            await link.stop()
        await self._order.stop()
        await self._api.close()
        await super().stop()

    # --- messages to Slack ----------------------------------------------------------------------------------------

    async def post(self, part: Part) -> str:
        """Send a message and return its id, which is the time of it."""
        message_id = await self._outgoing.post(part)
        if part.delivery.thread_id:
            self._remember(part.delivery.chat_id, part.delivery.thread_id, True)
        return message_id

    async def edit(self, message_id: str, part: Part) -> None:
        """Change the text of a message."""
        await self._outgoing.edit(message_id, part)

    async def find(self, delivery: Delivery) -> Receipt | None:
        """Return the messages that Slack has, by their metadata; None if the bot may not read the chat."""
        texts = split_text(delivery.text, self.text_limit, self.length)
        texts = texts if delivery.is_final else texts[:1]
        parts = [Part(delivery, text, index, len(texts)) for index, text in enumerate(texts)]
        return await self._outgoing.find(delivery, parts)

    async def delete(self, message_id: str, chat: Delivery) -> None:
        """Delete a message of the bot."""
        await self._api.call(self._api.client.chat_delete(channel=chat.chat_id, ts=message_id))

    async def post_file(self, part: Part, file: MediaFile) -> str:
        """Send a file and return the id of the file."""
        content = await asyncio.to_thread(file.path.read_bytes)
        data = await self._api.call(
            self._api.client.files_upload_v2(
                filename=file.path.name,
                file=content,
                title=file.path.name,
                channel=part.delivery.chat_id,
                thread_ts=part.delivery.thread_id,
                initial_comment=escape(file.caption) or None,
            )
        )
        found = data.get("file")
        return str(found.get("id") or "") if isinstance(found, dict) else ""

    # --- events from Slack ----------------------------------------------------------------------------------------

    async def handle_envelope(self, envelope: Mapping[str, Any]) -> bool:
        """Handle an envelope of socket mode; return whether Slack may learn that it was received."""
        payload, kind = envelope.get("payload"), envelope.get("type")
        if not isinstance(payload, dict) or kind not in ("events_api", "slash_commands"):
            return True
        return await self._handle(payload, is_command=kind == "slash_commands")

    async def handle_request(self, request: HttpRequest) -> HttpResponse:
        """Handle a request of the Events API; a status of 503 lets Slack deliver it again."""
        if not is_genuine(request, self._settings.signing_secret, time.time()):
            return HttpResponse(401, b"the signature is wrong or too old")
        try:
            payload = read_body(request)
        except ValueError as error:
            warn(__name__, "a request of Slack is malformed: %s", type(error).__name__)
            return HttpResponse(200)
        if (response := challenge_response(payload)) is not None:
            return response
        is_handled = await self._handle(payload, is_command="command" in payload and "event" not in payload)
        return HttpResponse(200 if is_handled else 503)

    async def _handle(self, payload: Mapping[str, Any], *, is_command: bool) -> bool:
        """Store the message of an event, after those of the same chat that came before; return whether it is done."""
        try:
            message = read_command(payload) if is_command else read_event(payload, self.bot_user, self.bot_id)
        except ValueError as error:
            warn(__name__, "an event of Slack is malformed: %s", error)
            return True
        if message is None:
            return True
        if self._waiting >= _MOST_WAITING:
            return False
        self._waiting += 1
        try:
            await self._order.add(message.channel, lambda: self._accept(message))
        except (NotSent, MaybeSent, NotStored) as error:
            warn(__name__, "a message is not acknowledged: %s", error)
            return False
        except Exception as error:  # noqa: BLE001 - Slack delivers it again
            warn(__name__, "a message is not acknowledged: %s", type(error).__name__)
            return False
        finally:
            self._waiting -= 1
        return True

    async def _accept(self, message: SlackMessage) -> None:
        receive = self.receive
        if receive is None:
            raise NotStored("stopping")
        kind = kind_of(message) or await self._api.kind_of_chat(message.channel)
        if not await self._is_addressed(message, kind):
            return
        text = text_of(message, self.bot_user)
        media, notes = await self._files(message)
        text = "\n".join(each for each in (text, *notes) if each)
        if not text and not media:
            return
        user_name = await self._api.name_of_user(message.user)
        chat_name = await self._api.name_of_chat(message.channel) if kind != "im" else None
        source = source_of(message, kind, self._settings, user_name=user_name, chat_name=chat_name)
        admission = check_stored(
            await receive(
                Inbound(
                    text,
                    source,
                    message_id=message.ts,
                    delivery_id=message.event_id,
                    account=self.account,
                    message_type="file" if media else "text",
                    media=media,
                )
            )
        )
        if source.thread_id and kind != "im":
            self._remember(message.channel, source.thread_id, True)
        if admission.state == "refused" and admission.message:
            await self._tell(message.channel, source.thread_id, admission.message)

    async def _is_addressed(self, message: SlackMessage, kind: ChatKind) -> bool:
        """Whether a message is for the bot: also without a mention in a thread in which it takes part."""
        if is_clearly_addressed(message, kind, self.bot_user, self._settings):
            return True
        thread = message.thread_ts
        if not message.is_reply or thread is None:
            return False
        known = self._threads.get((message.channel, thread))
        if known is None:
            known = await self._takes_part(message.channel, thread)
            self._remember(message.channel, thread, known)
        return known

    async def _takes_part(self, channel: str, thread: str) -> bool:
        """Ask Slack whether the bot has written or was named in a thread, which may be older than this process."""
        request = self._api.client.conversations_replies(channel=channel, ts=thread, limit=100)
        try:
            data = await self._api.call(request)
        except NotSent as error:
            if is_missing_permission(error) or error.is_final:
                return False
            raise
        messages = [each for each in data.get("messages") or () if isinstance(each, dict)]
        return any(
            each.get("user") == self.bot_user or mentions(str(each.get("text") or ""), self.bot_user)
            for each in messages
        )

    async def _files(self, message: SlackMessage) -> tuple[list[Mapping[str, str]], list[str]]:
        """Store the files of a message; return them, and a line for each that cannot be had."""
        media: list[Mapping[str, str]] = []
        notes = []
        for file in message.files:
            name, url = (
                str(file.get("name") or "file")[:200],
                file.get("url_private_download") or file.get("url_private"),
            )
            try:
                if not isinstance(url, str):
                    raise NotSent("Slack gives no address for it", is_final=True)
                mime = str(file.get("mimetype") or "application/octet-stream")[:100]
                media.append(await self._media.save(self._api.download(url), name=name, mime=mime))
            except NotSent as error:
                if not error.is_final:
                    raise
                notes.append(f"[the file {name} was not received: {error.reason}]")
            except (OSError, ValueError) as error:
                raise error_of(error) from error
        return media, notes

    async def _tell(self, channel: str, thread: str | None, text: str) -> None:
        try:
            await self._api.call(
                self._api.client.chat_postMessage(channel=channel, text=escape(text), thread_ts=thread)
            )
        except (NotSent, MaybeSent) as error:
            warn(__name__, "a chat does not learn that a message was refused: %s", error)

    def _remember(self, channel: str, thread: str, takes_part: bool) -> None:
        self._threads[channel, thread] = takes_part
        if len(self._threads) > _MOST_THREADS:
            self._threads.popitem(last=False)


def make(context: AdapterContext) -> SlackAdapter:
    """Make the adapter without connecting it; raise `ConfigError` if a setting or the library is missing."""
    try:
        import aiohttp  # noqa: F401
        import slack_sdk  # noqa: F401
    except ImportError:
        raise ConfigError("Slack needs a library", hint="run: pip install 'hermes-sessions[slack]'") from None
    return SlackAdapter(context)
