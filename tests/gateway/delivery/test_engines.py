"""Delivery on every engine: sent by one node, taken over by another, and pushed to clients of the local socket."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes.gateway.delivery.drafts import abandon_drafts
from hermes.platforms.local.adapter import LocalAdapter, LocalSettings
from hermes.platforms.local.client import LocalClient
from hermes.state.asynchronous.session_db import AsyncSessionDB
from hermes.state.lanes.types import Intent
from hermes.state.provider import SessionDBProvider
from tests.gateway.delivery.faulty_platform import KEY, FaultyAdapter, ended, reply, run, sending, take_over
from tests.support.engines import clock, open_store, stores
from tests.support.stores import Opener
from tests.support.waiting import LIMIT_S

__all__ = ["clock", "open_store", "store", "stores"]


@pytest.fixture
def store(open_store: Opener) -> SessionDBProvider:
    """An empty store."""
    return open_store()


def test_messages_are_sent_in_order_and_taken_over(store: SessionDBProvider) -> None:
    async def test() -> None:
        adapter = FaultyAdapter(can_tell=True, faults=["ok", "down", "hang after"])
        db = AsyncSessionDB(store)
        keys = [f"k{number}" for number in range(4)]
        for key in keys:
            await db.outbox.intend(reply(key))
        async with sending(db, adapter) as sender:
            async with asyncio.timeout(LIMIT_S):
                while adapter.faults:
                    await asyncio.sleep(0.005)
            assert await sender.stop(timeout_s=0.05) == 1
        await take_over(db)
        async with sending(db, adapter, node="n2/1") as second:
            rows = await ended(db, *keys)
            assert await second.undelivered_notices(KEY) == 0
            assert await abandon_drafts(db.outbox, KEY) == 0
        assert {row["state"] for row in rows} == {"sent"}
        assert adapter.server.posted == keys

    run(test())


def test_local_replies_are_pushed_and_confirmed(store: SessionDBProvider, tmp_path: Path) -> None:
    async def test() -> None:
        db = AsyncSessionDB(store)
        adapter = LocalAdapter(tmp_path, db.outbox, settings=LocalSettings(poll_s=0.02))
        await adapter.start(None)  # type: ignore[arg-type]
        try:
            for confirmed in (0, 2):
                async with await LocalClient.connect(tmp_path) as client:
                    await client.subscribe("c")
                    keys = [f"k{number}" for number in range(confirmed, 4)]
                    for key in keys:
                        await db.outbox.intend(Intent(key, {"chat_id": "c", "text": "x"}, "local", session_key="l"))
                    taken = [(await client.next(LIMIT_S)).delivery_id for _ in range(2)]
                    assert taken == keys[:2]
            rows = await ended(db, "k0", "k1", "k2", "k3")
            assert {row["state"] for row in rows} == {"sent"}
        finally:
            await adapter.stop()

    run(test())
