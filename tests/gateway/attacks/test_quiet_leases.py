"""A renewal of a lease that is under way while its turn ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from hermes.gateway.engine.lease_keeper import LeaseKeeper
from hermes.state.lanes.types import Lease
from tests.gateway.engine.engine_node import EngineNode


def test_a_renewal_that_comes_after_the_release_is_not_reported_as_a_lost_lease(
    make_node: Callable[..., EngineNode], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = make_node()
    turns = node.provider.turns
    is_asked, is_released, renew = threading.Event(), threading.Event(), turns.renew

    def late(lease: Lease, lease_seconds: float = 60.0) -> Lease:
        is_asked.set()
        assert is_released.wait(20)
        return renew(lease, lease_seconds)

    async def main() -> None:
        await node.say("hello")
        claim = await node.db.turns.claim_next("n1/00000001", 0.6)
        assert claim is not None
        monkeypatch.setattr(type(turns), "renew", lambda _, *given: late(*given))
        keeper = LeaseKeeper(node.db.turns, claim.lease, 0.6)
        assert await asyncio.to_thread(is_asked.wait, 20)
        await asyncio.to_thread(turns.release, claim.lease)
        await keeper.close()
        is_released.set()
        await node.db.turns.peek()
        await asyncio.sleep(0.2)
        assert not keeper.lost.is_set()

    asyncio.run(main())
    assert "lost the lease" not in caplog.text
