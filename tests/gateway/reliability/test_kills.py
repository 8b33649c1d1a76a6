"""Gateways that are killed in the middle of a turn: nothing is lost, nothing is done twice."""

from __future__ import annotations

import threading

import pytest

from hermes.gateway.engine import texts
from tests.gateway.reliability.model import held
from tests.gateway.reliability.world import World
from tests.support.modelserver import Call, Say
from tests.support.waiting import wait_until

SILENT = Say("never sent", before_s=120)
RESTARTS = 10


def killed_when_asked(world: World, word: str, times: int = 1) -> None:
    """Kill a node when the model got a request, and send the message first if it was not sent."""
    before = len(world.model.asked(word))
    node = world.process()
    if not before:
        world.chat(node).ask(word)
    wait_until(lambda: len(world.model.asked(word)) >= before + times, f"the model to be asked about {word}")
    node.kill()


@pytest.mark.parametrize("successor", ["north", "south"])
def test_01_kill_while_claimed_the_next_message_runs(one: World, successor: str) -> None:
    one.model.on("first", SILENT)
    killed_when_asked(one, "first")
    chat = one.chat(one.process(successor))
    assert chat.say("/queue next please", message_id="next")["state"] == "accepted"
    assert chat.wait_for_replies("first", "next") == ["answer to first", "answer to next"]
    assert [turn["state"] for turn in one.turns("first")] == ["lost", "finished", "finished"]
    assert one.transcript("first") == [
        ("user", "first please"),
        ("assistant", "answer to first"),
        ("user", "next please"),
        ("assistant", "answer to next"),
    ]


def test_15_ten_restarts_during_a_progressing_turn_it_finishes(one: World) -> None:
    for number in range(RESTARTS):
        step = Call("note", {"text": f"step{number}"}, id=f"call_{number}")
        one.model.on("long", Say("I note it.", calls=[step]), SILENT)
    for number in range(RESTARTS):
        node = one.process()
        if number == 0:
            one.chat(node).ask("long")
        asked = 2 * (number + 1)
        wait_until(lambda asked=asked: len(one.model.asked("long")) == asked, "the model to be asked again")  # type: ignore[misc]
        wait_until(lambda: any(turn["progress"] for turn in one.store.turns.running()), "progress to be stored")
        node.kill()
    chat = one.chat(one.process())
    assert chat.wait_for_replies("long") == ["answer to long"]
    assert one.notes == [f"step{number}" for number in range(RESTARTS)]
    row = one.row("long")
    assert (row["state"], row["starts"], row["attempts"]) == ("done", RESTARTS + 1, 1)
    assert len(one.replies("long")) == 1


def test_15_ten_restarts_without_progress_it_is_put_aside_with_a_reason(one: World) -> None:
    one.model.on("stuck", *[SILENT] * RESTARTS)
    for _ in range(3):
        killed_when_asked(one, "stuck")
    node = one.process()
    assert one.chat(node).wait_for_replies("stuck") == [texts.QUARANTINED]
    node.kill()
    for _ in range(RESTARTS - 3):
        one.process().kill()
    row = one.row("stuck")
    assert row["state"] == "dead"
    assert str(row["reason"]).endswith("did not finish the turn, 3 times")
    assert [each["message_id"] for each in one.store.inbox.dead()] == ["stuck"]
    assert len(one.model.asked("stuck")) == 3
    chat = one.chat(one.process())
    chat.ask("next")
    assert chat.wait_for_replies("next") == ["answer to next"]


def test_20_a_poison_message_is_quarantined_after_three_tries_and_its_neighbours_are_served(one: World) -> None:
    one.model.on("poison", *[Say("I do it.", calls=[Call("die", {"text": "died"})])] * 5)
    node = one.process()
    one.chat(node).ask("poison", chat_id="c1")
    deaths = 0
    while one.row("poison")["state"] != "dead":
        wait_until(lambda node=node: not node.is_alive or one.row("poison")["state"] == "dead", "a death")  # type: ignore[misc]
        if not node.is_alive:
            deaths += 1
            node = one.process(is_ready=False)
    assert (deaths, one.notes) == (3, ["died"] * 3)
    chat = one.chat(node)
    chat.ask("neighbour", chat_id="c2")
    chat.ask("later", chat_id="c1")
    answers = chat.wait_for_replies("neighbour", "later", "poison")
    assert answers == ["answer to neighbour", "answer to later", texts.QUARANTINED]
    assert node.is_alive


