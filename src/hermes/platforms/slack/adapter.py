"""The adapter of Slack."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hermes.errors import ConfigError
from hermes.gateway.delivery.receipts import MESSAGE_IDS
from hermes.gateway.engine.ports import Delivery, Inbound, MaybeSent, NotSent, Receipt, Receive
from hermes.gateway.source import SessionSource
from hermes.log import warn
from hermes.platforms.base.adapter import BaseAdapter, Part
from hermes.platforms.base.admissions import NotStored, Unstored
from hermes.platforms.base.backoff import Backoff
from hermes.platforms.base.context import AdapterContext
from hermes.platforms.base.http import HttpRequest, HttpResponse
from hermes.platforms.base.in_order import InOrder
from hermes.platforms.base.media import MediaFile
from hermes.platforms.base.splitting import split_text
from hermes.platforms.slack.api import TIMEOUT_S, SlackApi
from hermes.platforms.slack.events import (
    ChatKind,
    Identity,
    SlackMessage,
    is_clearly_addressed,
    kind_of,
    read_command,
    read_event,
    source_of,
    thread_of,
)
from hermes.platforms.slack.failures import Refused
from hermes.platforms.slack.files import IncomingFiles, upload
from hermes.platforms.slack.link import SocketLink
from hermes.platforms.slack.mrkdwn import escape, mentioned_users, shown_length, to_plain
from hermes.platforms.slack.names import Names
from hermes.platforms.slack.outgoing import Outgoing
from hermes.platforms.slack.settings import SlackSettings
from hermes.platforms.slack.threads import Threads
from hermes.platforms.slack.webhook import PATH, challenge_response, is_genuine, read_body

TEXT_LIMIT = 3900
"""A longer text can be sent but not be changed later: Slack changes texts up to 4,000 characters."""
_MOST_REMEMBERED = 5000
_MOST_WAITING = 500
"""How many events may be worked on; Slack delivers the others again."""
_MOST_NAMED = 20
_NOTICE_S = 30.0
"""A chat learns at most this often that its messages are refused."""


def make(context: AdapterContext) -> SlackAdapter:
    """Make the adapter without connecting it; raise `ConfigError` if a setting or the library is missing."""
    try:
        import aiohttp  # noqa: F401
        import slack_sdk  # noqa: F401
    except ImportError:
        raise ConfigError("Slack needs a library", hint="run: pip install 'hermes-sessions[slack]'") from None
    return SlackAdapter(context)


class SlackAdapter(BaseAdapter):
    """One bot in one workspace."""

    platform = "slack"
    can_edit = True
    text_limit = TEXT_LIMIT
    length = staticmethod(shown_length)

    def __init__(self, context: AdapterContext, *, timeout_s: float = TIMEOUT_S, first_retry_s: float = 1.0) -> None:
        super().__init__()
        self._context = context
        self._settings = SlackSettings.of(context.config)
        self._routes = context.routes
        if not self._settings.app_token and self._routes is None:
            raise ConfigError(
                "Slack's webhooks need the gateway's HTTP server, which is off",
                hint="turn it on, or set platforms.slack.extra.app_token to use socket mode",
            )
        self._first_retry_s = first_retry_s
        self._api = SlackApi(self._settings, timeout_s=timeout_s)
        self._outgoing = Outgoing(self._api)
        self._names = Names(self._api)
        self._threads = Threads(self._api)
        self._files = IncomingFiles(self._api, context.media)
        self._order = InOrder()
        self._link: SocketLink | None = None
        self._waiting = 0
        self._accepted: OrderedDict[tuple[str, str], None] = OrderedDict()
        """The last accepted messages: their files are not fetched again when they are delivered again."""
        self._unstored = Unstored()
        self._told_at: OrderedDict[str, float] = OrderedDict()
        self._me = Identity()
        self._description = ""

    def describe(self) -> str:
        """Return who is connected, to which workspace."""
        return self._description

    async def start(self, receive: Receive) -> None:
        """Check the token, then receive events."""
        await super().start(receive)
        self._api.open()
        who = await self._api.call(lambda client: client.auth_test())
        self._me = Identity(*(str(who.get(name) or "") for name in ("user_id", "bot_id", "team_id", "user")))
        if not self._me.user:
            raise NotSent("Slack does not say who the bot is")
        self._description = f"@{self._me.name} in {who.get('team')} ({who.get('url')})"
        if self._settings.app_token:
            backoff = Backoff(self._first_retry_s, 30.0)
            self._link = SocketLink(self._api, self._settings.app_token, self.handle_envelope, backoff)
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

    # --- messages to Slack --------------------------------------------------------------------------------------------

    async def send(self, delivery: Delivery) -> Receipt:
        """Send a text; if the message that it would change was deleted, as a new message."""
        try:
            return await super().send(delivery)
        except Refused as error:
            if not error.is_gone:
                raise
        self._outgoing.forget(delivery)
        preview = {name: value for name, value in (delivery.preview or {}).items() if name != MESSAGE_IDS}
        return await super().send(replace(delivery, preview=preview))

    async def post(self, part: Part) -> str:
        """Send a message and return its id, which is the time of it."""
        message_id = await self._outgoing.post(part)
        if part.delivery.thread_id:
            self._threads.note(part.delivery.chat_id, part.delivery.thread_id)
        return message_id

    async def edit(self, message_id: str, part: Part) -> None:
        """Change the text of a message."""
        await self._outgoing.edit(message_id, part)

    async def find(self, delivery: Delivery) -> Receipt | None:
        """Return the messages that Slack has, by their metadata; None if the bot may not read the chat."""
        texts = split_text(delivery.text, self.text_limit, self.length)
        texts = texts if delivery.is_final else texts[:1]
        parts = [self._part(delivery, text, index, len(texts)) for index, text in enumerate(texts)]
        return await self._outgoing.find(delivery, parts, self._me.user)

    async def delete(self, message_id: str, chat: Delivery) -> None:
        """Delete a message of the bot."""
        await self._api.ask("chat.delete", channel=chat.chat_id, ts=message_id)

    async def post_file(self, part: Part, file: MediaFile) -> str:
        """Send a file and return the id of the file."""
        chat, text = part.delivery, file.caption or part.text
        return await upload(self._api, file, channel=chat.chat_id, thread=chat.thread_id, text=text)

    # --- events from Slack --------------------------------------------------------------------------------------------

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
            message = read_command(payload, self._me) if is_command else read_event(payload, self._me)
        except ValueError as error:
            warn(__name__, "an event of Slack is left out: %s", error)
            return True
        if message is None:
            return True
        if self._waiting >= _MOST_WAITING:
            return False
        self._waiting += 1
        try:
            work = self._order.add(message.channel, lambda: self._accept(message))
            await asyncio.wait({work})
        finally:
            self._waiting -= 1
        if work.cancelled():  # the adapter stops
            return False
        if (failure := work.exception()) is not None:  # Slack delivers it again
            reason = failure if isinstance(failure, NotSent | MaybeSent | NotStored) else type(failure).__name__
            warn(__name__, "a message is not acknowledged: %s", reason)
        return failure is None

    async def _accept(self, message: SlackMessage) -> None:
        receive, key = self.receive, (message.channel, message.ts)
        if receive is None:
            raise NotStored("the adapter stops")
        if key in self._accepted:
            message = replace(message, files=())
        kind = kind_of(message) or await self._names.kind_of_chat(message.channel)
        if not await self._is_addressed(message, kind):
            return
        admission = await self._unstored.store(key, lambda: self._inbound(message, kind), receive)
        if admission is None:
            return
        thread = thread_of(message, kind, self._settings)
        if admission.state == "refused":
            await self._tell(message.channel, thread, admission.message)
            return
        self._accepted[key] = None
        if len(self._accepted) > _MOST_REMEMBERED:
            self._accepted.popitem(last=False)
        if thread and kind != "im":
            self._threads.note(message.channel, thread)

    async def _is_addressed(self, message: SlackMessage, kind: ChatKind) -> bool:
        """Whether a message is for the bot: also without a mention in a thread in which it takes part."""
        if is_clearly_addressed(message, kind, self._me, self._settings):
            return True
        if not message.is_reply or message.thread_ts is None:
            return False
        return await self._threads.contains(message.channel, message.thread_ts, self._me.user)

    async def _inbound(self, message: SlackMessage, kind: ChatKind) -> Inbound | None:
        """Return a message as the gateway takes it, with its files; None if it has no content."""
        named = mentioned_users("\n".join((message.text, *message.shared)), _MOST_NAMED)
        names = await self._names.of_users([message.user, *(each for each in named if each != self._me.user)])
        chat_name = None if kind == "im" else await self._names.of_chat(message.channel)
        source = source_of(
            message, kind, self._settings, team=self._me.team, user_name=names.get(message.user), chat_name=chat_name
        )
        media, notes = await self._received(message, source)
        shared = [f"[a shared message]\n{to_plain(each, '', names)}" for each in message.shared]
        text = to_plain(message.text, self._me.user, names)
        if not text and message.is_mention:  # a user only calls the bot
            text = f"@{self._me.name}"
        text = "\n".join(each for each in (text, *shared, *notes) if each)
        if not text and not media:
            return None
        return Inbound(
            text,
            source,
            message_id=message.ts,
            delivery_id=message.event_id,
            account=self.account,
            message_type="file" if media else "text",
            media=media,
        )

    async def _received(
        self, message: SlackMessage, source: SessionSource
    ) -> tuple[list[Mapping[str, str]], list[str]]:
        """Return the stored files of a message, and sentences about those that are not stored."""
        if message.files and not await self._context.wants_files_of(source):
            return [], ["[files that were not received]"]
        return await self._files.fetch(message.files)

    async def _tell(self, channel: str, thread: str | None, text: str) -> None:
        """Say why a message was refused, not more often than a person can use."""
        now = time.monotonic()
        if not text or now < self._told_at.get(channel, float("-inf")) + _NOTICE_S:
            return
        self._told_at[channel] = now
        if len(self._told_at) > _MOST_REMEMBERED:
            self._told_at.popitem(last=False)
        try:
            await self._api.call(
                lambda client: client.chat_postMessage(channel=channel, text=escape(text), thread_ts=thread)
            )
        except (NotSent, MaybeSent) as error:
            warn(__name__, "a chat does not learn that a message was refused: %s", error)
