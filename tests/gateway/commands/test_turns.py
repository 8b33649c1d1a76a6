"""/retry, /undo and /compress."""

from __future__ import annotations

import pytest

from hermes.errors import StaleLease
from hermes.gateway.commands import Parsed, TurnSpec, run_command
from hermes.gateway.commands.context import CommandContext
from tests.gateway.commands.chats import ALICE, ALICE_IN_GROUP, BOB, BOB_IN_GROUP, Chats
from tests.support.clock import DAY_S
from tests.support.lanes import end_leases


def test_retry_asks_for_a_turn_and_keeps_an_expired_session(chats: Chats) -> None:
    session_id = chats.talk(ALICE, "hello")
    chats.time.advance(3 * DAY_S)
    result = chats.send(ALICE, "/retry")
    assert result.turn == TurnSpec(is_retry=True)
    assert result.text == ""
    assert chats.run(chats.store.get_or_create_session(ALICE)).session_id == session_id


def test_nothing_to_retry(chats: Chats) -> None:
    chats.talk(BOB, "hello")
    results = [chats.send(ALICE, command) for command in ("/retry", "/new", "/retry")]
    assert [each.turn for each in results] == [None, None, None]
    assert results[0].text == results[2].text == "There is no message to answer again."


@pytest.mark.parametrize("command", ["/retry", "/undo", "/compress"])
def test_a_stopped_session_has_to_be_resumed_first(chats: Chats, command: str) -> None:
    session_id = chats.talk(ALICE, "hello")
    chats.send(ALICE, "/stop")
    result = chats.send(ALICE, command)
    assert result.turn is None
    assert result.text.startswith("The session of this chat was stopped. Send /resume")
    assert len(chats.texts(session_id)) == 2


def test_undo_tells_what_it_has_undone(chats: Chats) -> None:
    session_id = chats.talk(ALICE, "one", "two", "three")
    assert chats.reply(ALICE, "/undo") == "Undid 1 turn (2 messages), from: three"
    assert chats.reply(ALICE, "/undo 2") == "Undid 2 turns (4 messages), from: one"
    assert chats.reply(ALICE, "/undo") == "There is nothing to undo."
    assert chats.texts(session_id) == []


def test_undo_of_more_turns_than_there_are_undoes_all(chats: Chats) -> None:
    chats.talk(ALICE, "one", "two")
    assert chats.reply(ALICE, "/undo 99999999999") == "Undid 2 turns (4 messages), from: one"


def test_undo_shows_at_most_two_hundred_characters(chats: Chats) -> None:
    chats.talk(ALICE, "long " * 200)
    shown = chats.reply(ALICE, "/undo").partition("from: ")[2]
    assert len(shown) == 200
    assert shown.endswith("...")


@pytest.mark.parametrize("text", ["x", "0", "-1", "1.5", "\u0662", "1 2"])
def test_undo_needs_a_number(chats: Chats, text: str) -> None:
    session_id = chats.talk(ALICE, "one")
    assert chats.reply(ALICE, f"/undo {text}") == (
        f'"{text}" is not a number of turns. Send /undo, or for example /undo 2.'
    )
    assert len(chats.texts(session_id)) == 2


def test_undo_that_runs_again_after_a_crash_undoes_nothing_more(chats: Chats) -> None:
    session_id = chats.talk(ALICE, "one", "two", "three")
    row = chats.accept(ALICE, "/undo", "command")
    chats.run(chats.obey(ALICE, "/undo", row, crashes=True))
    assert chats.run(chats.obey(ALICE, "/undo", row)).text == "Undid 1 turn, from: three"
    assert chats.texts(session_id) == ["one", "answer to one", "two", "answer to two"]


def test_undo_of_all_turns_that_runs_again_after_a_crash_says_the_same(chats: Chats) -> None:
    chats.talk(ALICE, "one")
    row = chats.accept(ALICE, "/undo", "command")
    chats.run(chats.obey(ALICE, "/undo", row, crashes=True))
    assert chats.run(chats.obey(ALICE, "/undo", row)).text == "Undid 1 turn, from: one"


def test_undo_of_a_node_that_has_lost_the_lane_changes_nothing(chats: Chats) -> None:
    session_id = chats.talk(ALICE, "one")
    row = chats.accept(ALICE, "/undo", "command")
    lease = chats.run(chats.lease(chats.key(ALICE)))
    end_leases(chats.provider)
    chats.run(chats.lease(chats.key(ALICE), "node-2/1"))
    context: CommandContext = chats.context(ALICE, Parsed("undo"), row, lease)
    with pytest.raises(StaleLease):
        chats.run(run_command(context))
    assert len(chats.texts(session_id)) == 2


def test_undo_reaches_only_the_own_session(chats: Chats) -> None:
    bobs = chats.talk(BOB, "one")
    assert chats.reply(ALICE, "/undo") == "There is nothing to undo."
    chats.talk(ALICE, "two")
    assert chats.reply(ALICE, "/undo 5") == "Undid 1 turn (2 messages), from: two"
    assert len(chats.texts(bobs)) == 2


def test_a_shared_group_undoes_its_own_turns(shared: Chats) -> None:
    shared.talk(ALICE_IN_GROUP, "one")
    assert shared.reply(BOB_IN_GROUP, "/undo") == "Undid 1 turn (2 messages), from: one"


def test_compress_tells_before_and_after_and_the_lane_follows(chats: Chats) -> None:
    old = chats.talk(ALICE, *(f"question {number} " + "and many more words " * 200 for number in range(8)))
    text = chats.reply(ALICE, "/compress")
    assert text.startswith("Compressed: 16 messages before, "), text
    assert "tokens before, " in text
    new = chats.session(ALICE)
    assert new != old
    assert len(chats.texts(new)) < 16
    assert chats.lane(ALICE)["last_prompt_tokens"] == 0


def test_too_little_to_compress(chats: Chats) -> None:
    assert chats.reply(ALICE, "/compress") == "There are no messages yet, so nothing to compress."
    old = chats.talk(ALICE, "one")
    assert chats.reply(ALICE, "/compress focus on food").startswith("Not compressed: ")
    assert chats.session(ALICE) == old
