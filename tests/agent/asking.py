"""Helpers that ask a model and collect its answer."""

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
"""The usual number of attempts, without waiting."""

PATIENT = TimeoutsConfig(connect_s=5, first_token_s=10, between_tokens_s=10, total_s=20)

SEARCH_TOOL: ToolSchema = {"type": "function", "function": {"name": "session_search", "parameters": {}}}


@dataclass
class ModelEvents:
    """The events and the error of a call."""

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
        """The reply, which must occur once and last."""
        assert [event for event in self.events if isinstance(event, Reply)] == self.events[-1:], self
        last = self.events[-1]
        assert isinstance(last, Reply)
        return last

    @property
    def waits(self) -> list[str]:
        """The reasons for the retries."""
        return [event.why for event in self.events if isinstance(event, Retrying)]

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]

    @property
    def has_reply(self) -> bool:
        return any(isinstance(event, Reply) for event in self.events)


def user_message(text: str) -> list[Message]:
    """A new conversation with one message of the user."""
    return [{"role": "user", "content": text}]


def ask(
    model: Model,
    messages: str | Sequence[Message] = "hi",
    tools: Sequence[ToolSchema] = (),
    cancellation: Cancellation | None = None,
) -> ModelEvents:
    """Ask a model and collect all events until the end or an error."""
    received = ModelEvents()
    try:
        for event in model.stream(
            user_message(messages) if isinstance(messages, str) else messages, tools, cancellation or Cancellation()
        ):
            received.events.append(event)
    except ModelError as error:
        received.error = error
    return received


def choice_of(server: ModelServer, **fields: Any) -> ModelChoice:
    """The choice of a model at the server of a test."""
    return ModelChoice(**{"provider": "custom", "name": "test-model", "base_url": server.base_url} | fields)


def endpoint(
    server: ModelServer,
    *,
    choice: ModelChoice | None = None,
    timeouts: TimeoutsConfig = PATIENT,
    policy: RetryPolicy = AT_ONCE,
    **options: Any,
) -> Endpoint:
    """A model at the server of a test."""
    return Endpoint(choice or choice_of(server), timeouts=timeouts, policy=policy, **options)
