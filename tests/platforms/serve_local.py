"""Serve the local socket of a home in a process of its own; every message gets a reply from the outbox."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.platforms.local_gateway import local_gateway


async def serve(home: Path) -> None:
    """Serve until the process is killed."""
    async with local_gateway(home, node="child") as gateway:
        while True:
            for inbound in gateway.seen:
                await gateway.reply(f"reply:{inbound.message_id}", inbound.source.chat_id, reply_to=inbound.message_id)
            gateway.seen.clear()
            await asyncio.sleep(0.01)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
