"""What is known about rooms: which are direct, and how often their members are read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hermes.platforms.base.json_api import TooLarge
from hermes.platforms.matrix.events import direct_rooms
from hermes.platforms.matrix.rooms import Room, Rooms

OWN = "@bot:example.org"


class Homeserver:
    """The answers about one room, whose members a test changes."""

    def __init__(self, count: int) -> None:
        self.members: dict[str, Any] = {f"@u{number}:x": {"display_name": f"User {number}"} for number in range(count)}
        self.is_too_large = False
        self.asked = 0

    async def joined_members(self, room_id: str) -> dict[str, Any]:
        """Return the members."""
        self.asked += 1
        if self.is_too_large:
            raise TooLarge("too large")
        return self.members

    async def state(self, room_id: str, kind: str) -> dict[str, Any]:
        """Return nothing."""
        return {}


def joined(user: str, name: str) -> dict[str, Any]:
    return {"type": "m.room.member", "state_key": user, "content": {"membership": "join", "displayname": name}}


@pytest.mark.parametrize(("count", "asked"), [(3, 2), (500, 1)])
def test_change_of_a_member_is_seen_and_a_large_room_is_not_read_again(count: int, asked: int) -> None:
    async def test() -> None:
        server = Homeserver(count)
        rooms = Rooms(server, OWN)  # type: ignore[arg-type]
        await rooms.get("!a")
        server.members["@u1:x"] = {"display_name": "Renamed"}
        rooms.note_changes("!a", [{"type": ["x"]}, None, joined("@u1:x", "Renamed"), {"type": "m.room.member"}])
        room = await rooms.get("!a")
        assert (room.names["@u1:x"], server.asked) == ("Renamed", asked)
        rooms.note_changes("!a", [{"type": "m.room.name"}])
        await rooms.get("!a")
        assert server.asked == asked + 1

    asyncio.run(test())


def test_room_whose_members_are_too_many_to_read_is_a_group() -> None:
    async def test() -> None:
        server = Homeserver(1)
        server.is_too_large = True
        rooms = Rooms(server, OWN)  # type: ignore[arg-type]
        rooms.note_account_data([{"type": "m.direct", "content": {"@alice:example.org": ["!a"]}}])
        room = await rooms.get("!a")
        assert room.members > 2
        assert not rooms.is_direct("!a", room, "@alice:example.org")

    asyncio.run(test())


def test_room_is_direct_only_for_its_user_and_only_if_its_members_are_known() -> None:
    rooms = Rooms(Homeserver(0), OWN)  # type: ignore[arg-type]
    rooms.note_account_data([{"type": "m.direct", "content": {"@alice:example.org": ["!a:b"], "@eve:x": 5}}, 7])
    for members, user, is_direct in ((2, "@alice:example.org", True), (3, "@alice:example.org", False)):
        assert rooms.is_direct("!a:b", Room(members), user) is is_direct
    assert not rooms.is_direct("!a:b", Room(2), "@bob:example.org")
    assert not rooms.is_direct("!a:b", Room(), "@alice:example.org")
    assert direct_rooms({"@a:b": [1, "!x:y"]}) == {"@a:b": frozenset({"1", "!x:y"})}
