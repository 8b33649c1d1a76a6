"""A model behind an OpenAI-compatible `/chat/completions`, whoever runs it."""

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

OFFERS_S = 3.0
"""How long it may take to find out which models there are instead of one that there is not."""

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
"""How an endpoint says that it does not want a part of the request that can be left out."""
_MAY_BE_UNWANTED = frozenset((400, 404, 422, 500, 501))


class Endpoint:
    """A model somewhere else."""

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
        """What it is called."""
        return self.choice.name

    @property
    def provider(self) -> str:
        """Who runs it."""
        return self.choice.provider

    @property
    def base_url(self) -> str | None:
        """Where it is reached, without credentials."""
        return self.choice.shown_url

    @property
    def context_tokens(self) -> int | None:
        """How much it can read at once: as configured, or as known of this model."""
        return self.choice.context_tokens or known_context_tokens(self.name)

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], cancellation: Cancellation
    ) -> Iterator[Event]:
        """Answer, and try again as long as nothing was said and it may help."""
        began = time.monotonic()
        attempt = 1
        while not cancellation.is_cancelled:
            try:
                yield from self._attempt(messages, tools, cancellation, began + self._timeouts.total_s)
                return
            except RequestRefused as refused:
                if unwanted := self._leave_out(refused.refusal):
                    yield Notice(f"{self.choice.host} does not take {unwanted} with {self.name} and is asked without")
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
        exchange = HttpCall(self._request(messages, tools), cancellation)
        try:
            yield from AnswerStream(exchange, self.choice, self._timeouts, last, self._clock).events()
        finally:
            exchange.leave()

    def _request(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> HttpRequest:
        body: dict[str, Any] = {"model": self.name, "messages": list(messages)}
        options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
        if tools:
            options["tools"] = list(tools)
        if self.provider == "openrouter":
            options["usage"] = {"include": True}  # what the call cost
        body |= {name: value for name, value in options.items() if name not in self._left_out}
        return HttpRequest(
            "POST",
            self.choice.url("/chat/completions"),
            {"Content-Type": "application/json", "Accept": "text/event-stream, application/json"}
            | self.choice.headers(),
            # What is no Unicode cannot be sent; a question mark in its place can.
            json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"),
            connect_s=self._timeouts.connect_s,
            silence_s=max(self._timeouts.first_token_s, self._timeouts.between_tokens_s),
            allow_http=self.choice.allow_http,
        )

    def _leave_out(self, refusal: EndpointError) -> str | None:
        """The part of a request that is refused and can be left out from now on; None if it is something else."""
        if refusal.status not in _MAY_BE_UNWANTED:
            return None
        for name, pattern in _UNWANTED.items():
            if name not in self._left_out and refusal.mentions(pattern):
                self._left_out |= {name, "stream_options"} if name == "stream" else {name}
                return name
        return None

    def _with_near_names(self, failure: ModelError, cancellation: Cancellation) -> ModelError:
        """The same error; that of a model that does not exist tells of those that do."""
        if not isinstance(failure, UnknownModel):
            return failure
        names = list_models(self.choice, OFFERS_S, cancellation)
        near = near_names(self.name, names) if names else []
        if not near:
            return failure
        return UnknownModel(failure.message, hint=f"it has {', '.join(near)}; set {self.choice.section}.default to one")
