"""How far the account's events are processed, in a file of the home."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import tempfile
from pathlib import Path

from hermes.log import warn

_MAX_ROOMS = 1000
_MAX_BYTES = 1024 * 1024


class Position:
    """The token after the last processed batch of events, and the rooms that were told about encryption."""

    def __init__(self, home: Path, user_id: str, base_url: str) -> None:
        name = hashlib.sha256(f"{base_url} {user_id}".encode()).hexdigest()[:16]
        self._path = home / "platforms" / "matrix" / f"{name}.json"
        self.since: str | None = None
        self._told: list[str] = []

    async def load(self) -> None:
        """Read the file; a missing or damaged one is a first start."""
        await asyncio.to_thread(self._load)

    async def advance(self, since: str) -> None:
        """Store a token, durably, after everything before it was processed."""
        if since != self.since:
            await asyncio.to_thread(self._store, since, list(self._told))
            self.since = since

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
            since, told = data["since"], data.get("told", [])
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            warn(__name__, "%s cannot be read (%s); only new messages are processed", self._path, type(error).__name__)
            return
        self.since = since if isinstance(since, str) and since else None
        self._told = [str(each) for each in told][-_MAX_ROOMS:] if isinstance(told, list) else []

    def _store(self, since: str, told: list[str]) -> None:
        folder = self._path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(dir=folder, prefix=".position-")  # readable for its user only
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump({"since": since, "told": told}, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, self._path)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
