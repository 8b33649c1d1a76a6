"""The start of a gateway after a crash, while the database restarts, other nodes work and code fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from hermes.errors import ConfigError, StoreUnavailable
from hermes.gateway.engine import texts
from hermes.gateway.engine.turns import turn
from hermes.gateway.store.session_store import SessionStore
from hermes.state.lanes.queue.turns import Turns
from tests.gateway.reliability.conftest import postgres_world
from tests.gateway.reliability.world import World
from tests.support.modelserver import Say
from tests.support.servers import Server, private_server, server_or_skip
from tests.support.waiting import wait_until

SILENT = Say("never sent", before_s=120)


@pytest.fixture
def fragile(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[World, Server]]:
    """A world with a PostgreSQL server of its own, which a test may restart."""
    with ExitStack() as stack:
        server = server_or_skip(lambda: stack.enter_context(private_server("postgresql")))
        yield stack.enter_context(postgres_world(server.dsn, "fragile", monkeypatch)), server


@pytest.mark.parametrize("moment", ["end_leases", "claim_next"])
def test_11_the_database_restarts_a_moment_into_the_recovery(
    fragile: tuple[World, Server], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    world, server = fragile
    words = ["a", "b", "c"]
    for word in words:
        world.model.on(word, SILENT)
    node = world.process()
    for number, word in enumerate(words):
        world.chat(node).ask(word, chat_id=f"c{number}")
    wait_until(lambda: all(world.model.asked(word) for word in words), "all turns to run")
    node.kill()
    original = getattr(Turns, moment)
    is_down = threading.Event()
    restarting: list[threading.Timer] = []

    def work_without_the_server(turns: Turns, *args: Any, **kwargs: Any) -> object:
        if not is_down.is_set():
            is_down.set()
            server.stop()
            timer = threading.Timer(0.2, server.start)
            timer.start()
            restarting.append(timer)
        return original(turns, *args, **kwargs)

    monkeypatch.setattr(Turns, moment, work_without_the_server)
    recovered = world.thread()
    wait_until(lambda: bool(restarting), "the restart of the server")
    restarting[0].join()
    chat = world.chat(recovered)
    assert chat.wait_for_replies(*words) == [f"answer to {word}" for word in words]
    assert [len(world.model.asked(word)) for word in words] == [2, 2, 2]


def test_12_a_lane_that_continued_after_the_recovery_list_was_read_is_left_alone(
    one: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    south = one.thread("south")
    chat = one.chat(south)
    chat.ask("first")
    chat.wait_for_replies("first")
    key = one.lane_of("first")
    assert one.store.lanes.mark_resume_pending(key, "restart_interrupted")
    read = SessionStore.resume_candidates

    def read_and_lose_the_race(store: SessionStore, *args: Any, **kwargs: Any) -> object:
        found = list(read(store, *args, **kwargs))
        assert [entry.session_key for entry in found] == [key]
        chat.ask("meanwhile")
        chat.wait_for_replies("meanwhile")
        return found

    monkeypatch.setattr(SessionStore, "resume_candidates", read_and_lose_the_race)
    north = one.thread("north")
    for node in (north, south):
        wait_until(lambda: one.store.inbox.totals().waiting == 0, "all messages to be handled")
        node.call(node.settle)
    assert len(one.model.server.requests) == 2, "a lane that had continued was continued again"
    assert len(one.replies("first")) == 2


def test_16_a_failing_recovery_does_not_silence_a_message_that_was_given_up(
    one: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.model.on("poison", *[SILENT] * 3)
    for number in range(3):
        node = one.process()
        if number == 0:
            one.chat(node).ask("poison")
        wait_until(lambda number=number: len(one.model.asked("poison")) > number, "the turn to run")  # type: ignore[misc]
        node.kill()

    def fail(*_: object, **__: object) -> object:
        raise RuntimeError("a mistake in the recovery")

    monkeypatch.setattr(SessionStore, "mark_resume_pending", fail)
    chat = one.chat(one.thread())
    assert chat.wait_for_replies("poison") == [texts.QUARANTINED]
    chat.ask("next")
    assert chat.wait_for_replies("next")


def test_16_a_turn_that_cannot_be_started_again_ends_with_a_notice(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> object:
        raise RuntimeError("a mistake in the recovery")

    one.model.on("lost", SILENT)
    node = one.process()
    one.chat(node).ask("lost")
    wait_until(lambda: bool(one.model.asked("lost")), "the turn to run")
    node.kill()
    monkeypatch.setattr(turn, "RETRY_S", (0.05,))
    monkeypatch.setattr(turn, "open_lane_session", fail)
    chat = one.chat(one.thread())
    assert chat.wait_for_replies("lost") == [texts.NOT_ANSWERED]
    row = one.row("lost")
    assert (row["state"], row["reason"]) == ("dead", "RuntimeError in the gateway")


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"provider": "postgresql", "dsn": "postgresql://127.0.0.1:1/none", "pool_timeout_s": 1}, StoreUnavailable),
        ({"provider": "postgresql"}, ConfigError),
        ({"provider": "oracle"}, ConfigError),
    ],
)
def test_19_a_gateway_whose_database_is_unavailable_or_unknown_refuses_to_start(
    one: World, settings: dict[str, Any], error: type[Exception]
) -> None:
    home = one.home(sessiondb=settings)
    with pytest.raises(error):
        one.thread(home=home)
    assert sorted(path.name for path in home.iterdir() if path.name.endswith((".db", ".sock"))) == []
    assert one.process(home=home, is_ready=False).first_line().startswith(f"{error.code}: ")  # type: ignore[attr-defined]
