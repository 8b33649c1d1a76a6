"""Gateways that are drained and restarted: turns end where they began, and waiting messages are not charged."""

from __future__ import annotations

import threading

from hermes.errors import Conflict
from tests.gateway.reliability.model import held
from tests.gateway.reliability.nodes import NodeProcess
from tests.gateway.reliability.world import World
from tests.support.modelserver import Call, Say
from tests.support.waiting import wait_until


def test_03_draining_with_eight_queued_messages_charges_no_attempt(one: World) -> None:
    free = threading.Event()
    one.model.on("running", held(free, "answer to "))
    words = [f"q{number}" for number in range(8)]
    node = one.thread(settings={"drain_timeout_s": 0.3})
    chat = one.chat(node)
    chat.ask("running")
    wait_until(lambda: bool(one.model.asked("running")), "a turn to run")
    for word in words:
        assert chat.say(f"/queue {word} please", message_id=word)["state"] == "accepted"
    node.stop()
    free.set()
    for word in ("running", *words):
        row = one.row(word)
        assert (row["state"], row["attempts"]) == ("accepted", 0), word
    assert [one.row(word)["starts"] for word in words] == [0] * 8
    chat = one.chat(one.thread())
    chat.wait_for_replies("running", *words)
    assert [row["state"] for row in map(one.row, words)] == ["done"] * 8
    assert [each.last_text for each in one.model.server.requests[2:]] == [f"{word} please" for word in words]
    assert [len(one.model.asked(word)) for word in words] == [1] * 8


def test_a_stop_does_not_wait_for_a_tool_that_ignores_it_and_the_next_process_continues(one: World) -> None:
    one.model.on("wedged", Say("I wait.", calls=[Call("stick")]))
    node = one.process(settings={"drain_timeout_s": 0.2, "stop_grace_s": 0.3})
    assert node.deliver("wedged") == "accepted"
    wait_until(lambda: any(role == "assistant" for role, _ in one.transcript_or_nothing("wedged")), "the tool to run")
    node.request_stop()
    wait_until(lambda: one.row("wedged")["state"] == "accepted", "the message to wait again")
    chat = one.chat(one.process("south"))
    assert chat.wait_for_replies("wedged") == ["answer to wedged"]
    assert ("tool", "released") not in one.transcript("wedged")
    assert one.row("wedged")["attempts"] == 1
    assert node.wait() == 0


def test_13_a_process_drains_while_the_next_one_of_the_same_name_recovers(many: World) -> None:
    free = threading.Event()
    many.model.on("running", held(free, "answer to running"))
    old = many.process("north", home=many.home("old"))
    assert old.deliver("running") == "accepted"
    wait_until(lambda: bool(many.model.asked("running")), "a turn to run")
    old.request_stop()
    wait_until(lambda: is_marked(many, "running"), "the old process to drain")
    new = many.process("north", home=many.home("new"))
    chat = many.chat(new)
    chat.ask("later")
    chat.ask("elsewhere", chat_id="c2")
    assert chat.wait_for_replies("elsewhere") == ["answer to elsewhere"]
    assert [turn["state"] for turn in many.turns("running")] == ["running"]
    free.set()
    assert chat.wait_for_replies("running", "later") == ["answer to running", "answer to later"]
    assert old.wait() == 0
    assert [len(many.model.asked(word)) for word in ("running", "later", "elsewhere")] == [1, 1, 1]
    assert [turn["state"] for turn in many.turns("running")] == ["finished", "finished"]


def test_13_a_second_process_of_the_same_name_and_home_is_refused(one: World) -> None:
    node = one.process()
    second = one.process(is_ready=False)
    assert second.first_line().startswith(f"{Conflict.code}: a gateway named 'north' is running with this home already")
    second.wait()
    chat = one.chat(node)
    chat.ask("still")
    assert chat.wait_for_replies("still") == ["answer to still"]


def test_a_rolling_restart_under_load_loses_nothing(shared: World) -> None:
    names = ("north", "south", "west")
    nodes = {name: shared.process(name, home=shared.home(name)) for name in names}
    words: list[str] = []
    is_over = threading.Event()

    def write() -> None:
        """Send messages in nine chats, always to a node that listens; a refused or lost one is sent again."""
        while not is_over.is_set():
            number = len(words)
            word = f"w{number}"
            words.append(word)
            while not is_accepted(shared, nodes, number, word):
                is_over.wait(0.02)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for name in names:
            before = len(words)
            nodes[name].stop()
            nodes[name] = shared.process(name, home=shared.home(name))
            wait_until(lambda before=before: len(words) > before + 10, "more messages")  # type: ignore[misc]
    finally:
        is_over.set()
        writer.join()
    shared.wait_until_done(*words)
    answered = [word for each in shared.model.server.requests for word in each.last_text.split() if word in words]
    assert sorted(answered) == sorted(words), "a message was answered twice or not at all"
    replies = {row["key"]: row for word in words for row in shared.replies(word)}
    assert len(replies) == len([turn for chat in range(9) for turn in finished_turns(shared, words[chat])])


def is_accepted(world: World, nodes: dict[str, NodeProcess], number: int, word: str) -> bool:
    """Send a message to one node after the other, until one has it."""
    for node in list(nodes.values())[number % 3 :] + list(nodes.values())[: number % 3]:
        if node.says(f"{word} please", f"c{number % 9}", word) in ("accepted", "known"):
            return True
    return False


def finished_turns(world: World, word: str) -> list[str]:
    """The turns that have ended in the lane of a message."""
    return [turn["turn_id"] for turn in world.turns(word) if turn["state"] == "finished"]


def is_marked(world: World, word: str) -> bool:
    """Whether the lane of a message is marked as one that may have to be resumed."""
    lane = world.store.lanes.get(world.lane_of(word))
    return lane is not None and lane["resume_pending"]
