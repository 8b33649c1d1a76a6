"""Joining rooms: invitations of users that the operator trusts are accepted, the others stay open."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from hermes.gateway.engine.ports import MaybeSent, NotSent
from hermes.log import inform, warn
from hermes.platforms.matrix.api import MatrixApi
from hermes.platforms.matrix.events import as_dict, identifier, invitation
from hermes.platforms.matrix.rooms import Rooms
from hermes.platforms.matrix.settings import MatrixSettings

_MOST = 100
_ATTEMPTS = 5
_PAUSE_S = 2.0


class Invitations:
    """Accepts invitations in the background, because other servers may respond slowly."""

    def __init__(self, api: MatrixApi, rooms: Rooms, settings: MatrixSettings, own_id: str) -> None:
        self._api = api
        self._rooms = rooms
        self._settings = settings
        self._own_id = own_id
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._refused: set[str] = set()

    def note(self, invited: Mapping[str, Any]) -> None:
        """Begin to accept new invitations; those that do not fit now are found again at the next start."""
        for room_id, about in invited.items():
            found = invitation(as_dict(about).get("invite_state"), self._own_id)
            if identifier(room_id) is None or found is None or room_id in self._waiting:
                continue
            inviter, is_direct = found
            if not self._settings.accepts_invitation_of(inviter):
                self._refuse(room_id, inviter)
            elif len(self._waiting) < _MOST:
                task = asyncio.create_task(self._accept(room_id, inviter, is_direct), name="hermes-matrix-join")
                self._waiting[room_id] = task
                task.add_done_callback(lambda _, room_id=room_id: self._waiting.pop(room_id, None))  # type: ignore[misc]

    async def stop(self) -> None:
        """Leave the rest for the next start."""
        waiting = list(self._waiting.values())
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    def _refuse(self, room_id: str, inviter: str) -> None:
        if room_id in self._refused or len(self._refused) >= _MOST:
            return
        self._refused.add(room_id)
        inform(__name__, "an invitation of %s is not accepted; accept_invites_from does not name this user", inviter)

    async def _accept(self, room_id: str, inviter: str, is_direct: bool) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                if is_direct:
                    # Before joining: the first message must find the room marked.
                    await self._rooms.mark_direct(room_id, inviter)
                await self._api.join(room_id)
                return
            except (NotSent, MaybeSent) as error:
                is_last = attempt == _ATTEMPTS or (isinstance(error, NotSent) and error.is_final)
                if is_last:
                    warn(__name__, "the invitation to %s could not be accepted: %s", room_id, error)
                    return
                wait_s = error.retry_after_s if isinstance(error, NotSent) else None
            await asyncio.sleep(_PAUSE_S * attempt if wait_s is None else min(wait_s, 60.0))
