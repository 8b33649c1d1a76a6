"""What the checks need: a platform that a test controls, and an inbox that records what an adapter passes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol

from hermes.gateway.engine.ports import Admission, Inbound
from hermes.platforms.base.adapter import BaseAdapter

Failure = Literal["rate_limit", "lost"]
"""What the platform does with the next message: refuse it for now, or store it and break the connection."""
LIMIT_S = 20.0
QUIET_S = 0.3
"""How long the checks watch for something that must not happen."""


class NotConforming(AssertionError):
    """The adapter does not do what the gateway relies on."""


class Harness(Protocol):
    """One platform with one chat, and the adapter for it. Each check gets a new one."""

    @property
    def adapter(self) -> BaseAdapter:
        """The adapter, not started yet."""

    @property
    def chat_id(self) -> str:
        """The chat in which users write, as `Delivery.chat_id` names it."""

    async def deliver(self, number: int, text: str, *, is_own: bool = False) -> None:
        """Let the platform deliver message `number`; the same number again is a redelivery.

        With `is_own`, the bot itself has written it.
        """

    async def deliver_malformed(self) -> None:
        """Let the platform deliver an update that cannot be understood."""

    async def is_acknowledged(self, number: int) -> bool:
        """Return whether the adapter has told the platform that it has message `number`."""

    async def shown(self) -> Sequence[str]:
        """Return the texts of the bot that the platform shows now, the oldest first."""

    async def fail_next(self, failure: Failure) -> None:
        """Let the next message of the bot fail."""

    async def disconnect(self) -> None:
        """Break all connections; the platform accepts new ones."""

    async def close(self) -> None:
        """Stop the platform."""


class RecordingInbox:
    """Takes messages as the gateway does: one that was accepted before is known."""

    def __init__(self) -> None:
        self.accepted: list[Inbound] = []
        self.calls = 0
        self.is_failing = False
        self._may_commit = asyncio.Event()
        self._may_commit.set()
        self._known: set[tuple[str, str | None]] = set()

    def hold(self) -> None:
        """Let messages wait as if the database were slow."""
        self._may_commit.clear()

    def release(self) -> None:
        """Store messages again."""
        self._may_commit.set()

    async def __call__(self, inbound: Inbound) -> Admission:
        """Store a message."""
        self.calls += 1
        if self.is_failing and self.calls == 1:
            raise ConnectionError("the store is down")
        if self.is_failing:
            return Admission("refused", code="store_unavailable", message="please send it again")
        await self._may_commit.wait()
        marks = {("message", inbound.message_id), ("delivery", inbound.delivery_id)}
        marks = {mark for mark in marks if mark[1] is not None}
        if marks & self._known:
            return Admission("known")
        self._known |= marks
        self.accepted.append(inbound)
        return Admission("accepted", uid=f"u{len(self.accepted)}")

    @property
    def texts(self) -> list[str]:
        """The texts of the accepted messages."""
        return [each.text for each in self.accepted]


async def eventually(condition: Callable[[], bool] | Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait until a condition is true; raise `NotConforming` after a while."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + LIMIT_S
    while True:
        result = condition()
        if result is True or (not isinstance(result, bool) and await result):
            return
        if loop.time() > deadline:
            raise NotConforming(f"{what}: this did not happen within {LIMIT_S:g} s")
        await asyncio.sleep(0.01)


def require(is_met: bool, what: str) -> None:
    """Raise `NotConforming` if a requirement is not met."""
    if not is_met:
        raise NotConforming(what)
