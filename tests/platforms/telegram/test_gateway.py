"""Telegram from end to end: a server that the test controls, a real gateway, a real store."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import pytest

from hermes.gateway.topics import texts
from hermes.platforms.telegram.bot import TelegramAdapter
from hermes.state.owner import EVERYBODY
from tests.gateway.reliability.nodes import NodeThread
from tests.gateway.reliability.world import World, world
from tests.platforms.telegram.bot_api import BotApi, mention, message_of, rate_limit
from tests.platforms.telegram.bots import make_adapter
from tests.support.images import png
from tests.support.modelserver import Say
from tests.support.waiting import wait_until

PATIENCE_S = 30.0


class Telegram:
    """A world with a bot."""

    def __init__(self, place: World, api: BotApi) -> None:
        self.world = place
        self.api = api
        self.adapter: TelegramAdapter

    def gateway(self, node: str = "north", **extra: Any) -> NodeThread:
        """Start a gateway with the bot."""
        home = self.world.home()

        def adapters(_: object) -> list[TelegramAdapter]:
            self.adapter = make_adapter(home, self.api.base_url, **extra)
            return [self.adapter]

        return self.world.thread(node, adapters=adapters)

    def say(self, word: str, **more: Any) -> str:
        """Let a user ask for an answer; return the message id."""
        return str(self.api.say(f"{word} please", **more))

    def wait_for(self, *wanted: str, chat: int = 7) -> None:
        """Wait until the bot has written these texts into a chat, and no others."""
        wait_until(lambda: len(self.api.texts(chat)) >= len(wanted), f"{wanted} in the chat", PATIENCE_S)
        assert self.api.texts(chat) == list(wanted)

    def wait_until_done(self, *message_ids: str) -> None:
        """Wait until messages have arrived and are answered."""
        for each in message_ids:
            wait_until(lambda each=each: bool(self.world.store.inbox.find(each)), f"{each} to arrive", PATIENCE_S)  # type: ignore[misc]
        self.world.wait_until_done(*message_ids)

    def last_thread(self) -> str | None:
        """The topic of the last message of the bot."""
        number = max(self.api.messages)
        return self.api.messages[number].get("message_thread_id")

    def session(self, message_id: str) -> str:
        """The session in which a message is."""
        lane = self.world.store.lanes.get(self.world.lane_of(message_id))
        assert lane is not None
        return lane["session_id"]

    def bound(self, thread: int) -> str | None:
        """The session that a topic continues."""
        row = self.world.store.get_telegram_topic_binding(chat_id=7, thread_id=thread)
        return None if row is None else row["session_id"]


@pytest.fixture
def telegram(monkeypatch: pytest.MonkeyPatch, api: BotApi) -> Iterator[Telegram]:
    with world() as place:
        monkeypatch.setenv("HERMES_HOME", str(place.home()))
        yield Telegram(place, api)


def answer(word: str) -> str:
    return f"answer to {word}"


def test_album_is_one_turn_whose_images_the_model_sees(telegram: Telegram) -> None:
    settings = telegram.world.home() / "config.yaml"
    content = json.loads(settings.read_text())
    content["model"]["sees_images"] = {"test-model": True}
    settings.write_text(json.dumps(content))
    telegram.world.model.otherwise = lambda *_: Say(answer("album"))
    photos = [png(width, 1) for width in range(1, 5)]
    for number, each in enumerate(photos):
        photo = [telegram.api.add_file(each)]
        telegram.api.say("", photo=photo, media_group_id="g", **({} if number else {"caption": "album please"}))
    telegram.gateway()
    telegram.wait_for(answer("album"))
    (turn,) = telegram.world.turns("1001")
    assert turn["state"] == "finished"
    (request,) = telegram.world.model.server.requests
    urls = [part["image_url"]["url"] for part in request.messages[-1]["content"] if part["type"] == "image_url"]
    assert [b64decode(url.partition(",")[2]) for url in urls] == photos
    assert str(telegram.world.directory) not in str(request.messages)


def test_redelivered_update_is_answered_once(telegram: Telegram) -> None:
    update = {"message": message_of(5, "once please")}
    telegram.api.deliver(update, number=3)
    node = telegram.gateway()
    telegram.wait_for(answer("once"))
    node.stop()
    telegram.api.offset = 0
    telegram.api.deliver(update, number=3)
    telegram.gateway()
    telegram.say("twice")
    telegram.wait_for(answer("once"), answer("twice"))


def test_message_of_another_bot_with_the_numbers_of_the_first_one_is_answered(telegram: Telegram) -> None:
    """A bot that replaces another one begins with the same numbers in the same private chat."""
    telegram.api.deliver({"message": message_of(5, "first please")}, number=3)
    node = telegram.gateway()
    telegram.wait_for(answer("first"))
    node.stop()
    telegram.api.offset, telegram.api.bot["id"] = 0, 999
    for _ in range(2):
        telegram.api.deliver({"message": message_of(5, "second please")}, number=3)
    telegram.gateway()
    telegram.wait_for(answer("first"), answer("second"))
    telegram.say("last")
    telegram.wait_for(answer("first"), answer("second"), answer("last"))


def test_answer_waits_as_long_as_telegram_wants(telegram: Telegram) -> None:
    telegram.api.fail("sendMessage", rate_limit(1))
    telegram.gateway()
    message = telegram.say("slow")
    telegram.wait_for(answer("slow"))
    assert telegram.world.replies(message)[0]["attempts"] == 2


def test_answer_whose_result_was_lost_is_not_repeated(telegram: Telegram) -> None:
    telegram.api.fail("sendMessage", "lost")
    telegram.gateway()
    message = telegram.say("lost")
    telegram.wait_until_done(message)
    wait_until(
        lambda: [row["state"] for row in telegram.world.replies(message)] == ["unknown"], "the doubt", PATIENCE_S
    )
    assert telegram.api.texts(7) == [answer("lost")]


def test_gateway_connects_again_after_the_server_was_away(telegram: Telegram) -> None:
    telegram.gateway()
    telegram.say("one")
    telegram.wait_for(answer("one"))
    telegram.api.fail("getUpdates", *["close"] * 5)
    telegram.api.disconnect()
    telegram.say("two")
    telegram.wait_for(answer("one"), answer("two"))


def test_one_of_two_gateways_polls(telegram: Telegram, caplog: pytest.LogCaptureFixture) -> None:
    first = telegram.gateway("north")
    telegram.say("one")
    telegram.wait_for(answer("one"))
    second = telegram.gateway("south")
    states = second.runner.connectors.states
    wait_until(lambda: states.get("telegram") == "polled by north", "the second one to wait", PATIENCE_S)
    telegram.say("two")
    telegram.wait_for(answer("one"), answer("two"))
    assert telegram.api.most_polls_at_once == 1
    assert caplog.text.count("is polled by north; this node waits") == 1
    first.stop()
    telegram.say("three")
    telegram.wait_for(answer("one"), answer("two"), answer("three"))
    assert "another program receives" not in caplog.text


def test_users_of_a_group_have_sessions_of_their_own_and_topics_are_shared(telegram: Telegram) -> None:
    telegram.gateway()
    group: dict[str, Any] = {"chat": -100, "kind": "supergroup"}
    ids = []
    for user in (7, 8):
        text = f"@test_bot user{user} please"
        ids.append(str(telegram.api.say(text, user=user, **mention(text), **group)))
    telegram.wait_until_done(*ids)
    assert telegram.session(ids[0]) != telegram.session(ids[1])
    forum: dict[str, Any] = {**group, "is_forum": True, "is_topic_message": True, "message_thread_id": 4}
    shared = []
    for user in (7, 8):
        text = f"@test_bot forum{user} please"
        shared.append(str(telegram.api.say(text, user=user, **mention(text), **forum)))
    telegram.wait_until_done(*shared)
    assert telegram.session(shared[0]) == telegram.session(shared[1])
    assert telegram.last_thread() == "4"


def test_strangers_get_a_code_and_nothing_of_theirs_is_kept(telegram: Telegram) -> None:
    settings = telegram.world.home() / "config.yaml"
    platforms = {"telegram": {"enabled": True, "allowed_users": ["8"]}}
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "platforms": platforms}))
    telegram.gateway()
    telegram.api.say("", photo=[telegram.api.add_file(b"x")], caption="let me in please")
    wait_until(lambda: len(telegram.api.texts(7)) == 1, "the code", PATIENCE_S)
    assert "pairing code" in telegram.api.texts(7)[0]
    assert list((telegram.world.home() / "media" / "telegram").glob("*")) == []
    assert telegram.world.store.inbox.find("1001") == []


class TestTopics:
    @pytest.fixture(autouse=True)
    def _on(self, telegram: Telegram) -> None:
        telegram.gateway()
        telegram.api.say("/topic")
        telegram.wait_for(texts.ENABLED)
        telegram.api.messages.clear()

    def inside(self, telegram: Telegram, word: str, thread: int, **more: Any) -> str:
        return telegram.say(word, is_topic_message=True, message_thread_id=thread, **more)

    def test_each_topic_is_a_conversation_and_is_answered_in_it(self, telegram: Telegram) -> None:
        first = self.inside(telegram, "one", 11)
        telegram.wait_for(answer("one"))
        assert telegram.last_thread() == "11"
        second = self.inside(telegram, "two", 12)
        telegram.wait_for(answer("one"), answer("two"))
        assert telegram.last_thread() == "12"
        assert telegram.session(first) != telegram.session(second)
        assert (telegram.bound(11), telegram.bound(12)) == (telegram.session(first), telegram.session(second))

    def test_message_outside_of_topics_is_not_answered(self, telegram: Telegram) -> None:
        outside = telegram.say("outside")
        telegram.wait_for(texts.LOBBY)
        assert telegram.world.store.inbox.find(outside) == []

    def test_new_session_outside_of_topics_is_refused_but_status_is_not(self, telegram: Telegram) -> None:
        telegram.api.say("/status")
        wait_until(lambda: len(telegram.api.texts(7)) == 1, "the status", PATIENCE_S)
        telegram.api.say("/new")
        wait_until(lambda: len(telegram.api.texts(7)) == 2, "the refusal", PATIENCE_S)
        assert telegram.api.texts(7)[1] == texts.LOBBY

    def test_reply_without_its_topic_belongs_to_the_last_one(self, telegram: Telegram) -> None:
        first = self.inside(telegram, "one", 11)
        telegram.wait_for(answer("one"))
        reply = telegram.say("again", reply_to_message=message_of(1, "answer to one"))
        telegram.wait_for(answer("one"), answer("again"))
        assert telegram.world.lane_of(reply) == telegram.world.lane_of(first)
        assert telegram.last_thread() == "11"

    def test_new_session_of_a_topic_is_linked_to_it(self, telegram: Telegram) -> None:
        first = self.inside(telegram, "one", 11)
        telegram.wait_for(answer("one"))
        before = telegram.session(first)
        telegram.api.say("/new", is_topic_message=True, message_thread_id=11)
        wait_until(lambda: len(telegram.api.texts(7)) == 2, "the new session", PATIENCE_S)
        second = self.inside(telegram, "two", 11)
        telegram.wait_until_done(second)
        assert telegram.bound(11) == telegram.session(second) != before

    def test_topic_whose_lane_was_removed_continues_its_session(self, telegram: Telegram) -> None:
        first = self.inside(telegram, "one", 11)
        telegram.wait_for(answer("one"))
        before = telegram.session(first)
        store = telegram.world.store
        wait_until(lambda: store.lanes.prune(2e10) == 1, "the lane to rest", PATIENCE_S)
        second = self.inside(telegram, "two", 11)
        telegram.wait_for(answer("one"), answer("two"))
        assert telegram.session(second) == before
        rows = store.for_owner(EVERYBODY).get_messages(before)
        assert [row["content"] for row in rows if row["role"] == "assistant"] == [answer("one"), answer("two")]

    def test_session_that_another_program_links_is_continued(self, telegram: Telegram) -> None:
        earlier, first = self.inside(telegram, "earlier", 12), self.inside(telegram, "one", 11)
        telegram.wait_until_done(earlier, first)
        wanted, store = telegram.session(earlier), telegram.world.store
        store.disable_telegram_topic_mode(chat_id=7)
        store.enable_telegram_topic_mode(chat_id=7, user_id=7)
        store.bind_telegram_topic(
            chat_id=7, thread_id=11, user_id=7, session_key=telegram.world.lane_of(first), session_id=wanted
        )
        second = self.inside(telegram, "two", 11)
        telegram.wait_until_done(second)
        assert telegram.session(second) == wanted == telegram.bound(11)

    def test_chat_is_one_conversation_after_topics_are_off(self, telegram: Telegram) -> None:
        telegram.api.say("/topic off")
        telegram.wait_for(texts.DISABLED)
        telegram.say("outside")
        telegram.wait_for(texts.DISABLED, answer("outside"))
