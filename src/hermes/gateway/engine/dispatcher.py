"""Claims lanes that have work, and runs an actor for each."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from hermes.errors import HermesError
from hermes.gateway.engine.actor import LaneActor
from hermes.gateway.engine.outage import Outage
from hermes.log import warn

if TYPE_CHECKING:
    from hermes.gateway.engine.parts import EngineParts
    from hermes.state.lanes.types import Claim

LOOK_S = 1.0
"""How long to wait for work before looking anyway, and how long to rest after an error."""
CLAIM_S = 0.01
"""How long to wait before the next look: the claim needs a moment before the watch can see its effect."""
SPARE = 4
"""So many lanes more may work while all turns are in use, for commands that need none, such as /status and /restart."""
MOST_URGENT = 1000
FULL_S = 0.1
"""The same while no more actors may run: ready lanes stay ready, so only messages for running actors are news."""


class WorkWatch(Protocol):
    """Waits until there may be work in the database."""

    async def wait(self, timeout_s: float) -> bool:
        """Return True as soon as there may be work, False after the time."""

    async def close(self) -> None:
        """End the wait."""


class Dispatcher:
    """Runs at most `max_turns` actors at a time; an idle one only reads."""

    def __init__(self, parts: EngineParts, watch: WorkWatch) -> None:
        self.actors: dict[str, LaneActor] = {}
        self._parts = parts
        self._watch = watch
        self._wake = asyncio.Event()
        self._has_news = False
        """Whether other nodes may have stored messages since the last look."""
        self._urgent: dict[str, None] = {}
        """Lanes with a command that does not wait for a free turn, in the order of their arrival."""
        self._claiming: set[str] | None = None
        """While a claim runs: the lanes in which messages were stored since it began."""
        self._is_stopped = False
        self._claims = asyncio.Lock()
        """Held while lanes are claimed."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._claiming_fails = Outage(__name__, "no lane could be claimed")
        self._watching_fails = Outage(__name__, "the database could not be watched")

    def arrived(self, key: str) -> None:
        """Wake the actor of a lane, or look for a lane to claim."""
        actor = self.actors.get(key)
        if actor is not None:
            actor.mailbox.set()
        elif self._claiming is not None:
            self._claiming.add(key)
        self._wake.set()

    def commanded(self, key: str) -> None:
        """Wake like `arrived` after a command that needs no turn."""
        if key not in self.actors and len(self._urgent) < MOST_URGENT:
            self._urgent[key] = None
        self.arrived(key)

    async def run(self) -> None:
        """Claim lanes until `stop`."""
        watching = asyncio.create_task(self._watch_database(), name="hermes-watch")
        try:
            while not self._is_stopped:
                await self._wake.wait()
                self._wake.clear()
                try:
                    await self._wake_actors()
                    async with self._claims:
                        await self._claim_all()
                        await self._claim_urgent()
                    self._claiming_fails.worked()
                except Exception as error:  # noqa: BLE001 - without a dispatcher the node would do nothing
                    self._claiming_fails.failed(error)
                    await asyncio.sleep(LOOK_S)
                    self._wake.set()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    def stop(self) -> None:
        """Claim no more lanes; actors that run continue."""
        self._is_stopped = True
        self._wake.set()

    def is_full(self) -> bool:
        """Whether as many actors run as may run."""
        return len(self._tasks) >= self._parts.settings.max_turns

    async def settle(self, timeout_s: float | None = None) -> bool:
        """Wait until no actor runs; return False after the time."""
        try:
            async with asyncio.timeout(timeout_s):
                async with self._claims:  # a claim that has started brings one more actor
                    pass
                while self._tasks:
                    await asyncio.wait(set(self._tasks))
        except TimeoutError:
            return False
        return True

    async def _watch_database(self) -> None:
        while not self._is_stopped:
            try:
                has_news = await self._watch.wait(LOOK_S)
                self._watching_fails.worked()
                if not has_news:
                    # Servers give out ids before the commit: a message that is stored after a newer one is no news.
                    self._has_news = True
                    await self._wake_actors()
                    continue
                self._has_news = True
                self._wake.set()
                await asyncio.sleep(FULL_S if self.is_full() else CLAIM_S)
            except Exception as error:  # noqa: BLE001 - messages of other nodes would not be seen
                self._watching_fails.failed(error)
                await asyncio.sleep(LOOK_S)

    async def _wake_actors(self) -> None:
        """Wake the actors in whose lanes messages wait, if other nodes may have stored some."""
        if not self.actors or not self._has_news:
            return
        self._has_news = False
        try:
            waiting = await self._parts.db.turns.waiting_of(self._parts.settings.holder)
        except HermesError:
            self._has_news = True
            raise
        for key in waiting:
            actor = self.actors.get(key)
            if actor is not None:
                actor.mailbox.set()

    async def _claim_all(self) -> None:
        settings = self._parts.settings
        while not (self.is_full() or self._is_stopped or self._parts.draining.is_set()):
            arrived: set[str] = set()
            self._claiming = arrived
            try:
                claim = await self._parts.db.turns.claim_next(
                    settings.holder, settings.lease_s, limit=settings.most_read
                )
            finally:
                self._claiming = None
            if claim is None:
                return
            actor = self._start(claim)
            if actor.key in arrived:  # the claim may have been too early to see the message
                actor.mailbox.set()

    async def _claim_urgent(self) -> None:
        """Let commands run while all turns are in use; otherwise their lanes are claimed like all others."""
        settings, turns = self._parts.settings, self._parts.db.turns
        if not self.is_full() or self._parts.draining.is_set():
            self._urgent.clear()
        while self._urgent and len(self._tasks) < settings.max_turns + SPARE and not self._is_stopped:
            key = next(iter(self._urgent))
            del self._urgent[key]
            if key in self.actors:
                continue
            claim = await turns.acquire(key, settings.holder, settings.lease_s, limit=settings.most_read)
            if claim is not None:
                self._start(claim, has_turn=False)

    def _start(self, claim: Claim, *, has_turn: bool = True) -> LaneActor:
        actor = LaneActor(self._parts, claim, has_turn=has_turn)
        self.actors[actor.key] = actor
        task = asyncio.create_task(self._run(actor), name="hermes-lane")
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return actor

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._wake.set()  # not before: a look at a full node claims nothing

    async def _run(self, actor: LaneActor) -> None:
        try:
            await actor.run()
        except Exception as error:  # noqa: BLE001 - one lane must not stop the others
            self._parts.count("lane_errors")
            warn(__name__, "the lane %s failed: %s: %s", actor.key, type(error).__name__, error)
        finally:
            if self.actors.get(actor.key) is actor:
                del self.actors[actor.key]
