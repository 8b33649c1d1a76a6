"""Reads the answer to one HTTP call: yields events, or raises the error that the endpoint sent instead."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from hermes.agent.models.choice import ModelChoice
from hermes.agent.models.http.errors import (
    EndpointError,
    quote_safely,
    read_error_event,
    read_error_response,
    to_connection_error,
    to_model_error,
)
from hermes.agent.models.http.http_call import ConnectionFailure, HttpCall, ResponseEnd, ResponseHead
from hermes.agent.models.http.reply_builder import Json, ReplyBuilder
from hermes.agent.models.http.sse import EventDecoder, ServerEvent
from hermes.agent.models.model import Event
from hermes.clock import Clock
from hermes.config import TimeoutsConfig
from hermes.errors import AnswerCut, ModelError, ModelGarbled, ModelTimeout, ModelUnavailable

MAX_BYTES = 256 * 1024 * 1024
"""The most bytes of a streamed answer, including everything around its text."""
MAX_WHOLE_BYTES = 4 * 1024 * 1024
"""The most bytes of an answer that is not streamed, which must fit in memory."""
MAX_REFUSAL_BYTES = 64 * 1024
REFUSAL_S = 5.0
"""How long to wait for the body of an error response."""
FINISH_WAIT_S = 3.0
"""How long to wait for the token counts after the model has finished."""
DRAIN_S = 0.25
"""How long to wait for the end of the response, after which the connection can be reused."""

_DONE = "[DONE]"


class RequestRefused(Exception):
    """Raised when the endpoint refuses the request."""

    def __init__(self, refusal: EndpointError) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


class _Cancelled(Exception):
    """Raised when the call was cancelled."""


class AnswerStream:
    """The answer to one call, read within its time and size limits."""

    def __init__(
        self, exchange: HttpCall, choice: ModelChoice, timeouts: TimeoutsConfig, last: float, clock: Clock
    ) -> None:
        self._exchange = exchange
        self._choice = choice
        self._timeouts = timeouts
        self._first = time.monotonic() + timeouts.first_token_s
        self._last = last
        """When the whole call must end, in `time.monotonic` seconds."""
        self._clock = clock
        self._builder = ReplyBuilder()
        self._received = 0
        self._size = 0
        self._finish_deadline = 0.0
        """When to stop waiting for more after the model has finished; `_size` is the size of the answer then."""

    def events(self) -> Iterator[Event]:
        """Yield pieces as they arrive, then the reply; after the first piece every failure is `AnswerCut`."""
        try:
            yield from self._events()
        except _Cancelled:
            return
        except ModelError as failure:
            yield from self._builder.finish()
            if not self._builder.is_visible:
                raise
            raise AnswerCut(f"the answer was cut off: {failure.message}") from failure
        yield from self._builder.finish()
        yield self._builder.reply()

    def _events(self) -> Iterator[Event]:
        head = self._next()
        assert isinstance(head, ResponseHead)
        if head.status != 200:
            body = self._error_body()
            raise RequestRefused(read_error_response(head.status, head.headers, body, self._choice, self._clock()))
        encoding = head.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise ModelGarbled(
                f"{self._choice.host} sent a compressed answer ({quote_safely(encoding, self._choice)}); not supported",
                hint="turn off compression on the server, or in the proxy in front of it",
            )
        content_type = head.headers.get("content-type", "")
        if "json" in content_type:
            yield from self._builder.take(self._read_whole())
        else:
            yield from self._stream(is_certain="event-stream" in content_type)

    def _stream(self, *, is_certain: bool) -> Iterator[Event]:
        """Read events until the last; without a matching content type, a stream without events is an error."""
        decoder = EventDecoder()
        has_events = is_certain
        while True:
            received = self._next()
            for event in decoder.feed(received) if isinstance(received, bytes) else decoder.finish():
                if event.data.strip() == _DONE:
                    self._drain()
                    return
                if not event.data.strip():
                    continue
                has_events = True
                yield from self._builder.take(self._chunk(event))
            if isinstance(received, ResponseEnd):
                break
        if not has_events:
            raise ModelGarbled(f"{self._choice.host} sent no readable answer")
        if not self._builder.is_finished:
            raise ModelUnavailable(f"{self._choice.host} ended the answer too early", hint="try again")

    def _chunk(self, event: ServerEvent) -> Json:
        chunk = self._parse(event.data)
        if event.name == "error" or chunk.get("error"):
            raise to_model_error(read_error_event(chunk, self._choice), self._choice)
        return chunk

    def _read_whole(self) -> Json:
        """Read an answer that is not streamed."""
        body = bytearray()
        while isinstance(received := self._next(), bytes):
            body += received
            if len(body) > MAX_WHOLE_BYTES:
                raise ModelGarbled(f"the answer of {self._choice.host} has more than {MAX_WHOLE_BYTES} bytes")
        answer = self._parse(body.decode("utf-8", "replace"))
        if answer.get("error"):
            raise to_model_error(read_error_event(answer, self._choice), self._choice)
        if not isinstance(answer.get("choices"), list):
            raise ModelGarbled(f"the answer of {self._choice.host} has no choices in it")
        return answer

    def _error_body(self) -> bytes:
        """Read the body of an error response; a part of it is enough, because the status tells the error."""
        body = bytearray()
        deadline = time.monotonic() + REFUSAL_S
        try:
            while len(body) < MAX_REFUSAL_BYTES and isinstance(received := self._exchange.next(deadline), bytes):
                body += received
        except TimeoutError:
            pass
        return bytes(body)

    def _parse(self, text: str) -> Json:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            quoted = quote_safely(text, self._choice)
            raise ModelGarbled(f"{self._choice.host} sent an unreadable answer: {quoted}")
        return value

    def _next(self) -> ResponseHead | bytes | ResponseEnd:
        """Return the next event of the call; raise `ModelTimeout` when it does not arrive in time."""
        try:
            received = self._exchange.next(self._deadline())
        except TimeoutError:
            if self._builder.is_finished:
                return ResponseEnd()
            raise ModelTimeout(self._timeout_message()) from None
        if received is None:
            raise _Cancelled
        if isinstance(received, ConnectionFailure):
            if self._builder.is_finished:
                return ResponseEnd()
            raise to_connection_error(received, self._choice)
        if isinstance(received, bytes):
            self._received += len(received)
            if self._received > MAX_BYTES:
                raise ModelGarbled(f"the answer of {self._choice.host} has more than {MAX_BYTES} bytes")
        return received

    def _deadline(self) -> float:
        now = time.monotonic()
        if self._builder.is_finished:
            # Some endpoints mark every piece as the last: more text extends the wait, other data does not.
            if not self._finish_deadline or self._builder.size != self._size:
                self._finish_deadline, self._size = now + FINISH_WAIT_S, self._builder.size
            return min(self._last, self._finish_deadline)
        return min(self._last, now + self._timeouts.between_tokens_s if self._builder.is_begun else self._first)

    def _timeout_message(self) -> str:
        host, timeouts = self._choice.host, self._timeouts
        if time.monotonic() >= self._last:
            return f"{host} did not finish within {timeouts.total_s:g} s"
        if self._builder.is_begun:
            return f"{host} sent nothing more for {timeouts.between_tokens_s:g} s"
        return f"{host} did not start to answer within {timeouts.first_token_s:g} s"

    def _drain(self) -> None:
        """Wait briefly for the end of the response, so that the connection can be reused."""
        deadline = time.monotonic() + DRAIN_S
        try:
            while not isinstance(self._exchange.next(deadline), ResponseEnd | ConnectionFailure | None):
                pass
        except TimeoutError:
            pass  # the connection is not reused
