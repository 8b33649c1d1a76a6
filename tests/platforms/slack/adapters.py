"""The adapter of Slack as tests make it, connected to a server of theirs."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hermes.gateway.platform_config import PlatformConfig
from hermes.platforms.base.context import AdapterContext
from hermes.platforms.base.http import Routes
from hermes.platforms.base.media import MediaFolder
from hermes.platforms.slack.adapter import SlackAdapter
from hermes.platforms.testing import Failure, RecordingInbox
from tests.platforms.slack.server import APP_TOKEN, BOT, DIRECT, TOKEN, SlackServer, message_event

TIMEOUT_S = 5.0


def make_adapter(
    home: Path,
    base_url: str,
    *,
    token: str = TOKEN,
    routes: Routes | None = None,
    timeout_s: float = TIMEOUT_S,
    max_bytes: int = 1000,
    kind: type[SlackAdapter] = SlackAdapter,
    **extra: Any,
) -> SlackAdapter:
    """Make an adapter of socket mode, or with `routes` one of webhooks."""
    settings = {"base_url": base_url, **({"app_token": APP_TOKEN} if routes is None else {}), **extra}
    config = PlatformConfig(enabled=True, token=token, extra=settings)
    context = AdapterContext(config, home, MediaFolder(home, "slack", max_bytes), routes)
    return kind(context, timeout_s=timeout_s, first_retry_s=0.02)


class SlackHarness:
    """What the conformance kit needs of a workspace with socket mode."""

    chat_id = DIRECT

    def __init__(self) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="hermes-")
        self.server = SlackServer()
        self.server.start()
        self.adapter = make_adapter(Path(self._home.name), self.server.base_url)

    async def deliver(self, number: int, text: str, *, is_own: bool = False) -> None:
        ts = f"1700000000.{number:06}"
        bot = {"bot_id": "BBOT"} if is_own else {}
        event = message_event(text, DIRECT, BOT if is_own else "UALICE", ts, **bot)
        self.server.deliver(event, f"Ev{number}")

    async def deliver_malformed(self) -> None:
        for text in ("{", "[]", "null", '{"type": "events_api"}', '{"envelope_id": {}, "type": 5}'):
            self.server.send_raw(text)
        malformed: list[Any] = [None, [], {"type": "message"}, {"type": "message", "subtype": []}]
        for number, event in enumerate(malformed):
            self.server.deliver(event, f"EvBad{number}")

    async def is_acknowledged(self, number: int) -> bool:
        return f"Ev{number}" in self.server.acknowledged

    async def shown(self) -> list[str]:
        return self.server.shown()

    async def fail_next(self, failure: Failure) -> None:
        self.server.fail("chat.postMessage", "pause" if failure == "rate_limit" else "lost")

    async def disconnect(self) -> None:
        self.server.disconnect()

    async def close(self) -> None:
        self.server.stop()
        self._home.cleanup()


@asynccontextmanager
async def connected(
    home: Path, server: SlackServer, **options: Any
) -> AsyncIterator[tuple[SlackAdapter, RecordingInbox]]:
    """Connect an adapter of socket mode to a workspace, and give it with what it has received."""
    adapter, inbox = make_adapter(home, server.base_url, **options), RecordingInbox()
    await adapter.start(inbox)
    try:
        yield adapter, inbox
    finally:
        inbox.release()
        await adapter.stop()
