"""Lanes that wait, are wedged or lose a race: each message has its turn, in order, and other lanes do not notice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hermes.errors import StoreUnavailable
from hermes.gateway.engine import texts
from hermes.gateway.engine.ports import Inbound
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource
from hermes.state.engine import Transaction
from hermes.state.lanes.queue.turns import Turns
from tests.gateway.reliability.model import held
from tests.gateway.reliability.node import RELEASED
from tests.gateway.reliability.nodes import NodeThread
from tests.gateway.reliability.world import World
from tests.support.modelserver import Call, Say
from tests.support.stores import engine_of
from tests.support.waiting import wait_until


@pytest.fixture
def release() -> Iterator[Callable[[], None]]:
    """Ends the tools that wait whatever is cancelled."""
    RELEASED.clear()
    yield RELEASED.set
    RELEASED.set()


def test_02_a_wedged_lane_says_why_and_other_lanes_are_unaffected(one: World, release: Callable[[], None]) -> None:
    one.model.on("wedged", Say("I wait.", calls=[Call("stick")]))
    node = one.thread(settings={"idle_timeout_s": 1.5, "stop_grace_s": 0.2})
    chat = one.chat(node)
    chat.ask("wedged", chat_id="c1")
    wait_until(lambda: node.runner.brain.figures().running == 1 and bool(one.model.asked("wedged")), "a wedged turn")
    chat.ask("later", chat_id="c1")
    wait_until(lambda: texts.waits("queue") in chat.texts(), "a reason for the wait")
    chat.ask("free", chat_id="c2")
    answers = chat.wait_for_replies("free", "wedged", "later")
    assert answers == ["answer to free", texts.timed_out(1.5, "running stick"), "answer to wedged later"]
    assert one.row("wedged")["state"] == "failed"
    assert "nothing happened for" in str(one.row("wedged")["reason"])
    assert one.row("free")["finished_at"] < one.row("wedged")["finished_at"]  # type: ignore[operator]
    release()
    wait_until(lambda: node.runner.brain.figures().abandoned == 0, "the thread to end")
    assert ("tool", "released") not in one.transcript("wedged"), "a thread that was given up has written"


@pytest.mark.parametrize("moment", ["finish", "release"])
def test_05_a_message_between_the_last_empty_read_and_the_release_is_answered(
    one: World, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    node = one.thread()
    original = getattr(Turns, moment)
    is_done = threading.Event()

    def store_another_first(turns: Turns, *args: Any, **kwargs: Any) -> object:
        if not is_done.is_set():
            is_done.set()
            one.accept("between")
        return original(turns, *args, **kwargs)

    chat = one.chat(node)
    monkeypatch.setattr(Turns, moment, store_another_first)
    if moment == "finish":
        chat.ask("first")
    else:
        assert chat.say("/status")["state"] == "accepted"  # a command keeps the lane until the release
    wait_until(is_done.is_set, "the race")
    assert chat.wait_for_replies("between") == ["answer to between"]
    assert len(one.model.asked("between")) == 1


def test_06_a_turn_longer_than_the_lease_is_one_turn(one: World) -> None:
    one.model.on("slow", Say("answer to slow", before_s=3.5))
    home = one.home(gateway={"lease_seconds": 1.5})
    nodes = [one.thread(name, home=home) for name in ("north", "south")]
    assert nodes[0].receive("slow") == "accepted"
    one.wait_until_done("slow")
    assert len(one.model.asked("slow")) == 1
    assert [turn["state"] for turn in one.turns("slow")] == ["finished"]
    assert sum(node.runner.parts.counters.get("turns_started", 0) for node in nodes) == 1


def test_07_a_failed_admission_leaves_nothing_that_makes_the_message_known(one: World) -> None:
    node = one.thread()
    engine = engine_of(node.runner.db.store)
    write: Callable[..., Any] = engine.write

    def fail_before_the_commit(work: Callable[[Transaction], object], **more: Any) -> Any:
        def do_and_fail(tx: Transaction) -> object:
            work(tx)
            raise StoreUnavailable("the connection was lost")

        return write(do_and_fail, **more)

    setattr(engine, "write", fail_before_the_commit)  # noqa: B010 - a method
    try:
        assert node.receive("hello") == "refused"
    finally:
        setattr(engine, "write", write)  # noqa: B010
    assert one.store.inbox.find("hello") == []
    assert [node.receive("hello"), node.receive("hello")] == ["accepted", "known"]
    one.wait_until_done("hello")
    assert len(one.model.asked("hello")) == 1


def test_09_first_contact_by_an_album_of_six_makes_one_session(many: World) -> None:
    nodes = [many.thread(name, home=many.home(name)) for name in ("north", "south")]
    words = [f"photo{number}" for number in range(6)]

    async def receive(node: NodeThread, some: list[str]) -> list[str]:
        source = SessionSource(Platform.LOCAL, "new", user_id="ada")
        photos = [
            Inbound(f"{word} please", source, word, message_type="photo", media=[{"path": word, "type": "photo"}])
            for word in some
        ]
        return [each.state for each in await asyncio.gather(*map(node.runner.intake.receive, photos))]

    states: list[str] = []
    threads = [
        threading.Thread(target=lambda node=node, some=some: states.extend(node.call(lambda: receive(node, some))))
        for node, some in zip(nodes, (words[::2], words[1::2]), strict=True)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert states == ["accepted"] * 6
    many.wait_until_done(*words)
    assert (many.store.session_count(), many.store.lanes.count()) == (1, 1)
    said = [text for role, text in many.transcript("photo0") if role == "user"]
    assert sorted(said) == sorted(f"{word} please\n[Attached file: file]" for word in words)
    answered = [each for row in many.replies("photo0") for each in (row["payload"] or {}).get("answers", ())]
    assert len(answered) == len(set(answered))


def test_10_lanes_wait_in_order_and_none_is_given_up_silently(one: World) -> None:
    free = threading.Event()
    one.model.on("first", held(free, "answer to first"))
    node = one.thread(home=one.home(gateway={"max_turns": 1, "limits": {"waiting_messages": 2}}))
    chat = one.chat(node)
    chat.ask("first", chat_id="c0")
    wait_until(lambda: bool(one.model.asked("first")), "the only slot to be taken")
    words = [f"w{number}" for number in range(6)]
    for number, word in enumerate(words):
        chat.ask(word, chat_id=f"c{number % 3 + 1}")
    refused = chat.say("one too many", "c1")
    assert (refused["type"], refused["code"], refused["message"]) == ("refused", "queue_full", texts.queue_full(2))
    assert one.store.inbox.find("c1-one too many") == []
    free.set()
    chat.wait_for_replies(*words)
    asked = [word for request in one.model.server.requests[1:] for word in request.last_text.split() if word in words]
    assert sorted(asked) == words
    assert [asked.index(word) for word in words[:3]] == sorted(asked.index(word) for word in words[:3])
    assert all(asked.index(words[n]) < asked.index(words[n + 3]) for n in range(3))


def test_14_an_error_on_one_lane_does_not_discard_the_claim_of_another(
    one: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim_next = Turns.claim_next
    calls: list[str] = []

    def fail_at_the_second(turns: Turns, *args: Any, **kwargs: Any) -> object:
        calls.append("claim")
        if len(calls) == 2:
            raise StoreUnavailable("the connection was lost")
        return claim_next(turns, *args, **kwargs)

    node = one.thread()
    chat = one.chat(node)
    node.drain()
    chat.ask("a", chat_id="c1")
    chat.ask("b", chat_id="c2")
    monkeypatch.setattr(Turns, "claim_next", fail_at_the_second)
    node.call(node.undrain)
    assert chat.wait_for_replies("a", "b") == ["answer to a", "answer to b"]
    assert len(calls) > 2
    assert [len(one.turns(word)) for word in ("a", "b")] == [1, 1]
    assert [row["attempts"] for row in (one.row("a"), one.row("b"))] == [1, 1]
