"""The adapter of a bot for tests, and the harness of the conformance kit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hermes.gateway.platform_config import PlatformConfig
from hermes.platforms.base.context import AdapterContext
from hermes.platforms.base.http import Handler, Routes
from hermes.platforms.base.media import MediaFolder
from hermes.platforms.telegram.bot import TelegramAdapter
from hermes.platforms.telegram.settings import read_settings
from hermes.platforms.testing import Failure
from hermes.platforms.testing.harness import RecordingInbox, eventually
from tests.platforms.telegram.bot_api import BOT, TOKEN, BotApi, rate_limit

POLL_S = 1
RETRY_S = (0.05, 0.05, 0.1)
TIMEOUT_S = 2.0


class RecordedRoutes:
    """Paths of an HTTP server that a test calls itself."""

    def __init__(self) -> None:
        self.handlers: dict[tuple[str, str], Handler] = {}

    def add(self, method: str, path: str, handler: Handler) -> None:
        """Use a handler for a path."""
        self.handlers[method, path] = handler

    def remove(self, method: str, path: str) -> None:
        """Forget a path."""
        self.handlers.pop((method, path), None)


def make_adapter(
    home: Path,
    base_url: str,
    token: str = TOKEN,
    *,
    routes: Routes | None = None,
    max_bytes: int = 1000,
    reply_to_mode: str = "first",
    **extra: Any,
) -> TelegramAdapter:
    """Make the adapter of a bot, which is impatient."""
    config = PlatformConfig(
        enabled=True, token=token, reply_to_mode=reply_to_mode, extra={"base_url": base_url, **extra}
    )
    settings = replace(read_settings(config), poll_s=POLL_S, retry_s=RETRY_S, timeout_s=TIMEOUT_S)
    context = AdapterContext(config, home, MediaFolder(home, "telegram", max_bytes), routes)
    return TelegramAdapter(context, settings)


class TelegramHarness:
    """The Bot API with one private chat, and the adapter."""

    chat_id = "7"

    def __init__(self) -> None:
        self._server = BotApi()
        self._server.start()
        self._home = TemporaryDirectory(prefix="hermes-")
        self.adapter = make_adapter(Path(self._home.name), self._server.base_url)
        self._delivered: set[int] = set()

    async def deliver(self, number: int, text: str, *, is_own: bool = False) -> None:
        """Let a user, or the bot itself, write a message; a number again is the same update again."""
        sender = BOT if is_own else {"id": 7, "is_bot": False, "first_name": "Alice"}
        chat = {"id": 7, "type": "private"}
        message = {"message_id": number, "date": 1_790_000_000, "chat": chat, "from": sender, "text": text}
        if number in self._delivered:  # only a request that waits gets an update that was acknowledged before
            await eventually(
                lambda: self._server.offset > number and self._server.polls_at_once > 0, "the bot waits for updates"
            )
        self._delivered.add(number)
        self._server.deliver({"message": message}, number=number)

    async def deliver_malformed(self) -> None:
        """Let updates of many wrong forms wait."""
        for broken in MALFORMED:
            self._server.deliver(broken)
        self._server._updates = dict(sorted(self._server._updates.items()))

    async def is_acknowledged(self, number: int) -> bool:
        """Whether the bot has asked for later updates."""
        return self._server.offset > number

    async def shown(self) -> Sequence[str]:
        """The texts of the bot."""
        return self._server.texts()

    async def fail_next(self, failure: Failure) -> None:
        """Refuse the next message, or break the connection after it."""
        self._server.fail("sendMessage", rate_limit(3) if failure == "rate_limit" else "lost")

    async def disconnect(self) -> None:
        """Break all connections."""
        await asyncio.to_thread(self._server.disconnect)

    async def close(self) -> None:
        """Stop the server."""
        await asyncio.to_thread(self._server.stop)
        self._home.cleanup()


MALFORMED: tuple[Any, ...] = (
    {"message": []},
    {"message": {"message_id": 1}},
    {"message": {"message_id": 1, "chat": {"id": 7, "type": "private"}, "date": "x", "text": "x"}},
    {"message": {"message_id": 1, "chat": {"id": 7, "type": "private"}, "date": 2**80, "text": "x"}},
    {"unknown": {"a": 1}},
    "no object",
    None,
)


@asynccontextmanager
async def running(adapter: TelegramAdapter) -> AsyncIterator[RecordingInbox]:
    """Run an adapter that stores messages in an inbox of the test."""
    inbox = RecordingInbox()
    await adapter.start(inbox)
    try:
        yield inbox
    finally:
        await adapter.stop()
