"""The end of a session: memories, hooks and the agent's resources, in this order and once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.tools.toolbox import TOOLBOX
from hermes.errors import StaleLease
from hermes.gateway import AsyncSessionStore, GatewayConfig, SessionStore
from hermes.gateway.entry import SessionEntry
from hermes.gateway.store.lane_entries import entry_from_row
from hermes.gateway.upkeep.expiry import ExpiryWatcher
from hermes.gateway.upkeep.finalizing import NEW_SESSION, SESSION_EXPIRED, Finalizer
from hermes.gateway.upkeep.hooks import Handler, Hooks
from hermes.state.asynchronous.session_db import AsyncSessionDB
from hermes.state.lanes.types import Lease
from hermes.state.owner import Owner
from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB
from tests.gateway.agents.lane import Lane, answer, blocking, brain_at, config_for
from tests.support.clock import FakeClock
from tests.support.modelserver import Call, ModelServer, Say


class Steps:
    """A brain and hooks that note what they are asked for."""

    def __init__(self) -> None:
        self.steps: list[Any] = []
        self.error: Exception | None = None

    async def save_memories(
        self, session_key: str, session_id: str, owner: Owner, lease: Lease, seconds: float
    ) -> bool:
        self.steps.append(("memories", session_id, owner, seconds))
        if self.error is not None:
            raise self.error
        return True

    async def end_session(self, session_key: str, session_id: str) -> None:
        self.steps.append(("end", session_key, session_id))

    async def emit(self, event: str, context: Mapping[str, Any]) -> None:
        self.steps.append((event, dict(context)))


@pytest.fixture
def store(home: Path) -> Any:
    with SessionDB(home / "state.db") as store:
        yield store


def entry_of(lane: Lane) -> SessionEntry:
    row = lane.store.lanes.get(lane.key)
    assert row is not None
    return entry_from_row(row)


def is_finalized(lane: Lane) -> bool:
    return entry_of(lane).expiry_finalized


def finalize(
    db: SessionDBProvider, home: Path, steps: Steps, entry: SessionEntry, reason: str, lease: Lease, memory_s: float = 5
) -> None:
    async def run() -> None:
        with SessionStore(home / "sessions", GatewayConfig(), db=db) as store:
            finalizer = Finalizer(AsyncSessionStore(store), AsyncSessionDB(db), steps, steps.emit, memory_s=memory_s)
            await finalizer.finalize_session(entry, reason, lease)

    asyncio.run(run())


def test_an_expired_session_saves_memories_then_runs_hooks_then_ends(store: SessionDB, home: Path) -> None:
    lane, steps = Lane(store), Steps()
    store.append_message("s1", "user", "hi")
    finalize(store, home, steps, entry_of(lane), SESSION_EXPIRED, lane.lease)
    context = {
        "session_key": lane.key,
        "session_id": "s1",
        "platform": "telegram",
        "chat_type": "dm",
        "chat_id": "7",
        "thread_id": None,
        "user_id": "7",
        "reason": "session_expired",
    }
    assert steps.steps == [
        ("memories", "s1", lane.owner, 5),
        ("on_session_finalize", context),
        ("end", lane.key, "s1"),
    ]
    assert is_finalized(lane)


def test_a_finalized_session_is_not_finalized_again(store: SessionDB, home: Path) -> None:
    lane, steps = Lane(store), Steps()
    entry = entry_of(lane)
    finalize(store, home, steps, entry, NEW_SESSION, lane.lease)
    finalize(store, home, steps, entry, SESSION_EXPIRED, lane.lease)
    assert [step[0] for step in steps.steps] == ["on_session_finalize", "end"]


def test_a_user_who_starts_a_new_session_does_not_wait_for_memories(store: SessionDB, home: Path) -> None:
    lane, steps = Lane(store), Steps()
    store.append_message("s1", "user", "hi")
    finalize(store, home, steps, entry_of(lane), NEW_SESSION, lane.lease)
    assert [step[0] for step in steps.steps] == ["on_session_finalize", "end"]


@pytest.mark.parametrize(("memory_s", "text"), [(0, "hi"), (5, "")])
def test_memories_are_not_saved_if_switched_off_or_without_messages(
    store: SessionDB, home: Path, memory_s: float, text: str
) -> None:
    lane, steps = Lane(store), Steps()
    if text:
        store.append_message("s1", "user", text)
    finalize(store, home, steps, entry_of(lane), SESSION_EXPIRED, lane.lease, memory_s)
    assert [step[0] for step in steps.steps] == ["on_session_finalize", "end"]


def test_a_lane_that_uses_another_session_by_now_is_left_alone(store: SessionDB, home: Path) -> None:
    lane, steps = Lane(store), Steps()
    entry = entry_of(lane)
    store.turns.release(lane.lease)
    moved = Lane(store, session_id="s2")
    finalize(store, home, steps, entry, SESSION_EXPIRED, moved.lease)
    assert steps.steps == []
    assert not is_finalized(moved)


def test_a_session_of_the_terminal_gets_no_memories_from_a_chat(store: SessionDB, home: Path) -> None:
    lane, steps = Lane(store), Steps()
    store.create_session("mine", "cli")
    store.append_message("mine", "user", "hi")
    store.lanes.switch(lane.key, "mine")
    finalize(store, home, steps, entry_of(lane), SESSION_EXPIRED, lane.lease)
    assert [step[0] for step in steps.steps] == ["on_session_finalize", "end"]


def test_a_lost_lease_stops_it_before_the_hooks(store: SessionDB, home: Path) -> None:
    lane, steps = Lane(store), Steps()
    store.append_message("s1", "user", "hi")
    steps.error = StaleLease("another node has it")
    with pytest.raises(StaleLease):
        finalize(store, home, steps, entry_of(lane), SESSION_EXPIRED, lane.lease)
    assert [step[0] for step in steps.steps] == ["memories"]
    assert not is_finalized(lane)


def test_the_watcher_lets_the_agent_save_memories_and_calls_the_hooks(store: SessionDB, home: Path) -> None:
    lane, events = Lane(store), list[Any]()
    store.turns.release(lane.lease)
    note = Say(calls=[Call("memory", {"action": "add", "text": "Likes tea."})])
    clock = FakeClock(entry_of(lane).updated_at.timestamp() + 2 * 86_400)
    hooks = Hooks([Handler("log", ("session:*",), lambda event, context: events.append((event, context["reason"])))])

    async def run() -> None:
        with (
            ModelServer(Say("Noted."), note, Say("ok")) as server,
            SessionStore(home / "sessions", GatewayConfig(), db=store, clock=clock) as sessions,
        ):
            config = config_for(server, tools={"default": ("memory",)})
            async with brain_at(server, store, home, config=config, tools=TOOLBOX) as brain:
                await blocking(lane.take)
                await answer(brain, lane.request("I like tea"))
                await blocking(lambda: store.turns.release(lane.lease))
                db, shared = AsyncSessionDB(store), AsyncSessionStore(sessions)
                finalizer = Finalizer(shared, db, brain, hooks.emit, memory_s=30)
                watcher = ExpiryWatcher(shared, db, "n1", finalizer.finalize_session, sweep_cache=brain.sweep)
                for expected in (1, 0):
                    assert (await watcher.run_pass()).finalized == expected
                assert brain.figures().cache.entries == 0
                assert "Likes tea." in await blocking(lambda: brain.agent.memory.read(lane.owner))
            assert len(server.requests) == 3

    asyncio.run(run())
    assert events == [("on_session_finalize", "session_expired")]
    assert is_finalized(lane)
    assert lane.rows() == [("user", "I like tea"), ("assistant", "Noted.")]
