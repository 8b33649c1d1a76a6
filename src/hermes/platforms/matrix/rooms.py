"""What is known about rooms: their members, names, and which are direct."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from hermes.platforms.base.json_api import TooLarge
from hermes.platforms.matrix.api import MatrixApi
from hermes.platforms.matrix.events import MEMBER, NAME, TOPIC, as_dict, direct_rooms

DIRECT = "m.direct"
_MAX_ROOMS = 500
_MAX_NAMES = 5000
_MAX_NAME = 200
_LARGE = 50
"""The members of a room with more are not read again whenever one of them comes or goes."""
_VERY_LARGE = 100_000
"""How many members count for a room whose list is too long to be read."""


@dataclass(frozen=True, slots=True)
class Room:
    """A room as the account sees it."""

    members: int = 0
    names: dict[str, str] = field(default_factory=dict)
    name: str | None = None
    topic: str | None = None


class Rooms:
    """Rooms that were looked at, until something about them changes."""

    def __init__(self, api: MatrixApi, own_id: str) -> None:
        self._api = api
        self._own_id = own_id
        self._rooms: OrderedDict[str, Room] = OrderedDict()
        self._direct: dict[str, frozenset[str]] = {}
        self._marking = asyncio.Lock()

    async def load(self) -> None:
        """Read which rooms are direct: the homeserver keeps that for the account."""
        self._direct = direct_rooms(await self._api.account_data(self._own_id, DIRECT))

    def note_account_data(self, events: object) -> None:
        """Take over a change of the direct rooms."""
        for event in events if isinstance(events, list) else []:
            if as_dict(event).get("type") == DIRECT:
                self._direct = direct_rooms(as_dict(as_dict(event).get("content")))

    def note_changes(self, room_id: str, events: list[Any]) -> None:
        """Forget a room whose members or names change; of a large one, in which people come and go, note the names."""
        known, kinds = self._rooms.get(room_id), {str(as_dict(each).get("type")) for each in events}
        if known is None or kinds.isdisjoint((MEMBER, NAME, TOPIC)):
            return
        if known.members <= _LARGE or not kinds.isdisjoint((NAME, TOPIC)):
            del self._rooms[room_id]
            return
        for event in map(as_dict, events):
            user, name = event.get("state_key"), _line(as_dict(event.get("content")).get("displayname"))
            if event.get("type") != MEMBER or not isinstance(user, str) or not name:
                continue
            if user in known.names or len(known.names) < _MAX_NAMES:
                known.names[user] = name

    async def get(self, room_id: str) -> Room:
        """Return a room."""
        if (known := self._rooms.get(room_id)) is not None:
            self._rooms.move_to_end(room_id)
            return known
        (count, names), name, topic = await asyncio.gather(
            self._members(room_id), self._api.state(room_id, NAME), self._api.state(room_id, TOPIC)
        )
        room = Room(count, names, _line(name.get("name")) or None, _line(topic.get("topic")) or None)
        self._rooms[room_id] = room
        while len(self._rooms) > _MAX_ROOMS:
            self._rooms.popitem(last=False)
        return room

    async def _members(self, room_id: str) -> tuple[int, dict[str, str]]:
        """Return how many members a room has, and the names of those that have one."""
        try:
            members = await self._api.joined_members(room_id)
        except TooLarge:
            return _VERY_LARGE, {}
        names = {user: _line(as_dict(about).get("display_name")) for user, about in list(members.items())[:_MAX_NAMES]}
        return len(members), {user: text for user, text in names.items() if text}

    def is_direct(self, room_id: str, room: Room, user_id: str) -> bool:
        """Whether a room is the direct chat with a user: it was begun as one with this user, and both are alone in it.

        A room whose other member has changed is not: the new one must not continue the conversation of the old one.
        Neither is one whose members could not be read.
        """
        return 1 <= room.members <= 2 and room_id in self._direct.get(user_id, ())

    async def mark_direct(self, room_id: str, user_id: str) -> None:
        """Record on the homeserver that a room is the direct chat with a user."""
        async with self._marking:
            content = dict(await self._api.account_data(self._own_id, DIRECT))
            known = direct_rooms(content).get(user_id, frozenset())
            if room_id not in known:
                content[user_id] = [*sorted(known), room_id]
                await self._api.set_account_data(self._own_id, DIRECT, content)
            self._direct = direct_rooms(content)


def _line(value: object) -> str:
    return "".join(each for each in value[:_MAX_NAME] if each.isprintable()) if isinstance(value, str) else ""
