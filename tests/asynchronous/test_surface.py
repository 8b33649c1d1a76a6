"""The asynchronous store has the operations of the store."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import hermes.state
import hermes_state
from hermes.errors import HermesError
from hermes.state.asynchronous.operation import Operation
from hermes.state.asynchronous.session_db import AsyncSessionDB
from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB
from tests.support.calls import READS, WRITES, Call, fill

GROUPS = {"approvals", "connectors", "inbox", "lanes", "outbox", "quotas", "turns"}
PLAIN = {"MAX_TITLE_LENGTH", "capabilities", "for_owner", "read_only", "sanitize_title", *GROUPS}


class Recorder:
    """A stand-in for a store that records each call and its arguments."""

    def __init__(self) -> None:
        self.called: tuple[str, tuple[Any, ...], dict[str, Any]] = ("", (), {})

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def note(*args: Any, **kwargs: Any) -> Any:
            self.called = (name, args, kwargs)
            return {"ok": True}

        return note


def recorded_call(call: Call, sample: Any) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """Return the method and arguments that a call uses."""
    recorder = Recorder()
    call(recorder, sample)  # type: ignore[arg-type]
    return recorder.called


def public(kind: type[object]) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def operations() -> dict[str, Operation[..., Any]]:
    found = {name: inspect.getattr_static(AsyncSessionDB, name) for name in public(AsyncSessionDB)}
    return {name: each for name, each in found.items() if isinstance(each, Operation)}


def test_async_store_has_every_name_of_a_store() -> None:
    assert public(AsyncSessionDB) - {"open"} == public(SessionDBProvider)


def test_every_operation_is_awaited() -> None:
    assert {*operations(), *PLAIN, "close", "iter_export"} == public(SessionDBProvider)


def test_every_write_is_marked_as_a_write() -> None:
    writes = {name for name, each in operations().items() if each.is_write}
    assert writes == {*WRITES, "initialize"}


@pytest.mark.parametrize("name", sorted(operations()))
def test_an_operation_has_the_docstring_and_parameters_of_the_store(name: str, tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as store:
        mine, theirs = getattr(AsyncSessionDB(store), name), getattr(SessionDBProvider, name)
        assert mine.__doc__ == theirs.__doc__
        assert inspect.signature(mine) == inspect.signature(theirs)
        assert asyncio.iscoroutinefunction(mine)


def test_every_operation_returns_what_the_store_returns(tmp_path: Path) -> None:
    sample_of: dict[str, Any] = {}
    for name in ("plain", "awaited"):
        with SessionDB(tmp_path / f"{name}.db") as store, SessionDB(tmp_path / f"{name}-other.db") as other:
            sample_of[name] = fill(store, other, tmp_path / f"{name}-other.db")

    async def awaited_results() -> dict[str, Any]:
        async with await AsyncSessionDB.open(lambda: SessionDB(tmp_path / "awaited.db")) as db:
            found = {}
            for name, call in {**READS, **WRITES}.items():
                if name in ("health", "iter_export"):
                    continue
                method, args, kwargs = recorded_call(call, sample_of["awaited"])
                operation: Callable[..., Coroutine[Any, Any, Any]] = getattr(db, method)
                try:
                    found[name] = shape(await operation(*args, **kwargs))
                except HermesError as exc:
                    found[name] = exc.code
            return found

    with SessionDB(tmp_path / "plain.db") as store:
        expected = {
            name: outcome(call, store, sample_of["plain"])
            for name, call in {**READS, **WRITES}.items()
            if name not in ("health", "iter_export")
        }
    assert asyncio.run(awaited_results()) == expected


def outcome(call: Call, store: SessionDB, sample: Any) -> Any:
    try:
        return shape(call(store, sample))
    except HermesError as exc:
        return exc.code


def shape(value: Any) -> Any:
    """Return a result without values that depend on the time."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items() if name not in VOLATILE}
    if isinstance(value, list | tuple):
        return [shape(each) for each in value]
    return value if isinstance(value, str | int | type(None)) else type(value).__name__


VOLATILE = {"active_tick", "uid", "timestamp", "at", "cursor", "session_id", "id"}


def test_async_store_is_exported_with_the_stores() -> None:
    assert hermes.state.AsyncSessionDB is hermes_state.AsyncSessionDB is AsyncSessionDB
