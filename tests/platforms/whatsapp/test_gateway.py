"""WhatsApp from end to end: a real gateway with its HTTP server, a real store, and an independent server of Meta's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hermes.errors import StoreUnavailable
from hermes.platforms.http.server import HttpServer
from hermes.platforms.whatsapp.adapter import WhatsAppAdapter
from hermes.platforms.whatsapp.graph import WINDOW_REASON
from tests.gateway.reliability.nodes import NodeThread
from tests.gateway.reliability.world import World, world
from tests.platforms.whatsapp.meta import TOKEN, USER, Meta, message, notification
from tests.platforms.whatsapp.numbers import PATH, make_adapter
from tests.support.crabline import Crabline, crabline
from tests.support.fetched import PATIENCE_S
from tests.support.waiting import wait_until

CRABLINE_NUMBER = "100000000000000"


class Phone:
    """A gateway whose webhook `meta` calls; the Graph API is that of `base_url`."""

    def __init__(self, place: World, meta: Meta, base_url: str, **options: Any) -> None:
        self.world, self.meta, self._base_url, self._options = place, meta, base_url, options
        self._server = HttpServer()
        self.adapter: WhatsAppAdapter
        self.node: NodeThread

    def start(self) -> None:
        """Start the gateway and its HTTP server."""
        home = self.world.home()

        def adapters(_: object) -> list[WhatsAppAdapter]:
            self._server = HttpServer()
            self.adapter = make_adapter(home, self._base_url, self._server, **self._options)
            return [self.adapter]

        self.node = self.world.thread(adapters=adapters)
        self.node.call(self._server.start)
        self.meta.webhook = f"{self._server.url}{PATH}"
        wait_until(lambda: self.node.runner.connectors.states.get("whatsapp_cloud") == "connected", "the webhook")

    def stop(self) -> None:
        """Stop both."""
        self.node.call(self._server.stop)
        self.node.stop()


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with world() as made:
        monkeypatch.setenv("HERMES_HOME", str(made.home()))
        yield made


@pytest.fixture
def meta() -> Iterator[Meta]:
    made = Meta()
    yield made
    made.close()


def sent_by(server: Crabline) -> list[dict[str, Any]]:
    """The texts that crabline has accepted, with their fields."""
    return [each["body"] for each in server.calls("messages") if each["accepted"] and "text" in each["body"]]


@pytest.mark.timeout(PATIENCE_S)
def test_a_conversation_continues_after_a_restart_in_its_middle(place: World, meta: Meta) -> None:
    with crabline("whatsapp", accessToken=TOKEN) as server:
        phone = Phone(place, meta, server.api_root, number=CRABLINE_NUMBER)
        phone.start()

        def say(text: str, message_id: str) -> int:
            user = f"{USER}@s.whatsapp.net"
            body = server.say({"chatJid": user, "senderJid": user, "text": text, "messageId": message_id})
            return meta.post(json.dumps(body["webhook"]).encode())

        assert say("one please", "wamid.1") == 200
        wait_until(lambda: len(sent_by(server)) == 1, "the first answer")
        phone.stop()
        assert meta.post(b"{}") == 0
        phone.start()
        assert say("two please", "wamid.2") == 200
        wait_until(lambda: len(sent_by(server)) == 2, "the second answer")
        assert meta.post(json.dumps(notification({"messages": [message("one please", "wamid.1")]})).encode()) == 200
        assert [each["text"]["body"] for each in sent_by(server)] == ["answer to one", "answer to two"]
        assert [each["context"]["message_id"] for each in sent_by(server)] == ["wamid.1", "wamid.2"]
        assert {each["to"] for each in sent_by(server)} == {USER}
    transcript = place.transcript("wamid.2")
    assert [text for role, text in transcript if role == "assistant"] == ["answer to one", "answer to two"]
    assert place.lane_of("wamid.1") == place.lane_of("wamid.2")
    phone.stop()


def test_an_answer_after_24_hours_waits_for_the_operator_and_the_user_learns_of_it(place: World, meta: Meta) -> None:
    phone = Phone(place, meta, meta.base_url, confirm_s=20.0)
    phone.start()
    meta.reports = {"status": "failed", "errors": [{"code": 131047, "title": "Re-engagement message"}]}
    assert meta.say("one please") == 200
    wait_until(lambda: bool(place.store.outbox.dead()), "the answer to be given up")
    (row,) = place.store.outbox.dead()
    assert (row["reason"], row["receipt"]) == (WINDOW_REASON, None)
    assert (row["payload"] or {})["text"] == "answer to one"
    meta.reports = {"status": "sent"}
    assert meta.say("two please", "wamid.2") == 200
    wait_until(lambda: "answer to two" in meta.texts, "the second answer")
    wait_until(lambda: any(WINDOW_REASON in each for each in meta.texts), "the notice about the first one")
    phone.stop()


def test_a_message_is_not_acknowledged_while_the_store_is_away(place: World, meta: Meta) -> None:
    phone = Phone(place, meta, meta.base_url)
    phone.start()
    receive = phone.adapter.receive

    async def unavailable(_: object) -> Any:
        raise StoreUnavailable("the database is away")

    phone.adapter.receive = unavailable  # type: ignore[assignment]
    assert meta.say("one please") == 503
    phone.adapter.receive = receive
    assert meta.say("one please") == 200
    wait_until(lambda: meta.texts == ["answer to one"], "the answer")
    phone.stop()
