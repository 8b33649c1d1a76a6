"""Slack's Events API on the gateway's HTTP server: only what Slack has signed lately is read."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import io
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest

from hermes.platforms.http.server import HttpServer
from hermes.platforms.slack.adapter import SlackAdapter
from hermes.platforms.slack.webhook import MAX_AGE_S, MAX_BYTES, PATH
from hermes.platforms.testing import RecordingInbox
from hermes.platforms.testing.harness import eventually
from tests.platforms.slack.adapters import make_adapter
from tests.platforms.slack.server import ALICE, BOT, DIRECT, TEAM, SlackServer, message_event

SECRET = "signing-secret"
FORM = "application/x-www-form-urlencoded"


class Webhook:
    """Sends requests as Slack does."""

    def __init__(self, session: aiohttp.ClientSession, url: str, inbox: RecordingInbox, adapter: SlackAdapter) -> None:
        self.inbox, self.adapter = inbox, adapter
        self._session, self._url = session, url

    async def send(
        self, body: bytes, *, secret: str = SECRET, age_s: float = 0, mime: str = "application/json", **headers: str
    ) -> tuple[int, str]:
        """Send a signed request and return the status and the body of the response."""
        stamp = str(int(time.time() - age_s))
        digest = hmac.new(secret.encode(), f"v0:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
        signed = {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}", "Content-Type": mime}
        async with self._session.post(self._url, data=io.BytesIO(body), headers={**signed, **headers}) as response:
            return response.status, await response.text()

    async def event(self, text: str, event_id: str = "Ev1", ts: str = "1.1", **options: Any) -> int:
        """Deliver a message and return the status."""
        event = message_event(text, DIRECT, ALICE, ts)
        body = {"type": "event_callback", "team_id": TEAM, "event_id": event_id, "event": event}
        status, _ = await self.send(json.dumps(body).encode(), **options)
        return status


@asynccontextmanager
async def webhook(tmp_path: Path, server: SlackServer) -> AsyncIterator[Webhook]:
    """A gateway's HTTP server with the adapter."""
    http, inbox = HttpServer(), RecordingInbox()
    await http.start()
    adapter = make_adapter(tmp_path, server.base_url, routes=http, signing_secret=SECRET)
    await adapter.start(inbox)
    try:
        async with aiohttp.ClientSession() as session:
            yield Webhook(session, f"{http.url}{PATH}", inbox, adapter)
    finally:
        inbox.release()
        await adapter.stop()
        await http.stop()


def run(tmp_path: Path, server: SlackServer, test: Callable[[Webhook], Awaitable[None]]) -> None:
    async def with_webhook() -> None:
        async with webhook(tmp_path, server) as hook:
            await test(hook)

    asyncio.run(with_webhook())


def test_event_is_acknowledged_when_it_is_stored_and_a_retry_is_one_message(
    tmp_path: Path, server: SlackServer
) -> None:
    async def test(hook: Webhook) -> None:
        hook.inbox.hold()
        first = asyncio.create_task(hook.event("hello"))
        await eventually(lambda: hook.inbox.calls == 1, "the message arrives")
        retry = asyncio.create_task(hook.event("hello", **{"X-Slack-Retry-Num": "1"}))
        await asyncio.sleep(0.1)
        assert not first.done()
        assert not retry.done()
        hook.inbox.release()
        assert (await first, await retry) == (200, 200)
        assert hook.inbox.texts == ["hello"]

    run(tmp_path, server, test)


def test_event_that_is_being_stored_when_the_adapter_stops_is_wanted_again(tmp_path: Path, server: SlackServer) -> None:
    async def test(hook: Webhook) -> None:
        hook.inbox.hold()
        status = asyncio.create_task(hook.event("hello"))
        await eventually(lambda: hook.inbox.calls == 1, "the message arrives")
        await hook.adapter.stop()
        assert await status == 503

    run(tmp_path, server, test)


def test_event_that_was_not_stored_is_wanted_again(tmp_path: Path, server: SlackServer) -> None:
    async def test(hook: Webhook) -> None:
        hook.inbox.is_failing = True
        assert [await hook.event("hello"), await hook.event("hello")] == [503, 503]
        hook.inbox.is_failing = False
        assert await hook.event("hello") == 200
        assert hook.inbox.texts == ["hello"]

    run(tmp_path, server, test)


