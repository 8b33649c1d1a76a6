"""Texts that appear while they are written: by editing a message, or as a draft, and complete once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.reliability.world import World, world
from tests.platforms.telegram.bot_api import BotApi, mention
from tests.platforms.telegram.bots import make_adapter
from tests.support.modelserver import Say
from tests.support.waiting import wait_until

PATIENCE_S = 30.0
TEXT = "answer " + " ".join(f"word{number}" for number in range(60))
CURSOR = " ▉"


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with world() as made:
        monkeypatch.setenv("HERMES_HOME", str(made.home()))
        made.model.otherwise = lambda *_: Say(TEXT, between_s=0.01)
        yield made


def gateway(place: World, api: BotApi, **streaming: Any) -> None:
    """Start a gateway that shows answers while they are written."""
    file = place.home() / "config.yaml"
    settings = {"enabled": True, "edit_interval": 0.1, "buffer_threshold": 20, **streaming}
    file.write_text(json.dumps({**json.loads(file.read_text()), "streaming": settings}))
    place.thread(adapters=lambda _: [make_adapter(place.home(), api.base_url)])


def ask(place: World, api: BotApi, text: str = "long please", **more: Any) -> None:
    """Let a user ask, and wait for the whole answer."""
    message = str(api.say(text, **more))
    wait_until(lambda: bool(place.store.inbox.find(message)), "the message to arrive", PATIENCE_S)
    wait_until(lambda: [each["state"] for each in place.replies(message)] == ["sent"], "the answer", PATIENCE_S)
    assert api.texts() == [TEXT]


def test_message_grows_with_a_cursor_and_is_complete_once(place: World, api: BotApi) -> None:
    gateway(place, api)
    ask(place, api)
    edits = [each["text"] for each in api.sent("editMessageText")]
    assert len(api.sent("sendMessage")) == 1
    assert all(each.endswith(CURSOR) for each in edits[:-1])
    assert edits[-1] == TEXT
    assert all(TEXT.startswith(each.removesuffix(CURSOR)) for each in edits)


def test_draft_grows_in_a_private_chat_and_the_answer_is_one_message(place: World, api: BotApi) -> None:
    gateway(place, api, transport="draft")
    ask(place, api)
    assert len(api.drafts) > 1
    assert all(TEXT.startswith(each.removesuffix(CURSOR)) for each in api.drafts)
    assert len({each["draft_id"] for each in api.sent("sendMessageDraft")}) == 1
    assert (len(api.sent("sendMessage")), api.sent("editMessageText")) == (1, [])


@pytest.mark.parametrize("failure", [404, {"description": "Bad Request: no drafts"}, "lost"])
def test_message_is_edited_where_drafts_do_not_work(place: World, api: BotApi, failure: Any) -> None:
    api.fail("sendMessageDraft", failure)
    gateway(place, api, transport="draft")
    ask(place, api)
    assert len(api.sent("sendMessageDraft")) == 1
    assert api.sent("editMessageText") != []


def test_group_has_no_drafts(place: World, api: BotApi) -> None:
    gateway(place, api, transport="draft")
    text = "@test_bot long please"
    ask(place, api, text, chat=-100, kind="supergroup", **mention(text))
    assert api.sent("sendMessageDraft") == []
    assert api.sent("editMessageText") != []


def test_answer_appears_at_once_where_streaming_is_off(place: World, api: BotApi) -> None:
    gateway(place, api, transport="off")
    ask(place, api)
    assert (api.drafts, api.sent("editMessageText")) == ([], [])
