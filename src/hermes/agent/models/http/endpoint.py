"""A model behind any OpenAI-compatible `/chat/completions` endpoint."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterator, Sequence
from typing import Any

from hermes.agent.models.choice import ModelChoice
from hermes.agent.models.http.answer import AnswerStream, RequestRefused
from hermes.agent.models.http.errors import EndpointError, to_model_error
from hermes.agent.models.http.http_call import HttpCall, HttpRequest
from hermes.agent.models.http.retry import Random, RetryPolicy, pause_before_retry
from hermes.agent.models.model import Cancellation, Event, Message, Notice, Retrying, ToolSchema
from hermes.agent.models.model_list import list_models, near_names
from hermes.agent.models.prices import known_context_tokens
from hermes.clock import Clock, system_clock
from hermes.config import TimeoutsConfig
from hermes.errors import ModelError, UnknownModel

MODEL_LIST_S = 3.0
"""How long to wait for the list of models, to suggest one instead of an unknown model."""

_UNWANTED = {
    "stream_options": re.compile(r"stream_options|include_usage", re.IGNORECASE),
    "tools": re.compile(
        r"not support (tools?|tool use|tool calling|function calling|functions)\b|that support tool use"
        r"|\b(tools|tool use|tool calling|function calling) (is|are) (not supported|unsupported)"
        r"|enable-auto-tool-choice|tools param requires",
        re.IGNORECASE,
    ),
    "stream": re.compile(
        r"not support stream|\bstream(ing)?\b.{0,40} (not supported|not allowed|unsupported)"
        r"|unsupported.{0,40}\bstream",
        re.IGNORECASE,
    ),
}
"""Error texts with which endpoints refuse optional parts of a request."""
_MAY_BE_UNWANTED = frozenset((400, 404, 422, 500, 501))


class Endpoint:
    """A remote model."""

    def __init__(
        self,
        choice: ModelChoice,
        *,
        timeouts: TimeoutsConfig | None = None,
        policy: RetryPolicy | None = None,
        random: Random = random.random,
        clock: Clock = system_clock,
    ) -> None:
        self.choice = choice
        self._timeouts = timeouts or TimeoutsConfig()
        self._policy = policy or RetryPolicy()
        self._random = random
        self._clock = clock
        self._left_out: set[str] = set()

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.choice.name

    @property
    def provider(self) -> str:
        """The provider of the model."""
        return self.choice.provider

    @property
    def base_url(self) -> str | None:
        """The address of the endpoint, without credentials."""
        return self.choice.display_url

    @property
    def context_tokens(self) -> int | None:
        """The size of the context window: as configured, or as known for this model."""
        return self.choice.context_tokens or known_context_tokens(self.name)

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], cancellation: Cancellation
    ) -> Iterator[Event]:
        """Yield the answer; retry a failed call if that may help and no text has arrived yet."""
        began = time.monotonic()
        attempt = 1
        while not cancellation.is_cancelled:
            try:
                yield from self._attempt(messages, tools, cancellation, began + self._timeouts.total_s)
                return
            except RequestRefused as refused:
                if unwanted := self._leave_out(refused.refusal):
                    yield Notice(f"{self.choice.host} does not support {unwanted} with {self.name}; trying without")
                    continue
                failure = to_model_error(refused.refusal, self.choice)
            except ModelError as error:
                failure = error
            if cancellation.is_cancelled:
                return
            pause = pause_before_retry(failure, attempt, time.monotonic() - began, self._policy, self._random)
            if pause is None:
                raise self._with_near_names(failure, cancellation)
            yield Retrying(pause, failure.message)
            cancellation.wait(pause)
            attempt += 1

    def _attempt(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], cancellation: Cancellation, last: float
    ) -> Iterator[Event]:
        call = HttpCall(self._request(messages, tools), cancellation)
        try:
            yield from AnswerStream(call, self.choice, self._timeouts, last, self._clock).events()
        finally:
            call.leave()

    def _request(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> HttpRequest:
        body: dict[str, Any] = {"model": self.name, "messages": list(messages)}
        options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
        if tools:
            options["tools"] = list(tools)
        if self.provider == "openrouter":
            options["usage"] = {"include": True}  # ask for the cost of the call
        body |= {name: value for name, value in options.items() if name not in self._left_out}
        return HttpRequest(
            "POST",
            self.choice.url("/chat/completions"),
            {"Content-Type": "application/json", "Accept": "text/event-stream, application/json"}
            | self.choice.headers(),
            # Lone surrogates cannot be sent; they become question marks.
            json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"),
            connect_s=self._timeouts.connect_s,
            silence_s=max(self._timeouts.first_token_s, self._timeouts.between_tokens_s),
            allow_http=self.choice.allow_http,
        )

    def _leave_out(self, refusal: EndpointError) -> str | None:
        """Return the optional part that the endpoint refuses, and omit it from now on; None for any other refusal."""
        if refusal.status not in _MAY_BE_UNWANTED:
            return None
        for name, pattern in _UNWANTED.items():
            if name not in self._left_out and refusal.mentions(pattern):
                self._left_out |= {name, "stream_options"} if name == "stream" else {name}
                return name
        return None

    def _with_near_names(self, failure: ModelError, cancellation: Cancellation) -> ModelError:
        """Return the error; for an unknown model, with a hint that lists similar models."""
        if not isinstance(failure, UnknownModel):
            return failure
        names = list_models(self.choice, MODEL_LIST_S, cancellation)
        near = near_names(self.name, names) if names else []
        if not near:
            return failure
        return UnknownModel(
            failure.message, hint=f"similar models: {', '.join(near)}; set {self.choice.section}.default to one"
        )
