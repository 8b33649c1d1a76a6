"""/background and /restart, errors of commands, and the runner for the engine."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from hermes.config import Config
from hermes.errors import Conflict, InvalidValue, StoreUnavailable
from hermes.gateway.commands import CommandRunner, OtherMessage, Parsed, run_command
from hermes.gateway.commands.control import MOST_TASKS
from hermes.gateway.engine.messages import decode_message
from tests.gateway.commands.chats import ALICE, ALICE_IN_GROUP, BOB, Chats, MakeChats

CONFIG = Config()
ADMIN = replace(CONFIG, gateway=replace(CONFIG.gateway, admins=("telegram:1",), approvers=("telegram:2",)))


def test_a_background_task_is_a_message_in_a_lane_of_its_own(chats: Chats) -> None:
    session_id = chats.talk(ALICE, "hello")
    result = chats.send(ALICE, "/bg count the stars")
    (other,) = result.other
    assert result.text == "The task runs in the background. The result is sent to this chat."
    prefix, _, suffix = other.session_key.rpartition(":")
    assert prefix == f"{chats.key(ALICE)}:background"
    assert len(suffix) == 8
    assert int(suffix, 16) >= 0
    assert other.kind == "normal"
    assert other.payload == {
        "text": "count the stars",
        "source": ALICE.to_dict(),
        "type": "text",
        "background": True,
    }
    assert chats.session(ALICE) == session_id
    assert chats.provider.inbox.depth(other.session_key) == 0


def test_a_background_task_that_runs_again_after_a_crash_is_accepted_once(chats: Chats) -> None:
    row = chats.accept(ALICE, "/background x", "command")
    first = chats.run(chats.obey(ALICE, "/background x", row, crashes=True))
    again = chats.run(chats.obey(ALICE, "/background x", row))
    assert first == again
    assert [accept(chats, each) for each in (*first.other, *again.other)] == ["accepted", "known"]
    assert chats.send(ALICE, "/background x").other[0].session_key != first.other[0].session_key


def test_a_chat_has_only_so_many_background_tasks_at_a_time(chats: Chats) -> None:
    for number in range(MOST_TASKS):
        (other,) = chats.send(ALICE, f"/background task {number}").other
        assert accept(chats, other) == "accepted"
    refused = chats.send(ALICE, "/background one more")
    assert (refused.other, refused.text) == (
        (),
        "10 background tasks of this chat are not done yet. Send this again when one of them is.",
    )
    assert chats.send(BOB, "/background of another chat").other != ()


def test_a_background_task_at_the_limit_that_runs_again_after_a_crash_is_the_same(chats: Chats) -> None:
    row = chats.accept(ALICE, "/background x", "command")
    first = chats.run(chats.obey(ALICE, "/background x", row, crashes=True))
    assert accept(chats, first.other[0]) == "accepted"
    for number in range(MOST_TASKS - 1):
        accept(chats, chats.send(ALICE, f"/background task {number}").other[0])
    assert chats.run(chats.obey(ALICE, "/background x", row)) == first


def accept(chats: Chats, other: OtherMessage) -> str:
    accepted = chats.provider.inbox.accept(
        other.session_key, dict(other.payload), platform=other.platform, delivery_id=other.delivery_id, kind=other.kind
    )
    assert decode_message(accepted.message).is_background
    return accepted.state


def test_background_without_a_task_shows_its_use(chats: Chats) -> None:
    result = chats.send(ALICE, "/background")
    assert result.text.startswith("Send /background with a task.")
    assert result.other == ()


def test_an_administrator_restarts_the_gateway(make_chats: MakeChats) -> None:
    chats = make_chats(ADMIN)
    assert chats.reply(ALICE, "/restart").startswith("The gateway restarts as soon as")
    assert chats.reply(ALICE_IN_GROUP, "/restart").startswith("The gateway restarts as soon as")
    assert chats.restarts == 2


def test_no_other_user_restarts_the_gateway(make_chats: MakeChats) -> None:
    chats = make_chats(ADMIN)
    for source in (BOB, replace(ALICE, user_id=None), replace(ALICE, user_id="11"), replace(BOB, user_name="1")):
        assert chats.reply(source, "/restart") == "Only an administrator of the gateway can use this command."
    assert chats.restarts == 0


def test_a_restart_from_before_the_start_is_not_repeated(make_chats: MakeChats) -> None:
    chats = make_chats(ADMIN)
    services = chats.with_services(started_at=time.time() + 60)
    text = chats.reply(ALICE, "/restart", services=services)
    assert text == "The gateway has restarted since this command was sent."
    assert chats.restarts == 0


def test_errors_of_the_agent_are_replies_and_errors_of_the_database_are_raised(chats: Chats) -> None:
    chats.talk(ALICE, "hello")

    class Failing:
        def __init__(self, error: Exception) -> None:
            self.error = error

        async def work(self, *_: Any) -> Any:
            raise self.error

    conflict = chats.with_services(brain=Failing(Conflict("this conversation is in the middle of a turn")))
    assert chats.reply(ALICE, "/compress", services=conflict) == "This conversation is in the middle of a turn."
    down = chats.with_services(brain=Failing(StoreUnavailable("the server is down")))
    with pytest.raises(StoreUnavailable):
        chats.send(ALICE, "/compress", services=down)


def test_an_unknown_command_is_an_error(chats: Chats) -> None:
    row = chats.accept(ALICE, "/status", "command")
    lease = chats.run(chats.lease(chats.key(ALICE)))
    with pytest.raises(InvalidValue):
        chats.run(run_command(chats.context(ALICE, Parsed("unknown"), row, lease)))


def test_the_runner_returns_what_the_engine_needs(chats: Chats) -> None:
    chats.talk(ALICE, "hello")
    runner = CommandRunner(chats.services)
    replies = []
    for text in ("/title", "/retry", "/btw x"):
        message = decode_message(chats.accept(ALICE, text, "command"))
        lease = chats.run(chats.lease(chats.key(ALICE)))
        replies.append(chats.run(runner(message, chats.key(ALICE), lease, is_turn_running=False)))
        chats.run(chats.db.turns.release(lease))
    title, retry, background = replies
    assert title.text == "This session has no title. /title TEXT sets one."
    assert retry.turn is not None
    assert retry.turn.is_retry
    assert [(each.kind, each.payload["background"]) for each in background.others] == [("normal", True)]
