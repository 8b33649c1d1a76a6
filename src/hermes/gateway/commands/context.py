"""What a command gets: the message, the lane with its lease, and the services of the node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from hermes.agent.conversation import Conversation
    from hermes.config import Config
    from hermes.gateway.config import GatewayConfig
    from hermes.gateway.entry import SessionEntry
    from hermes.gateway.people.access import Access
    from hermes.gateway.people.limits import Limits
    from hermes.gateway.source import SessionSource
    from hermes.gateway.store.aio import AsyncSessionStore
    from hermes.state.asynchronous.session_db import AsyncSessionDB
    from hermes.state.lanes.types import InboxRow, Lease
    from hermes.state.owner import Owner

T = TypeVar("T")


class CommandBrain(Protocol):
    """What commands need of the brain."""

    def forget(self, session_key: str) -> None:
        """Drop what is cached for a lane."""

    def set_model(self, session_key: str, name: str | None) -> None:
        """Use a model for the next turns of a lane; None is the configured one."""

    def check_model(self, name: str) -> str:
        """Open a model and return its name, or raise; this blocks."""

    def model_of(self, session_key: str) -> str:
        """Return the name of the model of a lane's next turn."""

    async def work(
        self, session_key: str, session_id: str, owner: Owner, lease: Lease, function: Callable[[Conversation], T]
    ) -> T:
        """Run a function with the lane's conversation on a thread."""


class Emit(Protocol):
    """Runs the hooks of an event."""

    async def __call__(self, event: str, context: Mapping[str, Any]) -> None:
        """Run the hooks; this never raises."""


class RunBlocking(Protocol):
    """Runs a function that may block, outside the event loop."""

    async def __call__(self, function: Callable[[], T]) -> T:
        """Run the function and return its result."""


@dataclass(frozen=True, slots=True)
class RunningInfo:
    """A turn that runs now."""

    activity: str = ""
    seconds: float = 0.0
    """How long it has been running."""


async def _emit_nothing(event: str, context: Mapping[str, Any]) -> None:
    return None


async def _run_on_thread(function: Callable[[], T]) -> T:
    return await asyncio.to_thread(function)


async def _unknown_topics(platform: str, account: str) -> tuple[bool | None, bool | None]:
    return None, None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandServices:
    """The services of a node that commands use."""

    store: AsyncSessionStore
    db: AsyncSessionDB
    brain: CommandBrain
    config: Config
    gateway_config: GatewayConfig
    access: Access
    now: Callable[[], float]
    node: str = ""
    started_at: float = 0.0
    """When the process started: a `/restart` that was accepted before is not repeated."""
    emit: Emit = _emit_nothing
    finalize: Callable[[SessionEntry, str, Lease], Awaitable[None]] | None = None
    """Ends a session before `/new` starts another one, and runs its hook; None: only the hook is run."""
    running: Callable[[str], RunningInfo | None] = lambda key: None
    """Returns the turn of a lane that runs on this node."""
    restart: Callable[[], None] = lambda: None
    """Requests that the node drains and restarts, and returns at once."""
    topics_of: Callable[[str, str], Awaitable[tuple[bool | None, bool | None]]] = _unknown_topics
    """Asks an account whether private chats with it can have topics, and whether users may create them."""
    limits: Limits | None = None
    run_blocking: RunBlocking = _run_on_thread


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """A command of a user in a lane that this node has leased."""

    name: str
    args: str
    row: InboxRow
    source: SessionSource
    session_key: str
    lease: Lease
    services: CommandServices
    is_turn_running: bool = False

    async def confirm_lease(self) -> None:
        """Raise `StaleLease` if another node has the lane, so that a command does not change it twice."""
        await self.services.db.turns.renew(self.lease, self.services.config.gateway.lease_seconds)
