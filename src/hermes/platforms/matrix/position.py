"""How far the account's events are processed: in a file of the home, and on the homeserver for other nodes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from pathlib import Path

from hermes.gateway.engine.ports import MaybeSent, NotSent
from hermes.home import ensure_private_dir, write_private_atomic
from hermes.log import warn
from hermes.platforms.matrix.api import MatrixApi

SHARED = "hermes_sessions.position"
"""The account data with the position, which another node begins with."""
_SHARE_S = 10.0
_MAX_ROOMS = 1000
_MAX_BYTES = 1024 * 1024


class Position:
    """The token after the last processed batch of events, and the rooms that were told about encryption."""

    def __init__(self, home: Path, api: MatrixApi, user_id: str, base_url: str) -> None:
        name = hashlib.sha256(f"{base_url} {user_id}".encode()).hexdigest()[:16]
        self._path = home / "platforms" / "matrix" / f"{name}.json"
        self._api = api
        self._user_id = user_id
        self.since: str | None = None
        self._at = 0.0
        """When the token was stored, in seconds since 1970."""
        self._shared: str | None = None
        self._share_after = float("-inf")
        self._told: list[str] = []

    async def load(self) -> None:
        """Read the token of the file, or that of the homeserver if another node stored it later; else there is none."""
        await asyncio.to_thread(self._load)
        shared = await self._api.account_data(self._user_id, SHARED)
        since, at = shared.get("since"), _seconds(shared.get("at"))
        if isinstance(since, str) and since and at > self._at + 1.0:  # the shared time is a whole second
            self.since, self._at, self._shared = since, at, since

    async def advance(self, since: str, *, has_news: bool = True) -> None:
        """Store a token, durably, after everything before it was processed; after news, share it now and then."""
        if since != self.since:
            self._at = time.time()
            await asyncio.to_thread(self._store, since, list(self._told))
            self.since = since
        if has_news and asyncio.get_running_loop().time() >= self._share_after:
            await self.share()

    async def share(self) -> None:
        """Let another node begin here; without that, it reads again what this one has processed."""
        since = self.since
        if since is None or since == self._shared:
            return
        self._share_after = asyncio.get_running_loop().time() + _SHARE_S
        try:
            await self._api.set_account_data(self._user_id, SHARED, {"since": since, "at": int(self._at)})
        except (NotSent, MaybeSent) as error:
            warn(__name__, "the position is not stored on the homeserver: %s", error)
        else:
            self._shared = since

    def forget(self) -> None:
        """Begin with new events, because the homeserver does not know the token any more."""
        self.since = None

    async def tell_once(self, room_id: str) -> bool:
        """Return True the first time for a room, and remember the room."""
        if room_id in self._told:
            return False
        self._told = [*self._told[1 - _MAX_ROOMS :], room_id]
        if self.since is not None:
            await asyncio.to_thread(self._store, self.since, list(self._told))
        return True

    def _load(self) -> None:
        try:
            with self._path.open("rb") as file:
                data = json.loads(file.read(_MAX_BYTES))
            since, told, at = data["since"], data.get("told", []), data.get("at")
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            warn(__name__, "%s cannot be read (%s); the homeserver is asked", self._path, type(error).__name__)
            return
        self.since = since if isinstance(since, str) and since else None
        self._at = _seconds(at)
        self._told = [str(each) for each in told][-_MAX_ROOMS:] if isinstance(told, list) else []

    def _store(self, since: str, told: list[str]) -> None:
        ensure_private_dir(self._path.parent)
        write_private_atomic(self._path, json.dumps({"since": since, "at": self._at, "told": told}).encode())


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e11 else 0.0
