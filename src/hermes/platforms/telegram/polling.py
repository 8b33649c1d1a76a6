"""Fetches updates: the offset moves on only when every message before it is stored."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from telegram.error import Conflict, InvalidToken, RetryAfter, TelegramError

from hermes.log import inform, warn
from hermes.platforms.telegram.failures import text_of, wait_of
from hermes.platforms.telegram.updates import UPDATES, chat_of

if TYPE_CHECKING:
    from telegram.request import BaseRequest

    from hermes.platforms.telegram.settings import TelegramSettings

AT_ONCE = 100
CALM_S = 300.0
"""After so long without another poller, the next one is named in the log again."""
Handle = Callable[[dict[str, Any]], Awaitable[bool]]
"""Stores an update and returns whether it may be acknowledged."""


class Polling:
    """Asks for updates until it is cancelled."""

    def __init__(
        self,
        request: BaseRequest,
        settings: TelegramSettings,
        handle: Handle,
        look_ahead: Callable[[Sequence[dict[str, Any]]], None] = lambda updates: None,
    ) -> None:
        self._request = request
        self._settings = settings
        self._handle = handle
        self._look_ahead = look_ahead
        self._offset: int | None = None
        self._failures = 0
        self._noted = ""
        self._conflicts = 0
        """How often another program has polled, since it was last quiet for long."""
        self._conflict_at = float("-inf")

    async def run(self) -> None:
        """Fetch and store updates for ever; what fails is tried again after a pause."""
        while True:
            try:
                updates = await self._fetch()
            except TelegramError as error:
                await self._pause(error)
                continue
            except (ValueError, RecursionError):
                await self._pause(TelegramError("its response cannot be read"))
                continue
            if await self._store(updates):
                self._note_success()
            else:
                await asyncio.sleep(self._next_pause())

    async def _fetch(self) -> Sequence[object]:
        query: dict[str, Any] = {"timeout": self._settings.poll_s, "limit": AT_ONCE}
        query["allowed_updates"] = json.dumps(UPDATES)
        if self._offset is not None:
            query["offset"] = self._offset
        address = f"{self._settings.base_url}/bot{self._settings.token}/getUpdates?{urlencode(query)}"
        # the library's own call parses all updates at once, so that a malformed one would hide the others
        data = await self._request.retrieve(address, read_timeout=self._settings.poll_s + self._settings.timeout_s)
        found = json.loads(data)
        updates = found.get("result") if isinstance(found, dict) else None
        if not isinstance(updates, list):
            raise ValueError("no list of updates")
        return updates

    async def _store(self, updates: Sequence[object]) -> bool:
        """Store updates, those of a chat one after the other, and return whether all are done."""
        valid = [each for each in updates if isinstance(each, dict) and type(each.get("update_id")) is int]
        if len(valid) < len(updates):
            warn(__name__, "Telegram sent %s updates without a number", len(updates) - len(valid))
        self._look_ahead(valid)
        chats: dict[str, list[dict[str, Any]]] = {}
        for update in valid:
            chats.setdefault(chat_of(update), []).append(update)
        stored = await asyncio.gather(*(self._store_chat(each) for each in chats.values()))
        done: set[int] = set().union(*stored)
        for number in sorted(each["update_id"] for each in valid):
            if number not in done:
                return False
            self._offset = number + 1
        return bool(valid) or not updates

    async def _store_chat(self, updates: Sequence[dict[str, Any]]) -> set[int]:
        """Store the updates of a chat in order, up to the first that cannot be stored now."""
        done: set[int] = set()
        for update in updates:
            if not await self._handle(update):
                break
            done.add(update["update_id"])
        return done

    async def _pause(self, error: TelegramError) -> None:
        """Write a failure to the log once, and wait."""
        reason = text_of(error, self._settings.token)
        if isinstance(error, Conflict):
            await self._give_way(reason)
            return
        kind = type(error).__name__
        # A single failure is normal: servers and networks drop long requests.
        if kind != self._noted and (self._failures or isinstance(error, InvalidToken)):
            self._noted = kind
            warn(__name__, "no updates from Telegram: %s", reason)
        pause_s = self._next_pause()
        await asyncio.sleep(max(pause_s, wait_of(error)) if isinstance(error, RetryAfter) else pause_s)

    async def _give_way(self, reason: str) -> None:
        """Wait longer each time that another program polls: the two would interrupt each other for ever."""
        now = asyncio.get_running_loop().time()
        if now > self._conflict_at + CALM_S:
            self._conflicts = 0
        self._conflict_at = now
        self._conflicts += 1
        if self._conflicts == 1:
            warn(__name__, "another program receives for this bot of Telegram, and only one can: %s", reason)
        pauses = self._settings.retry_s
        await asyncio.sleep(pauses[min(self._conflicts, len(pauses)) - 1])

    def _note_success(self) -> None:
        if self._noted:
            inform(__name__, "updates from Telegram arrive again")
        self._failures, self._noted = 0, ""

    def _next_pause(self) -> float:
        pauses = self._settings.retry_s
        self._failures += 1
        return pauses[min(self._failures, len(pauses)) - 1]