@pytest.mark.parametrize(
    "options",
    [
        {"secret": "another"},
        {"age_s": MAX_AGE_S + 5},
        {"age_s": -MAX_AGE_S - 5},
        {"X-Slack-Signature": ""},
        {"X-Slack-Signature": "v0="},
        {"X-Slack-Signature": "v0=\xe9"},
        {"X-Slack-Signature": f"v1={'0' * 64}"},
        {"X-Slack-Request-Timestamp": ""},
        {"X-Slack-Request-Timestamp": "now"},
        {"X-Slack-Request-Timestamp": "9" * 400},
        {"X-Slack-Request-Timestamp": "-1"},
        {"X-Slack-Request-Timestamp": "1e9"},
    ],
)
def test_unsigned_old_and_forged_requests_are_refused(
    tmp_path: Path, server: SlackServer, options: dict[str, Any]
) -> None:
    async def test(hook: Webhook) -> None:
        assert await hook.event("hello", **options) == 401
        assert hook.inbox.calls == 0

    run(tmp_path, server, test)


def test_signature_is_of_this_body_and_this_time(tmp_path: Path, server: SlackServer) -> None:
    async def test(hook: Webhook) -> None:
        stamp = str(int(time.time()))
        digest = hmac.new(SECRET.encode(), f"v0:{stamp}:{{}}".encode(), hashlib.sha256).hexdigest()
        signed: dict[str, Any] = {"X-Slack-Signature": f"v0={digest}", "X-Slack-Request-Timestamp": stamp}
        assert (await hook.send(b"{}", **signed))[0] == 200
        assert (await hook.send(b'{"a": 1}', **signed))[0] == 401
        assert (await hook.send(b"{}", **{**signed, "X-Slack-Request-Timestamp": str(int(stamp) - 1)}))[0] == 401

    run(tmp_path, server, test)


def test_address_is_verified_only_for_slack(tmp_path: Path, server: SlackServer) -> None:
    body = b'{"type": "url_verification", "challenge": "a<b>c"}'

    async def test(hook: Webhook) -> None:
        assert await hook.send(body) == (200, "a<b>c")
        assert (await hook.send(body, secret="another"))[0] == 401

    run(tmp_path, server, test)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a": ' * 100_000,
        b"9" * 5000,
        b'{"type": []}',
        b'{"type": "event_callback"}',
        b'{"type": "event_callback", "team_id": "T1", "event_id": "E", "event": {"type": "message", "ts": 5}}',
        b'{"type": "event_callback", "team_id": "T2", "event_id": "E", "event": {"type": "message"}}',
        b'{"command": "/new"}',
        b'{"type": "x", "text": "' + b"x" * MAX_BYTES + b'"}',
    ],
    ids=lambda body: body[:30].decode("latin-1"),
)
def test_signed_nonsense_is_acknowledged_and_left_out(tmp_path: Path, server: SlackServer, body: bytes) -> None:
    async def test(hook: Webhook) -> None:
        assert (await hook.send(body))[0] == 200
        assert (await hook.send(body, mime=FORM))[0] == 200
        assert hook.inbox.calls == 0
        assert await hook.event("good") == 200

    run(tmp_path, server, test)


def test_text_with_characters_that_no_database_stores_arrives(tmp_path: Path, server: SlackServer) -> None:
    async def test(hook: Webhook) -> None:
        assert await hook.event("a\x00b\ud800c &lt;@U1&gt; <!here>") == 200
        assert hook.inbox.texts == ["ab?c <@U1> @here"]

    run(tmp_path, server, test)


def test_slash_command_is_a_message_of_its_own(tmp_path: Path, server: SlackServer) -> None:
    form = {"command": "/hermes", "text": "new", "team_id": TEAM, "channel_id": "C1", "user_id": ALICE}

    async def test(hook: Webhook) -> None:
        for trigger in ("1.2.a", "1.2.a", "1.2.b"):
            body = urlencode({**form, "trigger_id": trigger, "token": "old"}).encode()
            assert await hook.send(body, mime=f"{FORM}; charset=utf-8") == (200, "")
        assert hook.inbox.texts == ["/new", "/new"]
        assert hook.inbox.accepted[0].source.chat_type == "channel"
        assert (await hook.send(b"ssl_check=1&token=x", mime=FORM))[0] == 200

    run(tmp_path, server, test)


def test_requests_are_refused_after_the_adapter_stopped(tmp_path: Path, server: SlackServer) -> None:
    async def test() -> None:
        async with webhook(tmp_path, server) as hook:
            assert await hook.event("hello") == 200
            assert (await hook._session.get(hook._url)).status == 405
        assert server.called("apps.connections.open") == []

    asyncio.run(test())


def test_own_messages_are_left_out(tmp_path: Path, server: SlackServer) -> None:
    async def test(hook: Webhook) -> None:
        event = message_event("mine", DIRECT, BOT, "1.1")
        body = {"type": "event_callback", "team_id": TEAM, "event_id": "Ev1", "event": event}
        assert (await hook.send(json.dumps(body).encode()))[0] == 200
        assert hook.inbox.calls == 0

    run(tmp_path, server, test)
