"""The asynchronous view has the operations of the view."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes.errors import InvalidValue, UnknownSession
from hermes.state.asynchronous.operation import Operation
from hermes.state.asynchronous.owner_view import AsyncOwnerView
from hermes.state.asynchronous.session_db import AsyncSessionDB
from hermes.state.owner import EVERYBODY, owner_of
from hermes.state.owner_view import OwnerView
from hermes_state import SessionDB

ALICE, BOB = owner_of("telegram", "1"), owner_of("telegram", "2")


def public(kind: type[object]) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_async_view_has_every_name_of_the_view() -> None:
    assert public(AsyncOwnerView) == public(OwnerView)


@pytest.mark.parametrize("name", sorted(public(AsyncOwnerView) & public(AsyncSessionDB)))
def test_async_view_operations_write_or_read_like_the_store(name: str) -> None:
    own, whole = vars(AsyncOwnerView).get(name), vars(AsyncSessionDB).get(name)
    if isinstance(own, Operation):
        assert isinstance(whole, Operation)
        assert own.is_write == whole.is_write


def test_async_view_hides_the_sessions_of_others(tmp_path: Path) -> None:
    async def talk() -> None:
        async with await AsyncSessionDB.open(lambda: SessionDB(tmp_path / "state.db")) as store:
            alice, bob = store.for_owner(ALICE), store.for_owner(BOB)
            await alice.start_session("s", "telegram", {"role": "user", "content": "hello"})
            assert await bob.get_session("s") is None
            with pytest.raises(UnknownSession):
                await bob.append_message("s", "user", "mine now")
            assert [row["id"] async for row in alice.iter_export()] == ["s"]
            assert [row["id"] async for row in bob.iter_export()] == []
            assert [row["owner"] for row in await alice.search_sessions()] == [ALICE.stored]

    asyncio.run(talk())


def test_async_view_cannot_be_widened(tmp_path: Path) -> None:
    async def widen() -> None:
        async with await AsyncSessionDB.open(lambda: SessionDB(tmp_path / "state.db")) as store:
            assert store.for_owner(EVERYBODY).narrowed_to(BOB).asker == store.for_owner(BOB).owner == BOB
            with pytest.raises(InvalidValue):
                store.for_owner(BOB).narrowed_to(EVERYBODY)
            with pytest.raises(InvalidValue):
                store.for_owner(None)  # type: ignore[arg-type]

    asyncio.run(widen())
