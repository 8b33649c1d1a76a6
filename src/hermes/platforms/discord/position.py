"""How far messages are processed, in a file of the home: what is missed while disconnected is read from there."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import Counter, OrderedDict
from pathlib import Path

from hermes.errors import ConfigError
from hermes.home import ensure_private_dir, write_private_atomic
from hermes.log import warn
from hermes.platforms.discord.events import as_list, snowflake

EPOCH_MS = 1_420_070_400_000
"""The first millisecond of Discord's ids."""
OVERLAP_S = 15.0
"""Ids of different channels do not arrive exactly in their order; within this time they are looked at one by one."""
_MAX_DONE = 5000
_MAX_CHATS = 200
_MAX_BYTES = 1024 * 1024
_PAUSE_S = 0.5
_RARELY_S = 30.0
"""How often the position is stored if only messages arrive that are not for the bot."""
_DAY_S = 86_400


def id_at(seconds: float) -> int:
    """Return the smallest id that Discord gives at a time."""
    return max(0, int(seconds * 1000) - EPOCH_MS) << 22


class Position:
    """Every message up to an id is processed, and some above it; messages that wait keep the id from growing."""

    def __init__(self, home: Path, own_id: str, base_url: str) -> None:
        name = hashlib.sha256(f"{base_url} {own_id}".encode()).hexdigest()[:16]
        self._path = home / "platforms" / "discord" / f"{name}.json"
        self.upto = 0
        self._newest = self._latest = 0
        self._pending: Counter[int] = Counter()
        self._done: OrderedDict[int, None] = OrderedDict()
        self._chats: OrderedDict[int, None] = OrderedDict()
        self._changed = asyncio.Event()
        self._saving: asyncio.Task[None] | None = None

    @property
    def chats(self) -> list[int]:
        """The direct chats, which Discord does not list for bots."""
        return list(self._chats)

    async def begin(self, first_s: float, now_s: float, most_s: float) -> None:
        """Read the file, and store changes from now on; without a file nothing before the time `first_s` was missed.

        What is older than `most_s` is not read again: the inbox may have forgotten that it was accepted.
        """
        await asyncio.to_thread(self._load)
        upto = min(self.upto or id_at(first_s) - 1, id_at(now_s))
        self.upto = self._newest = max(upto, id_at(now_s - most_s))
        self._latest = id_at(now_s + _DAY_S)
        await asyncio.to_thread(self._store, self._content())
        self._saving = asyncio.create_task(self._save(), name="hermes-discord-position")

    async def stop(self) -> None:
        """Store the last changes."""
        saving, self._saving = self._saving, None
        if saving is None:
            return
        saving.cancel()
        await asyncio.gather(saving, return_exceptions=True)
        await self._store_now()

    def note(self, message_id: int) -> None:
        """Take over that a message exists; an id of the future, which cannot be right, changes nothing."""
        if message_id > self._latest:
            self._latest = id_at(time.time() + _DAY_S)
        if self._newest < message_id <= self._latest:
            self._newest = message_id

    def note_chat(self, channel_id: int) -> None:
        """Remember a direct chat."""
        self._chats[channel_id] = None
        self._chats.move_to_end(channel_id)
        if len(self._chats) > _MAX_CHATS:
            self._chats.popitem(last=False)

    def hold(self, message_id: int) -> None:
        """Let everything from an id on count as not processed, until `release` is called as often."""
        self._pending[message_id] += 1
        self.note(message_id)

    def release(self, message_id: int) -> None:
        """End a hold."""
        self._pending[message_id] -= 1
        if self._pending[message_id] <= 0:
            del self._pending[message_id]
        self._changed.set()

    def finish(self, message_id: int) -> None:
        """Take over that a message is processed."""
        self.note(message_id)
        self._done[message_id] = None
        while len(self._done) > _MAX_DONE:
            self._done.popitem(last=False)
        self._changed.set()

    def is_done(self, message_id: int) -> bool:
        """Whether a message was processed before."""
        return message_id in self._done

    def _advance(self) -> None:
        limit = self._newest - (int(OVERLAP_S * 1000) << 22)
        if self._pending:
            limit = min(limit, min(self._pending) - 1)
        if limit > self.upto:
            self.upto = limit
            for each in [each for each in self._done if each <= limit]:
                del self._done[each]

    def _content(self) -> str:
        self._advance()
        return json.dumps({"upto": self.upto, "done": list(self._done), "chats": list(self._chats)})

    async def _save(self) -> None:
        stored = 0
        while True:
            try:
                async with asyncio.timeout(_RARELY_S):
                    await self._changed.wait()
            except TimeoutError:
                if self._newest == stored:
                    continue
            self._changed.clear()
            stored = self._newest
            await self._store_now()
            await asyncio.sleep(_PAUSE_S)

    async def _store_now(self) -> None:
        try:
            await asyncio.to_thread(self._store, self._content())
        except (ConfigError, OSError) as error:  # messages may be read twice after a restart, and are known then
            warn(__name__, "%s cannot be written: %s", self._path, error)

    def _load(self) -> None:
        try:
            with self._path.open("rb") as file:
                data = json.loads(file.read(_MAX_BYTES))
            upto, done, chats = (data.get(name) for name in ("upto", "done", "chats"))
        except FileNotFoundError:
            return
        except (OSError, ValueError, AttributeError, RecursionError) as error:
            warn(__name__, "%s cannot be read (%s); only new messages are processed", self._path, type(error).__name__)
            return
        self.upto = snowflake(upto) or 0
        self._done = OrderedDict((each, None) for each in map(snowflake, as_list(done)[-_MAX_DONE:]) if each)
        self._chats = OrderedDict((each, None) for each in map(snowflake, as_list(chats)[-_MAX_CHATS:]) if each)

    def _store(self, content: str) -> None:
        ensure_private_dir(self._path.parent)
        write_private_atomic(self._path, content.encode())
