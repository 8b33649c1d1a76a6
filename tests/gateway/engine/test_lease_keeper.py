"""Keeping a lease: renewed in time, and lost as soon as another node may have the lane."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from hermes.errors import StaleLease, StoreUnavailable
from hermes.gateway.engine.lease_keeper import LeaseKeeper
from hermes.state.asynchronous.lanes import AsyncTurns
from hermes.state.lanes.types import Lease

LEASE = Lease("agent:main:telegram:dm:1", "n1/00000000", 1, 0.0)


class Renewals:
    """A database that renews or fails."""

    def __init__(self, respond: Callable[[int], Any]) -> None:
        self.calls = 0
        self._respond = respond

    async def renew(self, lease: Lease, seconds: float) -> Lease:
        self.calls += 1
        response = self._respond(self.calls)
        if isinstance(response, Exception):
            raise response
        return lease


def keep(respond: Callable[[int], Any], seconds: float, lease_s: float = 0.15) -> tuple[bool, int]:
    """Keep a lease for a time; return whether it was lost, and how often it was renewed."""

    async def main() -> tuple[bool, int]:
        turns = Renewals(respond)
        keeper = LeaseKeeper(cast("AsyncTurns", turns), LEASE, lease_s)
        try:
            await asyncio.wait_for(keeper.lost.wait(), seconds)
        except TimeoutError:
            pass
        finally:
            await keeper.close()
        return keeper.lost.is_set(), turns.calls

    return asyncio.run(main())


def test_a_lease_is_renewed_again_and_again() -> None:
    is_lost, calls = keep(lambda number: "renewed", 0.5, lease_s=0.9)
    assert not is_lost
    assert calls >= 1


def test_a_lease_that_another_node_has_is_lost_at_once() -> None:
    assert keep(lambda number: StaleLease("lost"), 20) == (True, 1)


def test_a_database_that_fails_for_a_moment_does_not_cost_the_lease() -> None:
    is_lost, calls = keep(lambda number: StoreUnavailable("down") if number == 1 else "renewed", 1.0, lease_s=1.5)
    assert not is_lost
    assert calls >= 1


def test_a_lease_is_lost_when_its_time_is_over_and_the_database_still_fails() -> None:
    for error in (StoreUnavailable("down"), RuntimeError("can't start new thread")):
        is_lost, _ = keep(lambda number, error=error: error, 20)  # type: ignore[misc]
        assert is_lost


def test_a_lease_is_lost_when_its_time_is_over_and_the_database_does_not_respond() -> None:
    async def main() -> None:
        turns = SilentDatabase()
        keeper = LeaseKeeper(cast("AsyncTurns", turns), LEASE, 0.15)
        try:
            await asyncio.wait_for(keeper.lost.wait(), 20)
        finally:
            await keeper.close()
        assert turns.calls == 1

    asyncio.run(main())


class SilentDatabase:
    """A database that never responds."""

    def __init__(self) -> None:
        self.calls = 0

    async def renew(self, lease: Lease, seconds: float) -> Lease:
        self.calls += 1
        await asyncio.Event().wait()
        raise AssertionError
