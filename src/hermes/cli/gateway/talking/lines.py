"""Talking without a terminal: each line of stdin is a message, and its answer goes to stdout."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator

from hermes.cli.display.terminal import printable_lines, terminal_width, write_stderr, write_stdout
from hermes.cli.display.wrapping import wrap_text
from hermes.cli.errors import FAILED
from hermes.cli.gateway.talking.client import TalkClient
from hermes.platforms.local.client import LocalMessage, Said


class _Lines:
    """Writes replies, and notes which messages have got theirs."""

    def __init__(self) -> None:
        self.is_refused = False
        self._waiting: dict[str, asyncio.Event] = {}

    def expect(self, message_id: str) -> asyncio.Event:
        """Return an event that is set when a message has its answer, or was refused."""
        return self._waiting.setdefault(message_id, asyncio.Event())

    def received(self, message: LocalMessage) -> None:
        """Write a reply to stdout and a notice to stderr; previews are not shown."""
        if not message.final:
            return
        if message.type == "notice":
            write_stderr(f"Notice: {message.text}")
            return
        write_stdout(reply_text(message.text))
        for message_id in (message.reply_to, *message.answers):
            if message_id in self._waiting:
                self._waiting[message_id].set()

    def refused(self, message_id: str, said: Said) -> None:
        """Report a message that was not accepted."""
        self.is_refused = True
        write_stderr(f"Error: {said.message or said.code}")
        self.expect(message_id).set()

    def connection_changed(self, *, is_connected: bool) -> None:
        """Report that the gateway is away, or back."""
        write_stderr("The gateway is back." if is_connected else "The gateway is away; waiting for it.")


def reply_text(text: str) -> str:
    """Return a reply with no control characters, with lines that fit if stdout is a terminal."""
    return "\n".join(wrap_text(text, terminal_width())) if sys.stdout.isatty() else printable_lines(text)


async def send_lines(client: TalkClient) -> int:
    """Send the lines of stdin, each after the answer to the one before; return the exit code."""
    lines = _Lines()
    connected = asyncio.Event()
    talking = asyncio.create_task(client.run(lines, connected.set))
    work = asyncio.create_task(_send_all(client, lines, connected))
    await asyncio.wait({talking, work}, return_when=asyncio.FIRST_COMPLETED)
    for task in (talking, work):
        if not task.done():
            task.cancel()
    results = await asyncio.gather(talking, work, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result
    return FAILED if lines.is_refused else 0


async def _send_all(client: TalkClient, lines: _Lines, connected: asyncio.Event) -> None:
    await connected.wait()
    async for line in _stdin_lines():
        if line.strip():
            await lines.expect(client.say(line.rstrip("\r\n"))).wait()


async def _stdin_lines() -> AsyncIterator[str]:
    """Yield the lines of stdin, which a thread reads, so that replies arrive meanwhile."""
    loop, found = asyncio.get_running_loop(), asyncio.Queue[str | None](maxsize=1)

    def read() -> None:
        for line in sys.stdin:
            asyncio.run_coroutine_threadsafe(found.put(line), loop).result()
        asyncio.run_coroutine_threadsafe(found.put(None), loop).result()

    threading.Thread(target=read, name="hermes-stdin", daemon=True).start()
    while (line := await found.get()) is not None:
        yield line
