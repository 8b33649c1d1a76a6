"""Updates by the webhook: only Telegram may call it, and what is not stored is sent again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import ConfigError
from hermes.gateway.engine.ports import Admission, Inbound
from hermes.gateway.platform_config import PlatformConfig
from hermes.platforms.base.context import AdapterContext
from hermes.platforms.base.http import HttpRequest
from hermes.platforms.base.media import MediaFolder
from hermes.platforms.telegram.adapter import make
from hermes.platforms.telegram.settings import WEBHOOK_PATH, read_settings
from hermes.platforms.telegram.webhook import SECRET_HEADER
from tests.platforms.telegram.bot_api import TOKEN, BotApi, message_of
from tests.platforms.telegram.bots import RecordedRoutes, make_adapter, running

URL = "https://bots.example.org/webhooks/telegram"
SECRET = "the-secret"


class Hook:
    """The webhook of an adapter, as Telegram calls it."""

    def __init__(self, api: BotApi, home: Path) -> None:
        self.routes = RecordedRoutes()
        self.adapter = make_adapter(
            home, api.base_url, routes=self.routes, webhook_url=URL, webhook_secret=SECRET, require_mention=False
        )

    async def post(self, body: Any, secret: str = SECRET) -> int:
        """Call it, and return the status."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = HttpRequest("POST", WEBHOOK_PATH, headers={SECRET_HEADER: secret}, body=content)
        return (await self.routes.handlers["POST", WEBHOOK_PATH](request)).status


@pytest.fixture
def hook(api: BotApi, tmp_path: Path) -> Hook:
    return Hook(api, tmp_path)


def update(number: int, text: str = "hello", **more: Any) -> dict[str, Any]:
    return {"update_id": number, "message": message_of(number, text, **more)}


def test_webhook_is_registered_with_its_secret_and_stays_when_the_gateway_stops(api: BotApi, hook: Hook) -> None:
    async def run() -> None:
        async with running(hook.adapter):
            assert ("POST", WEBHOOK_PATH) in hook.routes.handlers

    asyncio.run(run())
    assert (api.webhook["url"], api.webhook["secret_token"]) == (URL, SECRET)
    assert api.webhook.get("drop_pending_updates", "false").lower() == "false"
    assert api.sent("deleteWebhook") == api.sent("getUpdates") == []
    assert hook.routes.handlers == {}
    assert not hook.adapter.needs_one_poller


@pytest.mark.parametrize("secret", ["", "the-secre", "the-secret2", "THE-SECRET", "ü", "\ud800"])
def test_call_without_the_secret_is_refused(hook: Hook, secret: str) -> None:
    async def run() -> None:
        async with running(hook.adapter) as inbox:
            assert await hook.post(update(1), secret) == 403
            assert inbox.accepted == []

    asyncio.run(run())


def test_update_is_acknowledged_after_it_was_stored(hook: Hook) -> None:
    async def run() -> None:
        async with running(hook.adapter) as inbox:
            inbox.hold()
            calling = asyncio.create_task(hook.post(update(1)))
            await asyncio.sleep(0.05)
            assert not calling.done()
            inbox.release()
            assert await calling == 200
            assert await hook.post(update(1)) == 200
            assert inbox.texts == ["hello"]

    asyncio.run(run())


def test_update_that_is_not_stored_is_not_acknowledged(hook: Hook) -> None:
    async def run() -> None:
        async with running(hook.adapter) as inbox:
            inbox.is_failing = True
            assert [await hook.post(update(1)) for _ in range(2)] == [503, 503]
            inbox.is_failing = False
            assert await hook.post(update(1)) == 200

    asyncio.run(run())


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"5", b'{"a": 1}', b'{"update_id": "1"}', b"\xff", b"[" * 100_000])
def test_call_that_cannot_be_read_is_acknowledged(hook: Hook, body: bytes) -> None:
    async def run() -> None:
        async with running(hook.adapter) as inbox:
            assert await hook.post(body) == 200
            assert inbox.accepted == []

    asyncio.run(run())


def test_messages_of_a_chat_are_stored_in_their_order_although_calls_come_at_once(api: BotApi, hook: Hook) -> None:
    """The first message has a file, which takes longer."""
    photo = [api.add_file(b"content")]

    async def run() -> None:
        async with running(hook.adapter) as inbox:
            calls = [hook.post(update(1, "", photo=photo, caption="one")), hook.post(update(2, "two"))]
            assert await asyncio.gather(*calls) == [200, 200]
            assert inbox.texts == ["one", "two"]

    asyncio.run(run())


def test_call_that_is_open_when_the_gateway_stops_is_not_acknowledged(hook: Hook) -> None:
    async def run() -> list[int]:
        waits = asyncio.Event()

        async def receive(inbound: Inbound) -> Admission:
            waits.set()
            await asyncio.sleep(3600)
            return Admission("accepted")

        await hook.adapter.start(receive)
        calling = asyncio.create_task(hook.post(update(1)))
        await waits.wait()
        await hook.adapter.stop()
        return [await calling]

    assert asyncio.run(run()) == [503]


def test_webhook_without_a_server_is_refused(tmp_path: Path) -> None:
    config = PlatformConfig(enabled=True, token=TOKEN, extra={"webhook_url": URL})
    with pytest.raises(ConfigError, match="HTTP server is off"):
        make(AdapterContext(config, tmp_path, MediaFolder(tmp_path, "telegram")))


class TestSettings:
    @pytest.mark.parametrize(
        ("token", "extra", "problem"),
        [
            (None, {}, "no token"),
            ("not a token", {}, "wrong form"),
            (TOKEN, {"webhook_url": "example.org"}, "webhook_url"),
            (TOKEN, {"webhook_secret": "a b"}, "webhook_secret"),
            (TOKEN, {"free_response_chats": 5}, "free_response_chats"),
            (TOKEN, {"base_url": "ftp://x"}, "base_url"),
        ],
    )
    def test_wrong_setting_is_refused_without_the_token(
        self, token: str | None, extra: dict[str, Any], problem: str
    ) -> None:
        with pytest.raises(ConfigError, match=problem) as caught:
            read_settings(PlatformConfig(enabled=True, token=token, extra=extra))
        assert TOKEN not in str(caught.value)

    def test_settings_show_no_secret(self) -> None:
        settings = read_settings(PlatformConfig(enabled=True, token=TOKEN, extra={"webhook_secret": SECRET}))
        assert TOKEN not in repr(settings)
        assert SECRET not in repr(settings)

    def test_secret_follows_from_the_token(self) -> None:
        first, again, other = (
            read_settings(PlatformConfig(enabled=True, token=token)).webhook_secret for token in (TOKEN, TOKEN, "1:x")
        )
        assert first == again != other
        assert TOKEN.partition(":")[2] not in first