def test_a_poison_message_does_not_use_up_the_tries_of_those_that_run_beside_it(one: World) -> None:
    one.model.on("poison", *[Say("I do it.", calls=[Call("die", {"text": "died"})])] * 5)
    words = [f"beside{number}" for number in range(4)]
    deaths = 0
    one.model.otherwise = lambda asked, told: SILENT if deaths < 2 else Say(f"answer to {' '.join(told)}")
    node = one.process()
    chat = one.chat(node)
    for number, word in enumerate(words):
        chat.ask(word, chat_id=f"d{number}")
    wait_until(lambda: all(one.model.asked(word) for word in words), "the neighbours to run")
    chat.ask("poison", chat_id="c1")
    while one.row("poison")["state"] != "dead":
        wait_until(lambda node=node: not node.is_alive or one.row("poison")["state"] == "dead", "a death")  # type: ignore[misc]
        if not node.is_alive:
            deaths += 1
            node = one.process(is_ready=False)
    assert {one.row(word)["state"] for word in words} <= {"accepted", "running", "done"}


def test_a_kill_with_queued_messages_loses_none_and_keeps_their_order(one: World) -> None:
    one.model.on("first", SILENT)
    words = [f"q{number}" for number in range(5)]
    node = one.process()
    chat = one.chat(node)
    chat.ask("first")
    wait_until(lambda: bool(one.model.asked("first")), "the first turn to ask the model")
    for word in words:
        assert chat.say(f"/queue {word} please", message_id=word)["state"] == "accepted"
    node.kill()
    chat = one.chat(one.process())
    assert chat.wait_for_replies("first", *words) == [f"answer to {word}" for word in ("first", *words)]
    assert [request.last_text for request in one.model.server.requests[2:]] == [f"{word} please" for word in words]
    assert [row["payload"] or row["state"] for row in one.replies("first")] == ["sent"] * 6


def test_a_kill_while_an_answer_streams_keeps_the_text(one: World) -> None:
    ended = threading.Event()
    one.model.on("tale", held(ended, "Once ", "upon ", "a ", "time"))
    node = one.process()
    one.chat(node).ask("tale")
    # The words are stored while the model still writes, so a kill costs what came in the last second.
    wait_until(lambda: ("assistant", "Once upon a time") in one.transcript_or_nothing("tale"), "the text to be stored")
    node.kill()
    ended.set()
    chat = one.chat(one.process())
    chat.wait_for_replies("tale")
    continued = one.model.asked("tale")[1].messages
    assert ("assistant", "Once upon a time") in [(each["role"], each["content"]) for each in continued]
    assert one.transcript("tale")[:2] == [("user", "tale please"), ("assistant", "Once upon a time")]
    assert len(one.replies("tale")) == 1


def test_an_answer_that_was_produced_before_a_kill_is_delivered_and_not_computed_again(one: World) -> None:
    node = one.process(dies_at_finish=True)
    one.chat(node).ask("once")
    assert node.wait() == -9
    assert one.transcript("once")[-1] == ("assistant", "answer to once")
    assert one.row("once")["state"] == "running"
    chat = one.chat(one.process())
    assert chat.wait_for_replies("once") == ["answer to once"]
    assert len(one.model.asked("once")) == 1
    assert one.transcript("once") == [("user", "once please"), ("assistant", "answer to once")]


def test_a_tool_call_without_a_result_is_not_repeated(one: World) -> None:
    one.model.on("careful", Say("I do it.", calls=[Call("die", {"text": "done"})]))
    node = one.process()
    one.chat(node).ask("careful")
    assert node.wait() == -9
    chat = one.chat(one.process())
    assert chat.wait_for_replies("careful") == ["answer to careful"]
    assert one.notes == ["done"]
    told = [str(each["content"]) for each in one.model.asked("careful")[1].messages]
    assert any("check before you repeat it" in text for text in told), told


def test_07_a_kill_before_the_commit_of_an_admission_leaves_nothing_that_makes_the_message_known(one: World) -> None:
    node = one.process(dies_at_accept=True)
    assert node.deliver_or_die("hello") == ""
    assert node.wait() == -9
    assert one.store.inbox.find("hello") == []
    node = one.process()
    assert [node.deliver("hello"), node.deliver("hello")] == ["accepted", "known"]
    one.wait_until_done("hello")
    assert len(one.model.asked("hello")) == 1
