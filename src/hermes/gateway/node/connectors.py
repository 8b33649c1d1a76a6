"""Runs the adapters of a node; an account that allows only one poller is polled by one node of all."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes.errors import HermesError, StaleLease
from hermes.gateway.engine.ports import MaybeSent, NotSent
from hermes.log import warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.gateway.engine.parts import EngineParts
    from hermes.gateway.engine.ports import Adapter, Receive
    from hermes.state.lanes.types import ConnectorLease

RETRY_S = (1.0, 2.0, 5.0, 15.0, 60.0)
STOP_S = 10.0
"""How long an adapter may take to disconnect."""


class Connectors:
    """Starts adapters, restarts those that fail, and stops them."""

    def __init__(self, parts: EngineParts, receive: Receive) -> None:
        self.states: dict[str, str] = {}
        """What each adapter does now, by its name."""
        self._parts = parts
        self._receive = receive
        self._tasks: list[asyncio.Task[None]] = []
        self._failures: dict[str, int] = {}
        """How often each adapter has failed since it was last connected."""

    def start(self, adapters: Sequence[Adapter]) -> None:
        """Start adapters, each in its own task."""
        self._tasks = [asyncio.create_task(self._keep(each), name=f"hermes-{each.platform}") for each in adapters]

    async def stop(self) -> None:
        """Stop all adapters and give their leases back."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _keep(self, adapter: Adapter) -> None:
        name = name_of(adapter)
        while True:
            try:
                if adapter.needs_one_poller:
                    await self._run_leased(adapter)
                else:
                    await self._run(adapter, None)
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - a platform that cannot be reached must not stop the others
                self.states[name] = f"not connected: {_described(error)}"
                failures = self._failures.get(name, 0)
                self._failures[name] = failures + 1
                if failures == 0:
                    warn(__name__, "%s is not connected: %s", name, _described(error))
                await asyncio.sleep(RETRY_S[min(failures, len(RETRY_S) - 1)])

    async def _run_leased(self, adapter: Adapter) -> None:
        """Wait for the lease of the account, then poll as long as this node has it."""
        name, seconds = f"connector:{name_of(adapter)}", self._parts.settings.lease_s
        is_noted = False
        while True:
            lease = await self._parts.db.connectors.acquire(name, self._parts.settings.holder, seconds)
            if lease is not None:
                break
            if not is_noted:
                is_noted = True
                holder = await self._parts.db.connectors.holder(name)
                other = "another node" if holder is None else holder.holder.partition("/")[0]
                self.states[name_of(adapter)] = f"polled by {other}"
                warn(__name__, "%s is polled by %s; this node waits", name_of(adapter), other)
            await asyncio.sleep(min(seconds / 3, 5.0))
        try:
            await self._run(adapter, lease)
        finally:
            try:
                await self._parts.db.connectors.release(lease)
            except HermesError as error:
                warn(__name__, "the lease of %s ends by itself: %s", name_of(adapter), error)

    async def _run(self, adapter: Adapter, lease: ConnectorLease | None) -> None:
        key, name = (adapter.platform, adapter.account), name_of(adapter)
        renewing = None if lease is None else asyncio.ensure_future(self._renew(lease))
        try:
            await adapter.start(self._receive)
            self._parts.adapters[key] = adapter
            self.states[name] = "connected"
            self._failures[name] = 0
            await (asyncio.Event().wait() if renewing is None else renewing)
        finally:
            if renewing is not None:
                renewing.cancel()
            self._parts.adapters.pop(key, None)
            self.states[name] = "stopped"
            await self._disconnect(adapter)

    async def _disconnect(self, adapter: Adapter) -> None:
        """Stop an adapter; one that fails or hangs keeps neither the others nor the end of the node waiting."""
        try:
            await asyncio.wait_for(adapter.stop(), STOP_S)
        except Exception as error:  # noqa: BLE001 - a platform that cannot be reached must not stop the others
            warn(__name__, "%s was not disconnected: %s", name_of(adapter), _described(error))

    async def _renew(self, lease: ConnectorLease) -> None:
        """Renew a lease for ever; raise when it is lost."""
        seconds = self._parts.settings.lease_s
        loop = asyncio.get_running_loop()
        good_until = loop.time() + seconds
        while True:
            await asyncio.sleep(seconds / 3)
            asked_at = loop.time()
            try:
                async with asyncio.timeout_at(good_until):  # a database that does not respond renews nothing
                    await self._parts.db.connectors.renew(lease, seconds)
                good_until = asked_at + seconds
            except StaleLease:
                raise
            except HermesError:
                if loop.time() >= good_until:
                    raise


def name_of(adapter: Adapter) -> str:
    """Return the name of an adapter: its platform, and its account if there are several."""
    return f"{adapter.platform}:{adapter.account}" if adapter.account else adapter.platform


def _described(error: Exception) -> str:
    """Return the text of an error; of one that is not made for people, with its type."""
    is_for_people = isinstance(error, HermesError | NotSent | MaybeSent) and str(error)
    return str(error) if is_for_people else f"{type(error).__name__}: {error}".rstrip(": ")
