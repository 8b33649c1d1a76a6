"""The adapter of a bot for tests: on a thread of the test with an inbox that records, or in a gateway that dies."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from hermes.gateway.engine.ports import Adapter, Delivery, Inbound
from hermes.gateway.keys import build_session_key
from hermes.gateway.node.runner import GatewayRunner
from hermes.gateway.platform_config import PlatformConfig
from hermes.platforms.base.adapter import Part
from hermes.platforms.base.context import AdapterContext
from hermes.platforms.base.media import MediaFolder
from hermes.platforms.discord.adapter import DiscordAdapter, make
from hermes.platforms.discord.settings import read_settings
from hermes.platforms.testing import RecordingInbox
from tests.gateway.reliability.node import Options, make_node
from tests.platforms.discord.server import TOKEN, DiscordServer
from tests.support.waiting import wait_until

T = TypeVar("T")
PATIENCE_S = 30.0


def context_of(home: Path, base_url: str, gateway_url: str, **extra: Any) -> AdapterContext:
    """What the gateway gives to the adapter."""
    settings = {"base_url": base_url, "gateway_url": gateway_url, **extra}
    token, mode = settings.pop("token", TOKEN), settings.pop("reply_to_mode", "first")
    config = PlatformConfig(enabled=True, token=token, extra=settings, reply_to_mode=mode)
    return AdapterContext(config, home, MediaFolder(home, "discord"))


def make_adapter(home: Path, server: DiscordServer, **extra: Any) -> DiscordAdapter:
    """Make the adapter of the bot on a server of the test."""
    return make(context_of(home, server.base_url, server.gateway_url, **extra))


class Bot:
    """An adapter that runs on a thread, and its inbox."""

    def __init__(self, home: Path, server: DiscordServer, **extra: Any) -> None:
        self.inbox = RecordingInbox()
        self.adapter = make_adapter(home, server, **extra)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine on the loop of the adapter and return its result."""
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result(PATIENCE_S)

    def start(self) -> Bot:
        """Connect."""
        self.call(lambda: self.adapter.start(self.inbox))
        return self

    def stop(self) -> None:
        """Disconnect, and end the thread."""
        if self._loop.is_closed():
            return
        self.call(self.adapter.stop)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    def wait_for(self, *texts: str) -> None:
        """Wait until the inbox has these texts, and no others."""
        wait_until(lambda: len(self.inbox.accepted) >= len(texts), f"{texts} in the inbox", PATIENCE_S)
        assert self.inbox.texts == list(texts)

    def last(self) -> Inbound:
        """The message that was accepted last."""
        return self.inbox.accepted[-1]

    def last_key(self, **options: bool) -> str:
        """The lane of the message that was accepted last."""
        return build_session_key(self.last().source, **options)

    def send(self, text: str, chat_id: str, key: str = "k1", **more: Any) -> list[str]:
        """Send a message and return its ids."""
        return list(self.call(lambda: self.adapter.send(Delivery(key, chat_id, text, **more))).message_ids)


@contextmanager
def running(home: Path, server: DiscordServer, **extra: Any) -> Iterator[Bot]:
    """A bot that is connected until the end of the block."""
    bot = Bot(home, server, **extra)
    try:
        yield bot.start()
    finally:
        bot.stop()


class DyingAdapter(DiscordAdapter):
    """Kills its process when Discord has a reply, before the gateway learns it."""

    async def post(self, part: Part) -> str:
        """Send, and die."""
        await super().post(part)
        os.kill(os.getpid(), signal.SIGKILL)
        return "not reached"


def main(home: str, base_url: str, gateway_url: str) -> None:
    """Run a gateway in this process until it dies."""
    os.environ["HERMES_HOME"] = home

    def adapters(_: GatewayRunner) -> list[Adapter]:
        context = context_of(Path(home), base_url, gateway_url)
        return [DyingAdapter(context, read_settings(context.config))]

    asyncio.run(make_node(Options(Path(home), Path(home).name), adapters).run())


if __name__ == "__main__":
    main(*sys.argv[1:])
