"""The last try of a message: after it, a message whose turn has stopped the process again is put aside."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from hermes.gateway.engine.messages import Message
from hermes.state.lanes.queue.message_rows import MAX_ATTEMPTS

LAST_TRY_S = 10.0
"""How long a message that is tried for the last time runs before the next such one starts."""


@asynccontextmanager
async def alone_at_last_try(lock: asyncio.Lock, messages: Sequence[Message]) -> AsyncIterator[None]:
    """Keep other last tries waiting while this one begins: a message that stops the process does so early."""
    if not any(each.attempts >= MAX_ATTEMPTS - 1 for each in messages):
        yield
        return
    await lock.acquire()
    is_held = True

    def release() -> None:
        nonlocal is_held
        if is_held:
            is_held = False
            lock.release()

    timer = asyncio.get_running_loop().call_later(LAST_TRY_S, release)
    try:
        yield
    finally:
        timer.cancel()
        release()
