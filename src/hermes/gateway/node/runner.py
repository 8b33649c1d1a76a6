"""The gateway: opens the store, starts the adapters, runs turns, drains and stops."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.clock import Clock, system_clock
from hermes.config import Config, load_config, load_variables
from hermes.errors import Conflict, HermesError
from hermes.gateway.agents.brain import AgentBrain
from hermes.gateway.commands import BYPASS, STOPS, CommandRunner, CommandServices, RunningInfo, command_parser
from hermes.gateway.config_file import gateway_config
from hermes.gateway.delivery.attempt import SenderSettings
from hermes.gateway.delivery.drafts import abandon_drafts
from hermes.gateway.delivery.sender import Sender
from hermes.gateway.engine.dispatcher import Dispatcher
from hermes.gateway.engine.intake import Intake
from hermes.gateway.engine.parts import EngineParts
from hermes.gateway.engine.settings import engine_settings
from hermes.gateway.node.approval_notices import ApprovalNotices
from hermes.gateway.node.connectors import Connectors
from hermes.gateway.node.live_answers import LiveAnswers
from hermes.gateway.node.node_clock import NodeClock
from hermes.gateway.node.node_lock import NodeLock
from hermes.gateway.node.recovery import (
    announce_given_up,
    clear_marks,
    mark_running,
    resume_lanes,
    take_clean_mark,
    write_clean_mark,
)
from hermes.gateway.node.work_watch import ThreadedWatch
from hermes.gateway.people.access import Access
from hermes.gateway.people.admission import Doorkeeper
from hermes.gateway.people.limits import Limits
from hermes.gateway.store.aio import AsyncSessionStore
from hermes.gateway.store.session_store import SessionStore
from hermes.gateway.topics.routing import Topics
from hermes.gateway.upkeep.expiry import HOLDER_SUFFIX, ExpiryWatcher
from hermes.gateway.upkeep.finalizing import Finalizer
from hermes.gateway.upkeep.hooks import Hooks
from hermes.gateway.upkeep.sweeps import Sweeps
from hermes.home import get_hermes_home
from hermes.log import warn
from hermes.state.asynchronous.session_db import AsyncSessionDB
from hermes.state.provider import open_session_db

if TYPE_CHECKING:
    from hermes.gateway.config import GatewayConfig
    from hermes.gateway.engine.ports import Adapter
    from hermes.state.provider import SessionDBProvider

RESUME_S = 1.0
"""How long the start waits for lanes that are resumed."""
MakeAdapters = Callable[["GatewayRunner"], Sequence["Adapter"]]
"""Makes the adapters of a node, when its store is open."""


class GatewayRunner:
    """One node. `run` returns after `stop` or `restart`; `wants_restart` says which."""

    def __init__(
        self,
        config: Config | None = None,
        home: Path | None = None,
        *,
        node: str | None = None,
        adapters: MakeAdapters | None = None,
        opener: Callable[[], SessionDBProvider] | None = None,
        variables: Mapping[str, str] | None = None,
        clock: Clock = system_clock,
        guards_all: bool = False,
    ) -> None:
        """Create a node. With `guards_all`, users of platforms must be allowed or paired before they can talk."""
        self.home = home or get_hermes_home()
        self.config = config or load_config(self.home)
        self.settings = engine_settings(self.config, node)
        self.wants_restart = False
        self.started_at = 0.0
        self.resumed = 0
        """How many lanes were resumed at the start."""
        self._clock = NodeClock(clock)
        self._variables = variables
        self._opener = opener or (lambda: open_session_db(self.config, home=self.home))
        self._make_adapters = adapters
        self._guards_all = guards_all
        self._lock = NodeLock(self.home, self.settings.node, self.settings.holder)
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._opened = contextlib.AsyncExitStack()
        self._is_started = False

    # --- life -------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Start, work until a stop is requested, drain and stop."""
        try:
            await self.start()
            await self.wait()
        finally:
            await self.stop()

    async def start(self) -> None:
        """Open the store and start everything; raise if the configured store cannot be used."""
        try:
            await self._open()
        except BaseException:
            await self._close()
            raise
        self._is_started = True
        self._tasks += [
            asyncio.create_task(self.dispatcher.run(), name="hermes-dispatcher"),
            asyncio.create_task(self.sender.run(), name="hermes-sender"),
            asyncio.create_task(self.expiry.run(), name="hermes-expiry"),
        ]
        self.dispatcher.arrived("")
        self.connectors.start(self.adapters)
        await self.hooks.emit("gateway:startup", {"node": self.settings.node})

    async def _open(self) -> None:
        """Open what the node needs; `_close` closes it, the last first."""
        await asyncio.to_thread(self._lock.acquire)
        self._opened.push_async_callback(asyncio.to_thread, self._lock.release)
        self.db = await AsyncSessionDB.open(self._opener, threads=8)
        self._opened.push_async_callback(self.db.close)
        if self.config.sessiondb.provider != "sqlite":  # a file has no clock of its own
            await self._clock.compare(self._database_time)
            self._tasks.append(asyncio.create_task(self._clock.follow(self._database_time), name="hermes-clock"))
        self.started_at = self._clock()
        await self._build()
        await self._recover()

    async def wait(self) -> None:
        """Wait until a stop or a restart is requested."""
        await self._stopping.wait()

    def request_stop(self) -> None:
        """End the gateway after draining, also if a restart was requested before; `run` returns then."""
        self.wants_restart = False
        self._stopping.set()

    def request_restart(self) -> None:
        """End the gateway after draining, to be started again by the caller of `run`."""
        self.wants_restart = True
        self._stopping.set()

    def drain(self) -> None:
        """Start no more turns; messages are still accepted."""
        self.parts.draining.set()

    def undrain(self) -> None:
        """Start turns again; raise `Conflict` if the node is stopping."""
        if self._stopping.is_set() or not self._is_started:
            raise Conflict("the gateway is stopping", hint="wait for its end, and start it again")
        self.parts.draining.clear()
        self.dispatcher.arrived("")

    def expel(self) -> None:
        """Give up the turns that run instead of waiting for them; the next process or another node continues them."""
        self.request_stop()
        if hasattr(self, "parts"):
            self.parts.expelled.set()

    async def stop(self) -> bool:
        """Drain and stop: turns that run may end, those that cannot are continued by the next process or node.

        Return whether no turn was cut off.
        """
        if not self._is_started:
            return True
        self._is_started = False
        self.drain()
        reason = "restart_timeout" if self.wants_restart else "shutdown_timeout"
        running = [key for key, actor in self.dispatcher.actors.items() if actor.turn is not None]
        marked = await mark_running(self.parts, running, reason)
        self.dispatcher.stop()
        is_clean = await self.dispatcher.settle(self.settings.drain_timeout_s)
        self.parts.expelled.set()
        if not is_clean:
            await self.dispatcher.settle(self.settings.stop_grace_s + 5.0)
        is_clean = is_clean and not self.parts.cut_lanes
        unfinished = self.parts.cut_lanes | self.dispatcher.actors.keys()
        await clear_marks(self.parts, [key for key in marked if key not in unfinished])
        await self.sender.stop()
        await self.connectors.stop()
        await self.hooks.emit("gateway:shutdown", {"node": self.settings.node, "is_clean": is_clean})
        await self._close()
        if is_clean:
            await asyncio.to_thread(write_clean_mark, self.home)
        return is_clean

    # --- parts ------------------------------------------------------------------------------------------------------

    async def _build(self) -> None:
        """Make the parts of the node, those that others need first."""
        chats = gateway_config(self.config, self.home)
        await self._open_services(chats)
        self._make_engine(chats)
        self._make_upkeep(chats)
        self.adapters = [] if self._make_adapters is None else list(self._make_adapters(self))

    async def _open_services(self, chats: GatewayConfig) -> None:
        """Open the lanes, the hooks and the brain."""
        config, db = self.config, self.db
        store = SessionStore(
            chats.sessions_dir,
            chats,
            lambda key: self.brain.has_processes(key),
            db=db.store,
            clock=self._clock,
            uses_files=False,
        )
        self.store = AsyncSessionStore(store)
        self._opened.push_async_callback(self.store.close)
        self.hooks = await asyncio.to_thread(Hooks.load, self.home)
        self._opened.callback(self.hooks.close)
        self.brain = await asyncio.to_thread(self._make_brain)
        self._opened.push_async_callback(self._close_brain)
        for each in config.tools:
            self.brain.agent.toolsets(each)  # an unknown name stops the start, instead of every turn
        self.limits = Limits(config.gateway.limits, db.quotas, chats.zone)
        self.finalizer = Finalizer(
            self.store, db, self.brain, self.hooks.emit, memory_s=config.gateway.memory_turn_seconds
        )

    def _make_engine(self, chats: GatewayConfig) -> None:
        """Make what accepts messages, runs turns and sends replies."""
        db, settings = self.db, self.settings
        parts = self.parts = self._make_parts(chats)
        self.watch = ThreadedWatch(db.store, settings.holder)
        self._opened.push_async_callback(self.watch.close)
        self.dispatcher = Dispatcher(parts, self.watch)
        doorkeeper = self.doorkeeper = Doorkeeper(
            chats, Access.of(self.config), db.store, self._clock, guards_all=self._guards_all
        )
        self.intake = Intake(parts, command_parser(chats.reset_triggers), doorkeeper.refusal)
        self.connectors = Connectors(parts, self.intake.receive)
        sending = SenderSettings(reply_ttl_s=settings.reply_ttl_s, zone=chats.zone)
        self.sender = Sender(db.outbox, parts.adapters, settings.holder, sending)
        parts.arrived = self.dispatcher.arrived
        parts.commanded = self.dispatcher.commanded
        parts.is_full = self.dispatcher.is_full
        parts.delivered = self._delivered
        parts.prepare_chat = self._prepare_chat
        parts.watcher = LiveAnswers(parts)
        self.notices = ApprovalNotices(parts, lambda: self.adapters)
        self.brain.on_request = self.notices.requested

    def _make_parts(self, chats: GatewayConfig) -> EngineParts:
        """Return the services that the actors share."""
        config, db, settings = self.config, self.db, self.settings
        services = CommandServices(
            store=self.store,
            db=db,
            brain=self.brain,
            config=config,
            gateway_config=chats,
            access=Access.of(config),
            now=self._clock,
            node=settings.node,
            started_at=self.started_at,
            emit=self.hooks.emit,
            finalize=self.finalizer.finalize_session,
            running=self._running_info,
            restart=self.request_restart,
            limits=self.limits,
            topics_of=self._topics_of,
        )
        return EngineParts(
            settings=settings,
            config=config,
            gateway_config=chats,
            db=db,
            store=self.store,
            brain=self.brain,
            clock=self._clock,
            run_command=CommandRunner(services),
            bypass=BYPASS,
            stops=STOPS,
            topics=Topics(db, self.store),
            limits=self.limits,
            emit=self.hooks.emit,
            finalize=self.finalizer.finalize_session,
            has_processes=self.brain.has_processes,
        )

    def _make_upkeep(self, chats: GatewayConfig) -> None:
        """Make what ends expired sessions and removes old rows."""
        config, db, settings = self.config, self.db, self.settings
        self.expiry = ExpiryWatcher(
            self.store,
            db,
            settings.holder,
            self.finalizer.finalize_session,
            lease_s=settings.lease_s,
            max_age_days=chats.session_store_max_age_days,
            sweeps=Sweeps(db, dedupe_days=config.gateway.dedupe_days, on_expired=self.notices.expired),
            sweep_cache=self.brain.sweep,
        )

    def _make_brain(self) -> AgentBrain:
        variables = load_variables(self.home) if self._variables is None else self._variables
        is_file = self.config.sessiondb.provider == "sqlite"
        database = self.config.sessiondb.sqlite_file(self.home) if is_file else None
        return AgentBrain(self.db.store, self.config, self.home, variables, database=database, clock=self._clock)

    async def _recover(self) -> None:
        """Free the lanes of the last process of this node, and resume what was cut off."""
        is_clean = await asyncio.to_thread(take_clean_mark, self.home)
        if not is_clean and not (await self.db.turns.peek()).newest_id:
            # No message was ever accepted here: the lanes are imported, and only their activity says what was running.
            await self.store.suspend_recently_active()
        if self._lock.previous:
            await self.db.turns.end_leases(self._lock.previous)
            await self.db.turns.end_leases(self._lock.previous + HOLDER_SUFFIX)
            await self.db.outbox.end_leases(self._lock.previous)
            await self.db.connectors.end_leases(self._lock.previous)
            await asyncio.to_thread(self._lock.forget_previous)
        if not is_clean:
            await announce_given_up(self.parts)
        # After an import this can be many lanes; the node starts meanwhile, and a lane's own message continues it too.
        resuming = asyncio.create_task(self._resume(), name="hermes-resume")
        self._tasks.append(resuming)
        await asyncio.wait({resuming}, timeout=RESUME_S)

    async def _database_time(self) -> float:
        return (await self.db.turns.peek()).now

    async def _resume(self) -> None:
        """Resume lanes and announce requests; while the database cannot be reached, try again."""
        while True:
            try:
                self.resumed = await resume_lanes(self.parts)
                await self.notices.announce_pending()
                return
            except HermesError as error:
                warn(__name__, "the lanes are not resumed yet: %s", error)
                await asyncio.sleep(RESUME_S)

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            await self._opened.aclose()  # all of it, also if one of them raises
        except Exception as error:  # noqa: BLE001 - the end of a node has no other one to tell
            warn(__name__, "the gateway was not closed cleanly: %s: %s", type(error).__name__, error)

    async def _close_brain(self) -> None:
        if not await self.brain.close(self.settings.stop_grace_s):
            warn(__name__, "some turns, or titles of sessions, were not finished in time and are given up")

    def _delivered(self) -> None:
        self.sender.wake()
        for adapter in self.adapters:
            wake = getattr(adapter, "wake", None)
            if wake is not None:
                wake()

    async def _prepare_chat(self, session_key: str, reply_key: str) -> None:
        """Name replies that did not arrive, and complete the previews of turns that are over."""
        await self.sender.undelivered_notices(session_key)
        if self.parts.gateway_config.has_streaming:
            await abandon_drafts(
                self.db.outbox,
                session_key,
                self.parts.adapters,
                ttl_s=self.settings.reply_ttl_s,
                except_key=reply_key,
            )

    async def _topics_of(self, platform: str, account: str) -> tuple[bool | None, bool | None]:
        """Ask an account about topics of private chats; None: not known."""
        ask = getattr(self.parts.adapters.get((platform, account)), "topics", None)
        return (None, None) if ask is None else await ask()

    def _running_info(self, session_key: str) -> RunningInfo | None:
        actor = self.dispatcher.actors.get(session_key)
        if actor is None or actor.turn is None or actor.turn.running is None:
            return None
        seconds = asyncio.get_running_loop().time() - actor.turn.started_at
        return RunningInfo(actor.turn.running.activity, seconds)

    def running_turns(self) -> dict[str, RunningInfo]:
        """Return the turns that run in this process, by lane."""
        found = {key: self._running_info(key) for key in self.dispatcher.actors}
        return {key: info for key, info in found.items() if info is not None}
