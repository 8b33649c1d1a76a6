"""The guard of the event loop: with it, no call of a store can block a loop unnoticed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from hermes.state import loop_guard
from hermes.state.asynchronous.session_db import AsyncSessionDB
from hermes.state.loop_guard import guard_event_loop
from hermes.state.provider import SessionDBProvider
from tests.support.lanes import KEY
from tests.support.stores import Opener


async def on_loop(call: Callable[[], object]) -> object:
    """Call something on the thread of the loop."""
    return call()


@pytest.mark.parametrize("named", ["get", "append", "lanes", "title"])
def test_a_call_on_the_loop_raises_and_names_itself(store: SessionDBProvider, named: str) -> None:
    store.create_session("s", "cli")
    calls: dict[str, tuple[Callable[[], object], str]] = {
        "get": (lambda: store.get_session("s"), r"read \(.*get_session"),
        "append": (lambda: store.append_message("s", "user", "hi"), r"append|write"),
        "lanes": (lambda: store.lanes.suspend(KEY), r"write \(Lanes\._set"),
        "title": (lambda: store.set_session_title("s", "a title"), r"write \(.*title"),
    }
    call, text = calls[named]
    with guard_event_loop(), pytest.raises(RuntimeError, match=text):
        asyncio.run(on_loop(call))
    assert store.message_count("s") == 0


def test_opening_on_the_loop_raises(open_store: Opener) -> None:
    with guard_event_loop(), pytest.raises(RuntimeError, match="open blocks the event loop"):
        asyncio.run(on_loop(open_store))


def test_calls_outside_the_loop_are_allowed(open_store: Opener) -> None:
    async def use() -> int:
        async with await AsyncSessionDB.open(open_store) as db:
            await db.create_session("s", "cli")
            await db.append_message("s", "user", "hi")
            await asyncio.gather(*(db.lanes.get(KEY) for _ in range(3)))
            return await db.message_count("s")

    with guard_event_loop():
        assert asyncio.run(use()) == 1
        assert open_store().message_count("s") == 1


def test_without_the_guard_a_call_on_the_loop_is_allowed(store: SessionDBProvider) -> None:
    with guard_event_loop():
        pass
    assert asyncio.run(on_loop(store.session_count)) == 0


@pytest.mark.parametrize(("value", "expected"), [("1", "True"), ("0", "False"), ("", "False")])
def test_the_environment_turns_the_guard_on(value: str, expected: str) -> None:
    shown = subprocess.run(
        [sys.executable, "-c", f"from {loop_guard.__name__} import is_on; print(is_on)"],
        env={**os.environ, "HERMES_LOOP_GUARD": value},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.strip() == expected
