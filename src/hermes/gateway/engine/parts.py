"""What the actors of a node share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from hermes.gateway.engine.ports import Brain
from hermes.gateway.engine.settings import EngineSettings

if TYPE_CHECKING:
    from hermes.config import Config
    from hermes.gateway.config import GatewayConfig
    from hermes.gateway.engine.messages import Message
    from hermes.gateway.engine.ports import Adapter, RunningTurn, TurnRequest
    from hermes.gateway.entry import SessionEntry
    from hermes.gateway.source import SessionSource
    from hermes.gateway.store.aio import AsyncSessionStore
    from hermes.gateway.topics.routing import Topics
    from hermes.state.asynchronous.session_db import AsyncSessionDB
    from hermes.state.lanes.types import Intent, Lease
    from hermes.state.owner import Owner


class Emit(Protocol):
    """Runs the hooks of an event."""

    async def __call__(self, event: str, context: Mapping[str, Any]) -> None:
        """Run the hooks; this never raises."""


class TurnLimits(Protocol):
    """Decides before a turn whether a user has used too much."""

    async def begin(self, owner: Owner, source: SessionSource, now: float) -> str | None:
        """Count a turn; return why it is refused, or None."""

    async def book(self, owner: Owner, source: SessionSource, *, tokens: int, cost_usd: float, now: float) -> None:
        """Count what a turn has used."""


@dataclass(frozen=True, slots=True)
class CommandTurn:
    """A turn that a command starts for its own message."""

    text: str = ""
    is_retry: bool = False
    approval_id: str | None = None


@dataclass(frozen=True, slots=True)
class LaneMessage:
    """A message that a command puts into a lane, its own or another one."""

    session_key: str
    payload: Mapping[str, Any]
    kind: str = "internal"
    delivery_id: str | None = None
    platform: str = ""
    account: str = ""


@dataclass(frozen=True, slots=True)
class CommandReply:
    """What a command does."""

    text: str = ""
    turn: CommandTurn | None = None
    others: tuple[LaneMessage, ...] = ()


class RunCommandFunction(Protocol):
    """Runs a command of a chat."""

    async def __call__(
        self, message: Message, session_key: str, lease: Lease, *, is_turn_running: bool
    ) -> CommandReply:
        """Run a command and return its reply."""


class Watcher(Protocol):
    """Shows an answer while it is written."""

    def start(self, request: TurnRequest, running: RunningTurn) -> None:
        """Show the answer of a turn from now on."""

    async def end(self, turn_id: str, text: str) -> Intent | None:
        """Stop showing it; if there is a preview, return the intent that completes it as stopped with this text."""


async def _emit_nothing(event: str, context: Mapping[str, Any]) -> None:
    return None


async def _finalize_nothing(entry: SessionEntry, reason: str, lease: Lease) -> None:
    return None


@dataclass(kw_only=True)
class EngineParts:
    """The services of a node."""

    settings: EngineSettings
    config: Config
    gateway_config: GatewayConfig
    db: AsyncSessionDB
    store: AsyncSessionStore
    brain: Brain
    clock: Callable[[], float]
    """The wall clock, for times of lanes."""
    run_command: RunCommandFunction
    bypass: Collection[str]
    stops: Collection[str]
    topics: Topics | None = None
    limits: TurnLimits | None = None
    emit: Emit = _emit_nothing
    finalize: Callable[[SessionEntry, str, Lease], Awaitable[None]] = _finalize_nothing
    prepare_chat: Callable[[str, str], Awaitable[None]] | None = None
    """Called before a turn with the key of its lane: completes old previews, and names replies that did not arrive."""
    has_processes: Callable[[str], bool] | None = None
    """Whether processes of a lane run in the background; this blocks."""
    watcher: Watcher | None = None
    adapters: dict[tuple[str, str], Adapter] = field(default_factory=dict)
    delivered: Callable[[], None] = lambda: None
    """Wakes the senders after an intent was stored."""
    arrived: Callable[[str], None] = lambda key: None
    """Wakes the node after a message was stored in a lane."""
    commanded: Callable[[str], None] = lambda key: None
    """The same after a command that needs no turn."""
    is_full: Callable[[], bool] = lambda: False
    """Whether as many lanes work as may, so that others with work wait."""
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    expelled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the time for draining is over: turns that still run are given up."""
    cut_lanes: set[str] = field(default_factory=set)
    """The lanes whose turn was given up by the end of draining."""
    last_tries: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Turns whose messages are tried for the last time start one by one, so that a message that stops the process does
    not use up the tries of others."""
    counters: dict[str, int] = field(default_factory=dict)

    def count(self, name: str, number: int = 1) -> None:
        """Count an event for the metrics."""
        self.counters[name] = self.counters.get(name, 0) + number
