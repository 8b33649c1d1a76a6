"""Long polling: every batch of events is processed completely before its token is stored."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from hermes.errors import HermesError
from hermes.gateway.engine.ports import MaybeSent, NotSent
from hermes.log import inform, warn
from hermes.platforms.base.admissions import NotStored
from hermes.platforms.matrix.api import MatrixApi, UnknownPosition
from hermes.platforms.matrix.events import ENCRYPTED, MEMBER, MESSAGE, NAME, TOPIC, as_dict, is_membership
from hermes.platforms.matrix.events import since_own_arrival as after_arrival
from hermes.platforms.matrix.position import Position

POLL_S = 30.0
PAUSES_S = (1.0, 2.0, 5.0, 15.0, 30.0)
_ROOMS_AT_ONCE = 8
_TYPES = [MESSAGE, ENCRYPTED, MEMBER, NAME, TOPIC]
_TIMELINE = {"limit": 50, "types": _TYPES, "lazy_load_members": True}
_NOTHING: dict[str, Any] = {"types": []}
_SEARCH = {
    "presence": _NOTHING,
    "account_data": {"types": ["m.direct"]},
    "room": {
        "timeline": _TIMELINE,
        "state": {"types": [MEMBER, NAME, TOPIC], "lazy_load_members": True},
        "ephemeral": _NOTHING,
        "account_data": _NOTHING,
    },
}
_ONLY_INVITATIONS = {
    "presence": _NOTHING,
    "account_data": _NOTHING,
    "room": {"timeline": {"limit": 1, **_NOTHING}, "state": _NOTHING, "ephemeral": _NOTHING, "account_data": _NOTHING},
}

OnRoom = Callable[[str, list[Any], list[Any]], Awaitable[None]]
"""Processes the new events of a room, and the changes of its state before them."""


class Sync:
    """Reads the events of an account for ever."""

    def __init__(
        self,
        api: MatrixApi,
        position: Position,
        own_id: str,
        *,
        on_room: OnRoom,
        on_invitations: Callable[[Mapping[str, Any]], None],
        on_account_data: Callable[[object], None],
        backlog_limit: int,
        poll_s: float = POLL_S,
    ) -> None:
        self._api = api
        self._position = position
        self._own_id = own_id
        self._on_room = on_room
        self._on_invitations = on_invitations
        self._on_account_data = on_account_data
        self._backlog_limit = backlog_limit
        self._poll_s = poll_s
        self._places = asyncio.Semaphore(_ROOMS_AT_ONCE)
        self.status = "connecting"
        """What the connection does now, as a phrase."""

    async def begin(self) -> None:
        """Read the open invitations; at the first start, begin after what is in the rooms already."""
        await self._position.load()
        await self._look()
        self.status = "connected"

    async def _look(self) -> None:
        """Read the open invitations, and without a position take the present one."""
        batch = await self._api.sync(None, _ONLY_INVITATIONS, 0.0)
        self._on_invitations(as_dict(as_dict(batch.get("rooms")).get("invite")))
        if self._position.since is None and isinstance(token := batch.get("next_batch"), str):
            await self._position.advance(token)

    async def run(self) -> None:
        """Process batches; after an error, the same batch is read again."""
        failures = 0
        while True:
            try:
                await self.step()
                if failures:
                    inform(__name__, "Matrix is connected again")
                failures, self.status = 0, "connected"
            except (NotSent, MaybeSent, NotStored, HermesError, OSError) as error:
                failures = await self._pause(error, failures)
            except Exception as error:  # noqa: BLE001 - the batch is read again; the connection must not end
                warn(__name__, "a batch of events failed:\n%s", traceback.format_exc())
                failures = await self._pause(error, failures)

    async def step(self) -> None:
        """Read and process one batch, and store its token then."""
        if self._position.since is None:
            await self._look()
        try:
            batch = await self._api.sync(self._position.since, _SEARCH, self._poll_s)
        except UnknownPosition:
            warn(__name__, "the homeserver has lost the position of this account; what was missed is not read")
            self._position.forget()
            raise
        token = batch.get("next_batch")
        if not isinstance(token, str) or not token:
            raise MaybeSent("the homeserver sent no token")
        rooms = as_dict(batch.get("rooms"))
        self._on_account_data(as_dict(batch.get("account_data")).get("events"))
        self._on_invitations(as_dict(rooms.get("invite")))
        joined = as_dict(rooms.get("join"))
        results = await asyncio.gather(
            *(self._process(room_id, as_dict(room)) for room_id, room in joined.items()), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result
        await self._position.advance(token, has_news=bool(joined))

    async def _process(self, room_id: str, room: Mapping[str, Any]) -> None:
        async with self._places:
            timeline = as_dict(room.get("timeline"))
            events, changes = _events(timeline), _events(as_dict(room.get("state")))
            if timeline.get("limited") is True and not _has_arrival(events, self._own_id):
                events = await self._missed(room_id, timeline.get("prev_batch")) + events
            await self._on_room(room_id, after_arrival(events, self._own_id), changes)

    async def _missed(self, room_id: str, begin: object) -> list[Any]:
        """Return the events between the last batch and this one that the homeserver left out, within the limit."""
        found: list[Any] = []
        while isinstance(begin, str) and len(found) < self._backlog_limit:
            page = await self._api.messages(room_id, begin, self._position.since, {"types": _TYPES})
            chunk = page.get("chunk")
            found += chunk if isinstance(chunk, list) else []
            following = page.get("end")
            if not isinstance(following, str) or following == begin or _has_arrival(found, self._own_id):
                return found[::-1]
            begin = following
        if isinstance(begin, str):
            warn(__name__, "%s has more new messages than are fetched; the oldest are left out", room_id)
        return found[: self._backlog_limit][::-1]

    async def _pause(self, error: Exception, failures: int) -> int:
        """Wait before the next attempt, longer each time; write the first failure to the log."""
        pause_s = PAUSES_S[min(failures, len(PAUSES_S) - 1)]
        if isinstance(error, NotSent) and error.retry_after_s is not None:
            pause_s = max(pause_s, min(error.retry_after_s, 300.0))
        self.status = f"not connected: {error}"
        if failures == 0:
            warn(__name__, "Matrix: events cannot be processed now: %s", error)
        await asyncio.sleep(pause_s)
        return failures + 1


def _events(part: Mapping[str, Any]) -> list[Any]:
    found = part.get("events")
    return list(found) if isinstance(found, list) else []


def _has_arrival(events: list[Any], own_id: str) -> bool:
    return any(is_membership(each, own_id, "invite") for each in events)
