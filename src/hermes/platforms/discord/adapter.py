"""The adapter of Discord."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from importlib.util import find_spec
from typing import Any

from hermes.errors import ConfigError
from hermes.gateway.delivery.receipts import MESSAGE_IDS
from hermes.gateway.engine.ports import Admission, Delivery, Inbound, MaybeSent, NotSent, Receipt, Receive
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource
from hermes.log import warn
from hermes.platforms.base.adapter import BaseAdapter, Part
from hermes.platforms.base.admissions import NotStored, Unstored
from hermes.platforms.base.context import AdapterContext
from hermes.platforms.base.media import MediaFile
from hermes.platforms.base.splitting import split_text
from hermes.platforms.discord.arrivals import Arrivals
from hermes.platforms.discord.chats import Chat, Chats
from hermes.platforms.discord.downloads import Downloads
from hermes.platforms.discord.events import (
    DiscordMessage,
    as_command,
    as_dict,
    as_list,
    kind_of,
    read_message,
    snowflake,
    without_mention,
)
from hermes.platforms.discord.failures import MessageGone
from hermes.platforms.discord.history import missed_messages
from hermes.platforms.discord.link import Link
from hermes.platforms.discord.outgoing import TEXT_LIMIT, Outgoing, text_length
from hermes.platforms.discord.position import Position, id_at
from hermes.platforms.discord.settings import DiscordSettings, read_settings

PERMISSIONS = sum(1 << bit for bit in (10, 11, 15, 16, 38))
"""View channels, send messages, attach files, read the history, and send messages in threads."""
_FORUMS = frozenset({15, 16})
_NOTICE_S = 30.0
_MOST_NOTICES = 5000
_TYPING_S = 5.0


def make(context: AdapterContext) -> DiscordAdapter:
    """Return the adapter without connecting it; raise `ConfigError` if a setting or the library is missing."""
    if find_spec("discord") is None:
        raise ConfigError("Discord needs a library", hint="run: pip install 'hermes-sessions[discord]'")
    return DiscordAdapter(context, read_settings(context.config))


class DiscordAdapter(BaseAdapter):
    """One bot with one connection; Discord recognizes a message that is sent twice within minutes."""

    platform = str(Platform.DISCORD.value)
    can_edit = True
    needs_one_poller = True
    text_limit = TEXT_LIMIT
    length = staticmethod(text_length)

    def __init__(self, context: AdapterContext, settings: DiscordSettings) -> None:
        super().__init__()
        self.account = settings.account
        self.reply_to_mode = settings.reply_to_mode
        self.own_id, self._name = "", ""
        self._context, self._settings = context, settings
        self._made_at = time.time()
        self._link = Link(settings, {})
        self._outgoing = Outgoing(lambda: self._link.client)
        self._position: Position | None = None
        self._arrivals: Arrivals | None = None
        self._downloads: Downloads | None = None
        self._chats = Chats()
        self._told_at: OrderedDict[str, float] = OrderedDict()
        self._unstored = Unstored()

    @property
    def status(self) -> str:
        """What the connection does now, as a phrase."""
        return self._link.status

    def describe(self) -> str:
        """Return the name of the bot, and the address that invites it to a server."""
        if not self.own_id:
            return ""
        address = "https://discord.com/oauth2/authorize"
        return f"{self._name} ({address}?client_id={self.own_id}&scope=bot&permissions={PERMISSIONS})"

    async def start(self, receive: Receive) -> None:
        """Check the token, then receive what was missed and what arrives."""
        await super().start(receive)
        events = {"READY": self._on_ready, "GUILD_CREATE": self._on_guild, "MESSAGE_CREATE": self._on_message}
        self._link = Link(self._settings, events)
        client = await self._link.log_in()
        self.own_id, self._name = (str(client.user.id), str(client.user)) if client.user else ("", "")
        position = Position(self._context.home, self.own_id, self._settings.base_url)
        # A node that waited for its turn reads what arrived while it waited.
        await position.begin(self._made_at, time.time(), self._settings.backlog_hours * 3600.0)
        self._position = position
        self._downloads = Downloads(self._context.media, self._settings.base_url)
        self._arrivals = Arrivals(position, self._accept, self._missed)
        await self._link.start()

    async def stop(self) -> None:
        """Disconnect; messages that wait are read again at the next start."""
        await self._link.stop()
        arrivals, self._arrivals = self._arrivals, None
        if arrivals is not None:
            await arrivals.stop()
        position, self._position = self._position, None
        if position is not None:
            await position.stop()
        downloads, self._downloads = self._downloads, None
        if downloads is not None:
            await downloads.close()
        await super().stop()

    # --- messages to Discord ----------------------------------------------------------------------------------------

    async def send(self, delivery: Delivery) -> Receipt:
        """Send a text; if the preview that it completes was deleted, as a new message."""
        try:
            return await super().send(delivery)
        except MessageGone:
            preview = dict(delivery.preview or {})
            # Discord may still know the nonce of the deleted message, so that the new one has another.
            key = f"{delivery.key} instead of {preview.pop(MESSAGE_IDS, '')}"
            return await super().send(replace(delivery, key=key, preview=preview))

    async def post(self, part: Part) -> str:
        """Send a message; the same part is the same message for some minutes."""
        message_id = await self._outgoing.post(part)
        self._chats.note_written(part.delivery.thread_id or part.delivery.chat_id)
        return message_id

    async def edit(self, message_id: str, part: Part) -> None:
        """Change the text of a message."""
        await self._outgoing.edit(message_id, part)

    async def find(self, delivery: Delivery) -> Receipt | None:
        """Return the receipt of a message that Discord has; raise `NotSent` if it can be sent without repeating one."""
        texts = split_text(delivery.text, self.text_limit, self.length)
        texts = texts if delivery.is_final else texts[:1]
        parts = [self._part(delivery, text, index, len(texts)) for index, text in enumerate(texts)]
        return await self._outgoing.find(delivery, parts, self.own_id)

    async def post_file(self, part: Part, file: MediaFile) -> str:
        """Send a file and return the id of its message."""
        return await self._outgoing.post_file(part, file)

    async def delete(self, message_id: str, chat: Delivery) -> None:
        """Delete a message of the bot."""
        await self._outgoing.delete(message_id, chat)

    async def typing(self, chat_id: str, thread_id: str | None) -> None:
        """Show for some seconds that an answer is being written."""
        place = snowflake(thread_id or chat_id)
        if place is not None:
            await self._link.client.http.call(
                "POST", "/channels/{channel_id}/typing", channel_id=place, limit_s=_TYPING_S
            )

    # --- events of Discord ------------------------------------------------------------------------------------------

    def _on_ready(self, _: Mapping[str, Any]) -> None:
        """Read what was missed in direct chats: Discord does not list them for bots."""
        if self._arrivals is None or self._position is None:
            return
        for channel_id in self._position.chats:
            self._arrivals.catch_up(channel_id, self._position.upto)

    def _on_guild(self, data: Mapping[str, Any]) -> None:
        """Read what was missed in the channels and threads of a server, after the bot has joined it."""
        if self._arrivals is None or self._position is None:
            return
        after = max(self._position.upto, _joined_at(data.get("joined_at")))
        for each in (*as_list(data.get("channels")), *as_list(data.get("threads"))):
            channel_id, last = snowflake(as_dict(each).get("id")), snowflake(as_dict(each).get("last_message_id"))
            is_forum = as_dict(each).get("type") in _FORUMS  # its last message is a thread, which is listed too
            if channel_id is not None and last is not None and last > after and not is_forum:
                self._arrivals.catch_up(channel_id, after)

    def _on_message(self, data: Mapping[str, Any]) -> None:
        message_id = snowflake(as_dict(data).get("id"))
        if self._arrivals is None or self._position is None or message_id is None:
            return
        if str(as_dict(data.get("author")).get("id")) == self.own_id:
            self._outgoing.note_own(data)
        message = read_message(data, self.own_id)
        if message is None:
            self._position.note(message_id)
        else:
            self._arrivals.take(message.channel_id, message_id, data)

    async def _missed(self, channel_id: int, after: int) -> list[Mapping[str, Any]]:
        return await missed_messages(self._link.client, channel_id, after, self._settings.backlog_limit)

    async def _accept(self, data: Mapping[str, Any]) -> None:
        """Store the message of an event, if it is one for the bot."""
        try:
            message = read_message(data, self.own_id)
        except ValueError as error:
            warn(__name__, "a message of Discord is malformed: %s", error)
            return
        if message is None:
            return
        chat = await self._chats.get(self._link.client, message.channel_id)
        if chat is None:
            warn(__name__, "a message is left out: its channel %d does not exist any more", message.channel_id)
            return
        if chat.kind == "dm" and self._position is not None:
            self._position.note_chat(message.channel_id)
        own_roles = self._own_roles(chat)
        if not self._is_for_bot(message, chat, own_roles):
            return
        if self.receive is None:
            raise NotStored("stopping")
        make = partial(self._inbound, message, chat, own_roles)
        admission = await self._unstored.store(message.id, make, self.receive)
        if admission is not None and admission.state == "refused":
            await self._explain_refusal(message, chat, admission)

    def _is_for_bot(self, message: DiscordMessage, chat: Chat, own_roles: frozenset[str]) -> bool:
        settings = self._settings
        if chat.kind == "dm" or not settings.require_mention:
            return True
        if settings.free_response_chats & {chat.chat_id, chat.thread_id}:
            return True
        if chat.is_joined and not settings.thread_require_mention:
            return True
        return bool(
            self.own_id in message.mentions or own_roles & message.role_mentions or message.replied_user == self.own_id
        )

    def _own_roles(self, chat: Chat) -> frozenset[str]:
        """Return the role that Discord made for the bot: people mention it by mistake, since it has the same name."""
        guild = self._link.client.get_guild(int(chat.guild_id)) if chat.guild_id else None
        role = guild.self_role if guild is not None else None
        return frozenset() if role is None else frozenset({str(role.id)})

    async def _inbound(self, message: DiscordMessage, chat: Chat, own_roles: frozenset[str]) -> Inbound | None:
        """Return a message as the gateway takes it, with its files; None if it has no content."""
        text = as_command(without_mention(message.text, self.own_id, own_roles), self._settings.command_prefix)
        if not text and message.text.strip() and not message.attachments:  # a user only calls the bot
            text = f"@{self._name}"
        source = SessionSource(
            Platform.DISCORD,
            chat.chat_id,
            chat_name=chat.name,
            chat_type=chat.kind,
            user_id=message.user_id,
            user_name=message.user_name or None,
            thread_id=chat.thread_id,
            chat_topic=chat.topic,
            guild_id=chat.guild_id,
            message_id=str(message.id),
            role_authorized=await self._has_role(message, chat),
        )
        media, notes = await self._files(message, source)
        text = "\n".join(each for each in (text, *notes) if each)
        if not text and not media:
            return None
        return Inbound(
            text,
            source,
            message_id=str(message.id),
            delivery_id=str(message.id),
            account=self.account,
            message_type=kind_of(message.attachments),
            media=media,
            reply_to_text=message.quoted,
        )

    async def _files(self, message: DiscordMessage, source: SessionSource) -> tuple[list[Mapping[str, str]], list[str]]:
        """Return the stored files of a message, and sentences about those that are not stored."""
        if not message.attachments or self._downloads is None:
            return [], []
        if not await self._context.wants_files_of(source):
            return [], ["[files that were not received]"]
        return await self._downloads.fetch(message.attachments)

    async def _has_role(self, message: DiscordMessage, chat: Chat) -> bool:
        """Whether the author has a role whose members may talk; Discord is asked if the message does not say."""
        allowed, roles = self._settings.allowed_roles, message.roles
        if not allowed or chat.guild_id is None:
            return False
        if roles is None:
            try:
                found = await self._link.client.http.call(
                    "GET", "/guilds/{guild_id}/members/{user_id}", guild_id=chat.guild_id, user_id=message.user_id
                )
            except NotSent as error:
                if error.is_final:
                    return False
                raise
            roles = frozenset(str(each) for each in as_list(as_dict(found).get("roles")))
        return bool(allowed & roles)

    async def _explain_refusal(self, message: DiscordMessage, chat: Chat, admission: Admission) -> None:
        """Tell a chat why a message was refused, but not for each of many."""
        now = asyncio.get_running_loop().time()
        if not admission.message or now < self._told_at.get(chat.place, float("-inf")) + _NOTICE_S:
            return
        self._told_at[chat.place] = now
        while len(self._told_at) > _MOST_NOTICES:
            self._told_at.popitem(last=False)
        key = f"refused {message.id}"
        delivery = Delivery(key, chat.chat_id, admission.message, "notice", chat.thread_id, str(message.id))
        try:
            await self._outgoing.post(self._part(delivery, admission.message))
        except (NotSent, MaybeSent) as error:
            warn(__name__, "a chat does not learn that a message was refused: %s", error)


def _joined_at(value: object) -> int:
    """Return the first id after the bot has joined a server; 0 if that is not known."""
    try:
        return id_at(datetime.fromisoformat(value).timestamp()) if isinstance(value, str) else 0
    except ValueError:
        return 0
