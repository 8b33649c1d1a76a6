"""An adapter that does what a test wants."""

from __future__ import annotations

import asyncio
import itertools

from hermes.gateway import Platform, SessionSource
from hermes.gateway.engine.ports import Admission, Delivery, Inbound, Receipt, Receive

_numbers = itertools.count(1)


class FakeAdapter:
    """A platform in memory."""

    platform = "telegram"
    account = ""
    delivers_itself = False
    can_edit = False

    def __init__(self, *, needs_one_poller: bool = False) -> None:
        self.needs_one_poller = needs_one_poller
        self.receive: Receive | None = None
        self.starts = 0
        self.stops = 0
        self.start_errors: list[Exception] = []
        """Raised by the next starts."""
        self.stop_error: Exception | None = None
        self.hangs_in_stop = False
        self.sent: list[Delivery] = []

    async def start(self, receive: Receive) -> None:
        self.starts += 1
        if self.start_errors:
            raise self.start_errors.pop(0)
        self.receive = receive

    async def stop(self) -> None:
        self.stops += 1
        self.receive = None
        if self.hangs_in_stop:
            await asyncio.Event().wait()
        if self.stop_error is not None:
            raise self.stop_error

    async def send(self, delivery: Delivery) -> Receipt:
        self.sent.append(delivery)
        return Receipt(message_ids=(str(len(self.sent)),))

    async def find(self, delivery: Delivery) -> Receipt | None:
        return None

    async def typing(self, chat_id: str, thread_id: str | None) -> None:
        return None

    async def say(self, text: str, user: str = "7") -> Admission:
        """Have a user send a message in a private chat."""
        assert self.receive is not None, "the adapter is not connected"
        source = SessionSource(Platform.TELEGRAM, user, user_id=user, user_name=f"User {user}")
        return await self.receive(Inbound(text, source, message_id=f"m{next(_numbers)}"))

    @property
    def texts(self) -> list[str]:
        """What was sent."""
        return [each.text for each in self.sent]
