"""The end of aiohttp servers on loops of tests."""

from __future__ import annotations

import asyncio

from aiohttp import web

_TICKS = 10


async def close_runner(runner: web.AppRunner) -> None:
    """Close a server with all connections, also one that it had only just accepted, so that no socket is left open."""
    server = runner.server
    await runner.cleanup()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others, timeout=1.0)
    if server is not None:
        await server.shutdown(0.1)
    for _ in range(_TICKS):  # transports close their sockets in a later step of the loop
        await asyncio.sleep(0)
