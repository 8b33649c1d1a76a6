"""Messages on their way to the inbox: those of a channel in order, each until it is stored.

Discord does not learn what was received. So a message waits here while the store is not available, and what does not
fit is read from Discord later.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from hermes.errors import HermesError
from hermes.gateway.engine.ports import MaybeSent, NotSent
from hermes.log import warn
from hermes.platforms.base.admissions import NotStored
from hermes.platforms.base.in_order import InOrder
from hermes.platforms.discord.events import snowflake
from hermes.platforms.discord.position import Position

MOST_WAITING = 1000
PAUSES_S = (1.0, 2.0, 5.0, 15.0, 30.0)
_MOST_ATTEMPTS = 5
_CHANNELS_AT_ONCE = 4
_MOST_CHANNELS = 5000

Accept = Callable[[Mapping[str, Any]], Awaitable[None]]
"""Stores the message of an event; raises if that is not possible now."""
Missed = Callable[[int, int], Awaitable[list[Mapping[str, Any]]]]
"""Returns the messages of a channel after an id, oldest first."""


class Arrivals:
    """Passes messages on, and those first that were missed."""

    def __init__(self, position: Position, accept: Accept, missed: Missed) -> None:
        self._position, self._accept, self._missed = position, accept, missed
        self._order = InOrder()
        self._places = asyncio.Semaphore(_CHANNELS_AT_ONCE)
        self._waiting = 0
        self._left: dict[int, int] = {}
        """Channels with messages that did not fit, and the first of these, which is held."""
        self._catching: dict[int, int] = {}
        """Channels whose missed messages are waiting to be read, and after which id."""
        self._is_failing = False

    async def stop(self) -> None:
        """Leave the rest for the next start."""
        await self._order.stop()

    def take(self, channel_id: int, message_id: int, data: Mapping[str, Any]) -> None:
        """Take over a message that has arrived, and return at once."""
        if self._waiting >= MOST_WAITING or channel_id in self._left:
            self._leave(channel_id, message_id)
            return
        self._waiting += 1
        self._position.hold(message_id)

        async def settle() -> None:
            try:
                await self._settle(message_id, data)
            finally:
                self._waiting -= 1
            self._position.release(message_id)
            if self._left and self._waiting <= MOST_WAITING // 2:
                self._fetch_what_was_left()

        self._order.add(str(channel_id), settle)

    def catch_up(self, channel_id: int, after: int) -> None:
        """Read and pass on what was missed in a channel, before what arrives there from now on."""
        if channel_id in self._catching:
            self._catching[channel_id] = min(after, self._catching[channel_id])
            return
        if len(self._catching) >= _MOST_CHANNELS:
            return
        self._catching[channel_id] = after
        held = after + 1
        self._position.hold(held)

        async def read() -> None:
            async with self._places:
                await self._catch_up(channel_id, self._catching.pop(channel_id))
            self._position.release(held)

        self._order.add(str(channel_id), read)

    def _leave(self, channel_id: int, message_id: int) -> None:
        if channel_id in self._left or len(self._left) >= _MOST_CHANNELS:
            return
        if not self._left:
            warn(__name__, "too many messages wait to be stored; the others are read from Discord later")
        self._left[channel_id] = message_id
        self._position.hold(message_id)

    def _fetch_what_was_left(self) -> None:
        left, self._left = self._left, {}
        for channel_id, first in left.items():
            self.catch_up(channel_id, first - 1)
            self._position.release(first)

    async def _catch_up(self, channel_id: int, after: int) -> None:
        messages: list[Mapping[str, Any]] = []

        async def read() -> None:
            nonlocal messages
            messages = await self._missed(channel_id, after)

        await self._until_done(f"channel {channel_id}", read)
        for data in messages:
            message_id = snowflake(data.get("id"))
            if message_id is not None and not self._position.is_done(message_id):
                await self._settle(message_id, data)

    async def _settle(self, message_id: int, data: Mapping[str, Any]) -> None:
        await self._until_done(f"message {message_id}", lambda: self._accept(data))
        self._position.finish(message_id)

    async def _until_done(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do work until it succeeds; what fails for an unknown reason is left out after some attempts."""
        unknown = attempts = 0
        while True:
            wait_s = None
            try:
                await work()
                self._note_success()
                return
            except NotSent as error:
                if error.is_final:
                    warn(__name__, "%s is left out: %s", what, error)
                    return
                wait_s = error.retry_after_s
                self._note_failure(error)
            except (MaybeSent, NotStored, HermesError, OSError) as error:
                self._note_failure(error)
            except Exception:  # noqa: BLE001 - one message must not block those behind it
                unknown += 1
                if unknown >= _MOST_ATTEMPTS:
                    warn(__name__, "%s is left out:\n%s", what, traceback.format_exc(limit=-5))
                    return
            pause_s = PAUSES_S[min(attempts, len(PAUSES_S) - 1)]
            attempts += 1
            await asyncio.sleep(max(pause_s, min(wait_s or 0.0, 300.0)))

    def _note_failure(self, error: Exception) -> None:
        """Write the first of a row of failures to the log."""
        if not self._is_failing:
            warn(__name__, "messages of Discord cannot be stored now: %s", error)
        self._is_failing = True

    def _note_success(self) -> None:
        self._is_failing = False
