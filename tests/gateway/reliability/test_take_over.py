"""Several nodes on one server: a lane is served by one of them, and by another when that one dies or freezes."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermes.state.engine import Transaction
from hermes.state.lanes.queue.turns import Turns
from tests.gateway.reliability.conftest import postgres_world
from tests.gateway.reliability.model import held
from tests.gateway.reliability.world import LEASE_S, World
from tests.support.modelserver import Say
from tests.support.pgbouncer import PgBouncer
from tests.support.servers import dsn_of, server_or_skip, skip_or_fail
from tests.support.stores import engine_of
from tests.support.waiting import wait_until

NAMES = ("north", "south", "west")


def test_08_a_lane_is_free_only_after_the_commit_of_its_turn(many: World, monkeypatch: pytest.MonkeyPatch) -> None:
    free, go_on, is_inside = threading.Event(), threading.Event(), threading.Event()
    many.model.on("first", held(free, "answer to first"))
    north, south = (many.thread(name, home=many.home(name)) for name in ("north", "south"))
    pausing: set[int] = set()
    finish = Turns.finish

    def pause_before_the_commit(turns: Turns, *args: Any, **kwargs: Any) -> object:
        if is_inside.is_set():
            return finish(turns, *args, **kwargs)
        pausing.add(threading.get_ident())
        return finish(turns, *args, **{**kwargs, "keep_lease": False})

    for node in (north, south):
        pause_writes(engine_of(node.runner.db.store), pausing, is_inside, go_on)
    monkeypatch.setattr(Turns, "finish", pause_before_the_commit)
    assert north.receive("first") == "accepted"
    wait_until(lambda: bool(many.model.asked("first")), "the first turn to run")
    assert south.receive("second") == "accepted"
    free.set()
    wait_until(is_inside.is_set, "the end of the turn to be written")
    assert many.store.turns.claim_next("spy/1") is None
    assert many.model.asked("second") == []
    go_on.set()
    many.wait_until_done("first", "second")
    (request,) = many.model.asked("second")
    assert {"role": "assistant", "content": "answer to first"} in request.messages


def test_21_a_node_whose_clock_is_90_seconds_ahead_steals_nothing_and_keeps_nothing_longer(many: World) -> None:
    free = threading.Event()
    many.model.on("slow", held(free, "answer to slow"))
    many.model.on("left", Say("never sent", before_s=120))
    right = many.thread("right")
    chat = many.chat(right)
    chat.ask("slow", chat_id="c1")
    wait_until(lambda: bool(many.model.asked("slow")), "a turn of the node with the right clock")
    right.drain()
    ahead = many.process("ahead", home=many.home("ahead"), clock_ahead_s=90.0)
    many.chat(ahead).ask("left", chat_id="c2")
    wait_until(lambda: bool(many.model.asked("left")), "a turn of the node with the wrong clock")
    threading.Event().wait(1.2 * LEASE_S)  # the lease of the first turn was renewed meanwhile, by the database's clock
    assert [turn["node"].partition("/")[0] for turn in many.turns("slow")] == ["right"]
    ahead.kill()
    right.call(right.undrain)
    assert chat.wait_for_replies("left") == ["answer to left"]
    free.set()
    assert chat.wait_for_replies("slow") == ["answer to slow"]
    assert (len(many.model.asked("slow")), len(many.model.asked("left"))) == (1, 2)


def test_21_a_node_whose_clock_is_two_days_ahead_resets_no_session_and_dates_no_chat_ahead(shared: World) -> None:
    right = shared.thread("right")
    chat = shared.chat(right)
    chat.ask("one", chat_id="c1")
    assert chat.wait_for_replies("one") == ["answer to one"]
    right.drain()
    ahead = shared.process("ahead", home=shared.home("ahead"), clock_ahead_s=2 * 86_400.0)
    shared.chat(ahead).ask("two", chat_id="c1")
    shared.wait_until_done("two")
    assert [text for role, text in shared.transcript("one") if role == "user"] == ["one please", "two please"]
    lane = shared.store.lanes.get(shared.lane_of("two"))
    assert lane is not None
    assert abs(lane["updated_at"] - shared.store.turns.peek().now) < 3_600


def test_three_nodes_one_is_killed_and_its_lanes_continue_elsewhere(shared: World) -> None:
    free = threading.Event()
    words = [f"t{number}" for number in range(9)]
    for word in words:
        shared.model.on(word, held(free, f"answer to {word}"))
    nodes = {name: shared.process(name, home=shared.home(name)) for name in NAMES}
    chats = {name: shared.chat(node) for name, node in nodes.items()}
    for number, word in enumerate(words):
        chats[NAMES[number % 3]].ask(word, chat_id=f"c{number}")
    wait_until(lambda: all(shared.model.asked(word) for word in words), "all turns to run")
    holders = {turn["session_key"]: turn["node"].partition("/")[0] for turn in shared.store.turns.running()}
    victim = holders[shared.lane_of("t0")]
    nodes[victim].kill()
    lost = [word for word in words if holders[shared.lane_of(word)] == victim]
    shared.wait_until_done(*lost)
    assert [len(shared.model.asked(word)) for word in words] == [2 if word in lost else 1 for word in words]
    free.set()
    shared.wait_until_done(*words)
    for word in words:
        assert [turn["state"] for turn in shared.turns(word)] == (
            ["lost", "finished"] if word in lost else ["finished"]
        )
        assert shared.turns(word)[-1]["node"].partition("/")[0] in set(NAMES) - ({victim} if word in lost else set())
        assert shared.transcript(word) == [("user", f"{word} please"), ("assistant", f"answer to {word}")]
        assert len(shared.replies(word)) == 1
        wait_until(lambda word=word: any(chat.replies(word) for chat in chats.values()), "a reply")  # type: ignore[misc]
        assert {text for chat in chats.values() for text in chat.replies(word)} == {f"answer to {word}"}


def test_a_node_that_was_frozen_past_its_lease_can_write_nothing_more(shared: World) -> None:
    free = threading.Event()
    shared.model.on("frozen", held(free, "half"))
    late = shared.process("north", home=shared.home("north"))
    shared.chat(late).ask("frozen")
    wait_until(lambda: ("assistant", "half") in shared.transcript_or_nothing("frozen"), "the first words to be stored")
    late.freeze()
    chat = shared.chat(shared.process("south", home=shared.home("south")))
    assert chat.wait_for_replies("frozen") == ["answer to frozen"]
    stored = shared.transcript("frozen")
    late.thaw()
    free.set()  # the frozen node gets the rest of its answer
    wait_until(lambda: late.counters().get("leases_lost") == 1, "the frozen node to notice")
    assert (
        shared.transcript("frozen")
        == stored
        == [
            ("user", "frozen please"),
            ("assistant", "half"),
            ("assistant", "answer to frozen"),
        ]
    )
    assert [(turn["state"], turn["node"][:5]) for turn in shared.turns("frozen")] == [
        ("lost", "north"),
        ("finished", "south"),
    ]
    assert len(shared.replies("frozen")) == 1
    assert chat.replies("frozen") == ["answer to frozen"]


def test_a_message_that_the_platform_delivers_again_to_another_node_is_known(shared: World) -> None:
    free = threading.Event()
    shared.model.on("again", held(free, "answer to again"))
    north, south = (shared.process(name, home=shared.home(name)) for name in ("north", "south"))
    states = [north.deliver("again")]
    wait_until(lambda: bool(shared.model.asked("again")), "the turn to run")
    states.append(south.deliver("again"))
    free.set()
    shared.wait_until_done("again")
    states += [node.deliver("again") for node in (south, north)]
    assert states == ["accepted", "known", "known", "known"]
    assert len(shared.model.asked("again")) == 1
    assert len(shared.replies("again")) == 1


@pytest.fixture
def pooled(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world behind a pooler that gives every transaction another session of the server."""
    dsn = server_or_skip(lambda: dsn_of("postgresql"))
    with psycopg.connect(dsn) as connection:
        server = connection.info.host
    with tempfile.TemporaryDirectory(prefix="hermes-") as place:
        try:
            pooler = PgBouncer(server, Path(place), size=4)
        except OSError as error:
            skip_or_fail(str(error))
        pooler.start()
        try:
            with postgres_world(dsn, "test_pooled_gateway", monkeypatch, pooled=pooler.dsn) as made:
                yield made
        finally:
            pooler.stop()


def test_nodes_behind_pgbouncer_in_transaction_mode_take_lanes_over(pooled: World) -> None:
    pooled.model.on("first", Say("never sent", before_s=120))
    north = pooled.process("north", home=pooled.home("north"))
    pooled.chat(north).ask("first")
    wait_until(lambda: bool(pooled.model.asked("first")), "the first turn to run")
    chat = pooled.chat(pooled.process("south", home=pooled.home("south")))
    north.kill()
    chat.ask("other", chat_id="c2")
    assert chat.wait_for_replies("other", "first") == ["answer to other", "answer to first"]
    assert [turn["state"] for turn in pooled.turns("first")] == ["lost", "finished"]


def pause_writes(engine: Any, threads: set[int], is_inside: threading.Event, go_on: threading.Event) -> None:
    """Let the next write of these threads wait inside its transaction, just before the commit."""
    write: Callable[..., Any] = engine.write

    def pause(work: Callable[[Transaction], object], *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() not in threads:
            return write(work, *args, **kwargs)
        threads.clear()

        def inside(tx: Transaction) -> object:
            result = work(tx)
            is_inside.set()
            assert go_on.wait(30)
            return result

        return write(inside, *args, **kwargs)

    engine.write = pause
