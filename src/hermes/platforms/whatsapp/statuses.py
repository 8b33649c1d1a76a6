"""What the platform reports about messages that it has accepted: whether they were sent, and why one was not."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from dataclasses import dataclass

MOST_REMEMBERED = 5000
MOST_UNHEARD = 3
"""After so many messages without a report, reports are not waited for until one arrives: another node gets them."""
_MAX_MARK = 480


@dataclass(frozen=True, slots=True)
class Status:
    """A report about a message; `mark` is what was sent along with it."""

    message_id: str
    mark: str = ""
    is_failure: bool = False
    code: int | None = None
    reason: str = ""


def new_mark(key: str) -> str:
    """Return what is sent along with one attempt at a message; the platform puts it into its reports."""
    return f"{secrets.token_hex(4)}:{key}" if len(key) <= _MAX_MARK else ""


class Statuses:
    """The last reports by message, by mark, and by the key in the mark."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Status] = OrderedDict()
        self._arrived = asyncio.Condition()
        self._unheard = 0

    async def note(self, status: Status) -> None:
        """Remember a report and wake those who wait for it."""
        names = [f"id {status.message_id}"]
        if status.mark:
            names.append(f"mark {status.mark}")
            if not status.is_failure:  # an attempt that failed says nothing about a later one
                names.append(f"key {status.mark.partition(':')[2]}")
        for name in names:
            self._known[name] = status
            self._known.move_to_end(name)
        while len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)
        self._unheard = 0
        async with self._arrived:
            self._arrived.notify_all()

    async def of_message(self, message_id: str, wait_s: float) -> Status | None:
        """Return the report about a message; without waiting, if no reports come here."""
        found = await self._wait(f"id {message_id}", 0.0 if self._unheard >= MOST_UNHEARD else wait_s)
        if found is None:
            self._unheard += 1
        return found

    async def of_attempt(self, mark: str, wait_s: float) -> Status | None:
        """Return the report about one attempt at a message."""
        return await self._wait(f"mark {mark}", wait_s) if mark else None

    async def of_key(self, key: str, wait_s: float) -> Status | None:
        """Return the report that an attempt at a message was successful."""
        return await self._wait(f"key {key}", wait_s)

    async def _wait(self, name: str, wait_s: float) -> Status | None:
        if name not in self._known and wait_s > 0:
            try:
                async with asyncio.timeout(wait_s), self._arrived:
                    await self._arrived.wait_for(lambda: name in self._known)
            except TimeoutError:
                return None
        return self._known.get(name)
