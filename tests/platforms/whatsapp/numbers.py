"""The adapter of a phone number behind the gateway's HTTP server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hermes.gateway.engine.ports import Delivery
from hermes.gateway.platform_config import PlatformConfig
from hermes.platforms.base.context import AdapterContext
from hermes.platforms.base.http import Routes
from hermes.platforms.base.media import MediaFolder
from hermes.platforms.http.server import HttpServer
from hermes.platforms.testing import RecordingInbox
from hermes.platforms.whatsapp.adapter import WhatsAppAdapter
from hermes.platforms.whatsapp.settings import read_settings
from tests.platforms.whatsapp.meta import NUMBER, SECRET, TOKEN, USER, VERIFY, Meta

PATH = "/webhooks/whatsapp"


def make_adapter(
    home: Path,
    base_url: str,
    routes: Routes,
    *,
    token: str = TOKEN,
    number: str = NUMBER,
    confirm_s: float = 0.0,
    doubt_s: float = 0.0,
    **config: Any,
) -> WhatsAppAdapter:
    """Make the adapter; it waits for reports only as long as a test says."""
    extra = {"phone_number_id": number, "app_secret": SECRET, "verify_token": VERIFY, "base_url": base_url}
    settings = PlatformConfig(enabled=True, token=token, extra=extra, **config)
    context = AdapterContext(settings, home, MediaFolder(home, "whatsapp_cloud"), routes)
    return WhatsAppAdapter(context, read_settings(settings), confirm_s=confirm_s, doubt_s=doubt_s)


class Number:
    """An adapter with its platform, its webhook, and an inbox that records messages."""

    def __init__(self, meta: Meta, server: HttpServer, adapter: WhatsAppAdapter) -> None:
        self.meta, self.server, self.adapter = meta, server, adapter
        self.inbox = RecordingInbox()

    async def send(self, text: str, key: str = "k1", **more: Any) -> list[str]:
        """Send a text to the user and return the ids of its messages."""
        return list((await self.adapter.send(Delivery(key, USER, text, **more))).message_ids)


@asynccontextmanager
async def number(home: Path, **options: Any) -> AsyncIterator[Number]:
    """A phone number that is connected."""
    meta, server = Meta(), HttpServer()
    await server.start()
    try:
        meta.webhook = f"{server.url}{PATH}"
        connected = Number(meta, server, make_adapter(home, meta.base_url, server, **options))
        await connected.adapter.start(connected.inbox)
        try:
            yield connected
        finally:
            await connected.adapter.stop()
    finally:
        await server.stop()
        meta.close()
