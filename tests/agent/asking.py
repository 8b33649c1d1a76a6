"""Short ways to ask a model and to look at what it answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hermes.agent.models.choice import ModelChoice
from hermes.agent.models.http.endpoint import Endpoint
from hermes.agent.models.http.retry import RetryPolicy
from hermes.agent.models.model import (
    Cancellation,
    Event,
    Message,
    Model,
    Notice,
    ReasoningDelta,
    Reply,
    Retrying,
    TextDelta,
    ToolSchema,
)
from hermes.config import TimeoutsConfig
from hermes.errors import ModelError
from tests.support.modelserver import ModelServer

AT_ONCE = RetryPolicy(base_s=0.001)
"""Tries as often as usual, and waits for nothing."""

PATIENT = TimeoutsConfig(connect_s=5, first_token_s=10, between_tokens_s=10, total_s=20)

SEARCH_TOOL: ToolSchema = {"type": "function", "function": {"name": "session_search", "parameters": {}}}


@dataclass
class Heard:
    """What came of asking."""

    events: list[Event] = field(default_factory=list)
    error: ModelError | None = None

    @property
    def pieces(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, TextDelta)]

    @property
    def thoughts(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, ReasoningDelta)]

    @property
    def reply(self) -> Reply:
        """The reply, which must be there, once and last."""
        assert [event for event in self.events if isinstance(event, Reply)] == self.events[-1:], self
        last = self.events[-1]
        assert isinstance(last, Reply)
        return last

    @property
    def waits(self) -> list[str]:
        """Why it was asked again."""
        return [event.why for event in self.events if isinstance(event, Retrying)]

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]

    @property
    def has_reply(self) -> bool:
        return any(isinstance(event, Reply) for event in self.events)


def said(text: str) -> list[Message]:
    """A conversation that a person has just begun."""
    return [{"role": "user", "content": text}]


def ask(
    model: Model,
    messages: str | Sequence[Message] = "hi",
    tools: Sequence[ToolSchema] = (),
    cancellation: Cancellation | None = None,
) -> Heard:
    """Ask and listen to the end, be it an error."""
    heard = Heard()
    try:
        for event in model.stream(
            said(messages) if isinstance(messages, str) else messages, tools, cancellation or Cancellation()
        ):
            heard.events.append(event)
    except ModelError as error:
        heard.error = error
    return heard


def choice_of(server: ModelServer, **fields: Any) -> ModelChoice:
    """The choice of a model at a test's own server."""
    return ModelChoice(**{"provider": "custom", "name": "test-model", "base_url": server.base_url} | fields)


def endpoint(
    server: ModelServer,
    *,
    choice: ModelChoice | None = None,
    timeouts: TimeoutsConfig = PATIENT,
    policy: RetryPolicy = AT_ONCE,
    **options: Any,
) -> Endpoint:
    """A model at a test's own server."""
    return Endpoint(choice or choice_of(server), timeouts=timeouts, policy=policy, **options)
