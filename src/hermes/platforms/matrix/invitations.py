"""Joining rooms: invitations of users who may talk are accepted, and unknown users may open a direct chat."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from hermes.errors import HermesError
from hermes.gateway.engine.ports import MaybeSent, NotSent
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource
from hermes.log import inform, warn
from hermes.platforms.matrix.api import MatrixApi
from hermes.platforms.matrix.events import ROOM, as_dict, identifier, invitation
from hermes.platforms.matrix.rooms import Rooms
from hermes.platforms.matrix.settings import MatrixSettings

LOOK_AGAIN_S = 15.0
"""How often invitations that stay open are looked at again."""
_MOST = 100
_MOST_STRANGERS = 20
"""How many direct chats unknown users can open in an hour, all together; as many as there are pairing codes."""
_HOUR_S = 3600.0
_ATTEMPTS = 5
_PAUSE_S = 2.0


class Invitations:
    """Accepts invitations in the background, because other servers may respond slowly."""

    def __init__(
        self,
        api: MatrixApi,
        rooms: Rooms,
        settings: MatrixSettings,
        own_id: str,
        may_talk: Callable[[SessionSource], Awaitable[bool]],
    ) -> None:
        self._api = api
        self._rooms = rooms
        self._settings = settings
        self._own_id = own_id
        self._may_talk = may_talk
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._refused: OrderedDict[str, tuple[str, bool]] = OrderedDict()
        """Invitations that stay open: who has sent them, and whether to a direct chat."""
        self._look_again_at = 0.0
        self._strangers: list[float] = []
        """When unknown users have opened a chat, within the last hour."""

    def note(self, invited: Mapping[str, Any]) -> None:
        """Begin to accept new invitations, and now and then those of users who may talk only since then.

        Those that do not fit now are found again at the next start.
        """
        for room_id, about in invited.items():
            found = invitation(as_dict(about).get("invite_state"), self._own_id)
            if identifier(room_id, ROOM) is not None and found is not None:
                self._begin(room_id, *found)
        now = asyncio.get_running_loop().time()
        if self._refused and now >= self._look_again_at:
            self._look_again_at = now + LOOK_AGAIN_S
            for room_id, about in list(self._refused.items()):
                self._begin(room_id, *about)

    def _begin(self, room_id: str, inviter: str, is_direct: bool) -> None:
        if room_id in self._waiting or len(self._waiting) >= _MOST:
            return
        task = asyncio.create_task(self._accept(room_id, inviter, is_direct), name="hermes-matrix-join")
        self._waiting[room_id] = task
        task.add_done_callback(lambda _: self._waiting.pop(room_id, None))

    async def stop(self) -> None:
        """Leave the rest for the next start."""
        waiting = list(self._waiting.values())
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    async def _accept(self, room_id: str, inviter: str, is_direct: bool) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                if await self._is_welcome(room_id, inviter, is_direct):
                    await self._join(room_id, inviter, is_direct)
                    self._refused.pop(room_id, None)
                else:
                    self._refuse(room_id, inviter, is_direct)
                return
            except (NotSent, MaybeSent, HermesError) as error:
                is_last = attempt == _ATTEMPTS or (isinstance(error, NotSent) and error.is_final)
                if is_last:
                    self._refused.pop(room_id, None)
                    warn(__name__, "the invitation to %s could not be accepted: %s", room_id, error)
                    return
                wait_s = error.retry_after_s if isinstance(error, NotSent) else None
            await asyncio.sleep(_PAUSE_S * attempt if wait_s is None else min(wait_s, 60.0))

    async def _join(self, room_id: str, inviter: str, is_direct: bool) -> None:
        if is_direct:
            # Before joining: the first message must find the room marked.
            await self._rooms.mark_direct(room_id, inviter)
        await self._api.join(room_id)

    async def _is_welcome(self, room_id: str, inviter: str, is_direct: bool) -> bool:
        """Whether an invitation is accepted: of users whom the settings name, or else of those who may talk.

        In the second case unknown users of the own homeserver can open direct chats, where they get a pairing code.
        """
        settings = self._settings
        if settings.inviters is not None:
            return settings.names_inviter(inviter)
        if await self._may_talk(SessionSource(Platform.MATRIX, room_id, chat_type="dm", user_id=inviter)):
            return True
        is_near = inviter.partition(":")[2] == self._own_id.partition(":")[2]
        return is_direct and is_near and settings.answers_strangers and self._has_room_for_stranger()

    def _has_room_for_stranger(self) -> bool:
        now = asyncio.get_running_loop().time()
        self._strangers = [each for each in self._strangers if now < each + _HOUR_S]
        if len(self._strangers) >= _MOST_STRANGERS:
            return False
        self._strangers.append(now)
        return True

    def _refuse(self, room_id: str, inviter: str, is_direct: bool) -> None:
        if room_id in self._refused:
            return
        self._refused[room_id] = inviter, is_direct
        if len(self._refused) > _MOST:
            self._refused.popitem(last=False)
        inform(__name__, "an invitation of %s is not accepted: this user may not talk to the bot", inviter)
