"""A chat of one user for tests of the brain: a lane with its session, its lease and a model server."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from hermes.agent.tools.registry import Registry
from hermes.config import AgentConfig, Config, ModelConfig
from hermes.gateway import Platform, SessionSource
from hermes.gateway.agents.brain import AgentBrain
from hermes.gateway.engine.ports import TurnMessage, TurnRequest, TurnResult
from hermes.state.lanes.types import Lease, NewSession, Start
from hermes.state.owner import Owner, owner_of
from hermes.state.provider import SessionDBProvider
from tests.agent.talking import TOOLS
from tests.support.modelserver import ModelServer, Received, Say

T = TypeVar("T")

NODE = "n1"
TEST_TOOLS = {"default": ("test",)}


def config_for(server: ModelServer | None, **sections: Any) -> Config:
    """A configuration with the model of a server, or the offline model, without titles."""
    model = (
        ModelConfig(provider="offline")
        if server is None
        else ModelConfig(base_url=server.base_url, default="test-model", attempts=1)
    )
    return Config(model=model, agent=AgentConfig(auto_title=False), **{"tools": TEST_TOOLS} | sections)


@dataclass
class Lane:
    """A chat."""

    store: SessionDBProvider
    user: str = "7"
    session_id: str = "s1"
    node: str = NODE
    lease: Lease = field(init=False)

    def __post_init__(self) -> None:
        session = NewSession(self.session_id, "telegram", user_id=self.user)
        source = self.source.to_dict()
        self.store.lanes.resolve(self.key, lambda *_: Start(session, {"origin": source, "platform": "telegram"}))
        self.take()

    @property
    def key(self) -> str:
        return f"agent:main:telegram:dm:{self.user}"

    @property
    def owner(self) -> Owner:
        return owner_of("telegram", self.user)

    @property
    def source(self) -> SessionSource:
        return SessionSource(Platform.TELEGRAM, self.user, user_id=self.user)

    def take(self, seconds: float = 60.0) -> Lease:
        """Lease the lane for its node."""
        claim = self.store.turns.acquire(self.key, self.node, seconds)
        assert claim is not None
        self.lease = claim.lease
        return claim.lease

    def request(self, *texts: str, **fields: Any) -> TurnRequest:
        """A turn that answers texts, whose uids are the texts themselves."""
        messages = [TurnMessage(f"uid {text}", text) for text in texts]
        request = TurnRequest(self.key, self.session_id, self.owner, self.source, self.lease, "t1", messages)
        return replace(request, **fields)

    def rows(self) -> list[tuple[str, Any]]:
        """The stored messages of the session by role and content."""
        return [(row["role"], row["content"]) for row in self.store.get_messages(self.session_id)]


@asynccontextmanager
async def brain_at(
    server: ModelServer | None, store: SessionDBProvider, home: Path, *, config: Config | None = None, **options: Any
) -> AsyncIterator[AgentBrain]:
    """A brain whose model is a server, or offline."""
    options = {"tools": TOOLS} | options
    made = await asyncio.to_thread(
        lambda: AgentBrain(store, config or config_for(server), home, {"HOME": str(home)}, **options)
    )
    try:
        yield made
    finally:
        assert await made.close(20)


async def answer(brain: AgentBrain, request: TurnRequest) -> TurnResult:
    """Run a turn to its end."""
    return await asyncio.wait_for(brain.start(request).result(), 60)


async def until(is_so: Callable[[], bool], what: str) -> None:
    """Wait on the event loop until a condition is true."""
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        await asyncio.sleep(0.005)


async def blocking(work: Callable[[], T]) -> T:
    """Call the synchronous store beside the event loop."""
    return await asyncio.to_thread(work)


def offer(store: SessionDBProvider, home: Path, *messages: TurnMessage) -> list[bool]:
    """Offer messages to a turn while the model is writing, and return which of them the turn takes."""
    lane, started, may_end = Lane(store), threading.Event(), threading.Event()

    def slowly(request: Received) -> Say:
        started.set()
        may_end.wait(20)
        return Say("First.")

    async def use() -> list[bool]:
        async with brain_at(server, store, home) as brain:
            running = brain.start(lane.request("hi"))
            await until(started.is_set, "the model is asked")
            taken = [running.steer(each) for each in messages]
            may_end.set()
            await running.result()
            return taken

    with ModelServer(slowly, Say("Second.")) as server:
        return asyncio.run(use())


def registry_of(*tools: Any) -> Registry:
    """A registry of tools of a test."""
    return Registry(tools)


Test = Callable[[], Coroutine[Any, Any, None]]
Texts = Sequence[str]
