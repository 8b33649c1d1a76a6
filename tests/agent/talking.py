"""Helpers: an agent with a model at the server of a test, and a listener."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hermes.agent.agent import Agent
from hermes.agent.conversation import Conversation
from hermes.agent.history.projection import project
from hermes.agent.listener import Listener
from hermes.agent.models.model import Cancellation, Model, ToolCall
from hermes.agent.tools.context import ToolContext
from hermes.agent.tools.registry import Registry, tool
from hermes.agent.tools.results import ToolResult
from hermes.config import Config, ModelConfig, PricesConfig
from hermes.state.owner import EVERYBODY
from hermes.state.owner_view import OwnerView
from hermes.state.provider import SessionDBProvider
from tests.agent.asking import endpoint
from tests.support.modelserver import ModelServer
from tests.support.validators import flaws_of

PRICES = {"test-model": PricesConfig(input=1.0, output=10.0)}
CONFIG = Config(model=ModelConfig(prices=PRICES), tools={"default": ("test",)})


@dataclass
class RecordingListener(Listener):
    """A listener that records events and may react to them."""

    on_text: Callable[[str], object] = lambda _: None
    pieces: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    finished: list[tuple[str, str]] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def text(self, piece: str) -> None:
        self.pieces.append(piece)
        self.on_text(piece)

    def reasoning(self, piece: str) -> None:
        self.thoughts.append(piece)

    def tool_started(self, call: ToolCall) -> None:
        self.started.append(call.name)

    def tool_finished(self, call: ToolCall, result: ToolResult) -> None:
        self.finished.append((call.name, result.text))

    def retrying(self, seconds: float, why: str) -> None:
        self.waits.append(why)

    def notice(self, text: str) -> None:
        self.notices.append(text)


@tool(toolset="test")
def add(one: int, other: int) -> str:
    """Add two numbers."""
    return str(one + other)


@tool(toolset="test")
def wait(context: ToolContext) -> str:
    """Wait for the cancellation, which comes while this runs."""
    threading.Thread(target=context.cancellation.cancel).start()
    assert context.cancellation.wait(20)
    return "stopped in the middle"


@tool(toolset="test")
def interrupt() -> str:
    """Raise KeyboardInterrupt, as Ctrl-C does."""
    raise KeyboardInterrupt


@tool(toolset="test")
def fail() -> str:
    """Fail."""
    raise RuntimeError("it went wrong")


TOOLS = Registry([add, wait, interrupt, fail])


def agent_at(
    server: ModelServer, store: SessionDBProvider, home: Path, config: Config = CONFIG, **options: Any
) -> Agent:
    """An agent whose model is the server of a test; titles are off unless a test enables them."""
    if "auxiliary" not in options:
        config = replace(config, agent=replace(config.agent, auto_title=False))
    return agent_with(endpoint(server), store, home, config, **options)


def agent_with(model: Model, store: SessionDBProvider, home: Path, config: Config = CONFIG, **options: Any) -> Agent:
    """An agent with a model."""
    view = store.for_owner(EVERYBODY)
    return Agent(view, model, config=config, home=home, database=None, **{"tools": TOOLS} | options)


def stored(conversation: Conversation) -> list[tuple[Any, ...]]:
    """The messages of a conversation by role, content and finish reason; checks that a model can continue from them."""
    store = conversation.agent.store
    assert_sound(store, conversation.session_id)
    rows = store.get_messages(conversation.session_id)
    return [(row["role"], row["content"], *([row["finish_reason"]] if row["finish_reason"] else [])) for row in rows]


def assert_sound(store: SessionDBProvider | OwnerView, session_id: str) -> None:
    """Check that strict endpoints accept the stored history."""
    for with_tools in (True, False):
        history = store.get_messages_as_conversation(session_id)
        assert flaws_of(project(history, with_tools=with_tools)) == []


def assert_asked_soundly(server: ModelServer) -> None:
    """Check that strict endpoints would accept every request that the server got."""
    for request in server.requests:
        assert flaws_of(request.messages) == []


def stop_when(happened: threading.Event) -> Cancellation:
    """A cancellation from another thread as soon as a condition is true."""
    cancellation = Cancellation()

    def watch() -> None:
        if happened.wait(20):
            cancellation.cancel()

    threading.Thread(target=watch, daemon=True).start()
    return cancellation
