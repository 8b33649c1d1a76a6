"""Where messages are written: direct chats, channels of servers, threads."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hermes.gateway.engine.ports import NotSent
from hermes.platforms.discord.events import as_dict, line, snowflake

if TYPE_CHECKING:
    from discord import Guild

    from hermes.platforms.discord.client import Connection

_DM = 1
_THREADS = frozenset({10, 11, 12})
"""The types of threads: of announcements, public with forum posts, and private."""
_MAX_KNOWN = 2000
_MAX_TOPIC = 1024


@dataclass(frozen=True, slots=True)
class Chat:
    """A channel or a thread, as sessions see it: a thread is in the chat of its channel."""

    kind: Literal["dm", "group"]
    chat_id: str
    thread_id: str | None = None
    name: str | None = None
    topic: str | None = None
    guild_id: str | None = None
    is_joined: bool = False
    """Whether the bot is a member of the thread: it has written there, was mentioned or was added."""

    @property
    def place(self) -> str:
        """The channel in which messages are written."""
        return self.thread_id or self.chat_id


class Chats:
    """Finds out what a channel is: from the connection, which follows changes, or else by a request."""

    def __init__(self) -> None:
        self._direct: OrderedDict[int, None] = OrderedDict()
        self._joined: OrderedDict[int, None] = OrderedDict()

    def note_written(self, place: str) -> None:
        """Remember that the bot has written in a channel or thread."""
        if (number := snowflake(place)) is not None:
            _remember(self._joined, number)

    async def get(self, client: Connection, channel_id: int) -> Chat | None:
        """Return a chat; None if it does not exist for the bot; raise `NotSent` or `MaybeSent` if that is unknown."""
        if channel_id in self._direct:
            return Chat("dm", str(channel_id))
        if (known := self._cached(client, channel_id)) is not None:
            return known
        about = await self._fetch(client, channel_id)
        if about is None:
            return None
        kind = about.get("type")
        if kind == _DM:
            _remember(self._direct, channel_id)
            return Chat("dm", str(channel_id))
        guild_id = snowflake(about.get("guild_id"))
        if guild_id is None:
            return None  # a group of friends: bots have none
        guild = client.get_guild(guild_id)
        if kind not in _THREADS:
            return self._channel(guild, guild_id, channel_id, about.get("name"), about.get("topic"))
        parent_id = snowflake(about.get("parent_id"))
        if parent_id is None:
            return None
        parent = await self._parent(client, parent_id)
        is_joined = channel_id in self._joined or bool(as_dict(about.get("member")))
        return self._thread(guild, guild_id, channel_id, about.get("name"), parent_id, parent, is_joined)

    def _cached(self, client: Connection, channel_id: int) -> Chat | None:
        from discord import Thread
        from discord.abc import GuildChannel

        channel = client.get_channel(channel_id)
        if isinstance(channel, Thread):
            parent = channel.parent
            if parent is None:
                return None
            about = {"name": parent.name, "topic": getattr(parent, "topic", None)}
            is_joined = channel.me is not None or channel_id in self._joined
            is_joined = is_joined or (client.user is not None and channel.owner_id == client.user.id)
            return self._thread(
                channel.guild, channel.guild.id, channel_id, channel.name, channel.parent_id, about, is_joined
            )
        if isinstance(channel, GuildChannel):
            topic = getattr(channel, "topic", None)
            return self._channel(channel.guild, channel.guild.id, channel_id, channel.name, topic)
        return None

    async def _parent(self, client: Connection, channel_id: int) -> Mapping[str, Any]:
        channel = client.get_channel(channel_id)
        if channel is not None:
            return {"name": getattr(channel, "name", None), "topic": getattr(channel, "topic", None)}
        return await self._fetch(client, channel_id) or {}

    async def _fetch(self, client: Connection, channel_id: int) -> Mapping[str, Any] | None:
        try:
            found = await client.http.call("GET", "/channels/{channel_id}", channel_id=channel_id)
        except NotSent as error:
            if error.is_final:
                return None
            raise
        return as_dict(found)

    def _channel(self, guild: Guild | None, guild_id: int, channel_id: int, name: object, topic: object) -> Chat:
        return Chat(
            "group",
            str(channel_id),
            name=_full_name(guild, name),
            topic=line(topic, _MAX_TOPIC) or None,
            guild_id=str(guild_id),
        )

    def _thread(
        self,
        guild: Guild | None,
        guild_id: int,
        thread_id: int,
        name: object,
        parent_id: int,
        parent: Mapping[str, Any],
        is_joined: bool,
    ) -> Chat:
        return Chat(
            "group",
            str(parent_id),
            str(thread_id),
            name=_full_name(guild, parent.get("name"), name),
            topic=line(parent.get("topic"), _MAX_TOPIC) or None,
            guild_id=str(guild_id),
            is_joined=is_joined,
        )


def _full_name(guild: Guild | None, channel: object, thread: object = None) -> str | None:
    """Return a name such as `Server / #channel / thread`."""
    shown = f"#{line(channel)}" if line(channel) else ""
    return " / ".join(each for each in (line(guild.name) if guild else "", shown, line(thread)) if each) or None


def _remember(known: OrderedDict[int, None], number: int) -> None:
    known[number] = None
    known.move_to_end(number)
    if len(known) > _MAX_KNOWN:
        known.popitem(last=False)
