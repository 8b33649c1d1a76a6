"""An answer as it comes in over one exchange: events, or the error that stands in its place."""

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
"""How much may come in one answer, with all that is sent around its words."""
MAX_WHOLE_BYTES = 4 * 1024 * 1024
"""How much of it if it comes in one piece, which must be held at once."""
MAX_REFUSAL_BYTES = 64 * 1024
REFUSAL_S = 5.0
"""How long the words of a refusal are waited for."""
AFTERMATH_S = 3.0
"""How long the count of tokens is waited for once the model has said that this is all."""
GOODBYE_S = 0.25
"""How long the very end is waited for, after which the connection can be used again."""

_DONE = "[DONE]"


class RequestRefused(Exception):
    """The endpoint does not take the request."""

    def __init__(self, refusal: EndpointError) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


class _Cancelled(Exception):
    """Somebody wishes that the call ends."""


class AnswerStream:
    """What comes back of one call, within its limits."""

    def __init__(
        self, exchange: HttpCall, choice: ModelChoice, timeouts: TimeoutsConfig, last: float, clock: Clock
    ) -> None:
        self._exchange = exchange
        self._choice = choice
        self._timeouts = timeouts
        self._first = time.monotonic() + timeouts.first_token_s
        self._last = last
        """The moment of `time.monotonic` at which the whole call must be over."""
        self._clock = clock
        self._assembly = ReplyBuilder()
        self._received = 0
        self._size = 0
        self._aftermath = 0.0
        """Until when the rest of an answer is waited for that is said to be all, and how long it was then."""

    def events(self) -> Iterator[Event]:
        """Pieces as they come, then the reply; after the first piece every failure is `AnswerCut`."""
        try:
            yield from self._events()
        except _Cancelled:
            return
        except ModelError as failure:
            yield from self._assembly.finish()
            if not self._assembly.is_visible:
                raise
            raise AnswerCut(f"the answer broke off: {failure.message}") from failure
        yield from self._assembly.finish()
        yield self._assembly.reply()

    def _events(self) -> Iterator[Event]:
        head = self._next()
        assert isinstance(head, ResponseHead)
        if head.status != 200:
            words = self._words()
            raise RequestRefused(read_error_response(head.status, head.headers, words, self._choice, self._clock()))
        encoding = head.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise ModelGarbled(
                f"{self._choice.host} sends a compressed answer ({quote_safely(encoding, self._choice)}), unasked",
                hint="switch compression off there, or in the proxy before it",
            )
        content_type = head.headers.get("content-type", "")
        if "json" in content_type:
            yield from self._assembly.take(self._whole())
        else:
            yield from self._stream(is_certain="event-stream" in content_type)

    def _stream(self, *, is_certain: bool) -> Iterator[Event]:
        """Take in events until the last; where it is not certain that there are any, having none is nonsense."""
        decoder = EventDecoder()
        has_events = is_certain
        while True:
            news = self._next()
            for event in decoder.feed(news) if isinstance(news, bytes) else decoder.finish():
                if event.data.strip() == _DONE:
                    self._take_leave()
                    return
                if not event.data.strip():
                    continue
                has_events = True
                yield from self._assembly.take(self._chunk(event))
            if isinstance(news, ResponseEnd):
                break
        if not has_events:
            raise ModelGarbled(f"{self._choice.host} answered with nothing that can be understood")
        if not self._assembly.is_finished:
            raise ModelUnavailable(f"{self._choice.host} ended its answer too early", hint="try again")

    def _chunk(self, event: ServerEvent) -> Json:
        chunk = self._parsed(event.data)
        if event.name == "error" or chunk.get("error"):
            raise to_model_error(read_error_event(chunk, self._choice), self._choice)
        return chunk

    def _whole(self) -> Json:
        """An answer that comes in one piece."""
        body = bytearray()
        while isinstance(news := self._next(), bytes):
            body += news
            if len(body) > MAX_WHOLE_BYTES:
                raise ModelGarbled(f"the answer of {self._choice.host} has more than {MAX_WHOLE_BYTES} bytes")
        answer = self._parsed(body.decode("utf-8", "replace"))
        if answer.get("error"):
            raise to_model_error(read_error_event(answer, self._choice), self._choice)
        if not isinstance(answer.get("choices"), list):
            raise ModelGarbled(f"the answer of {self._choice.host} has no choices in it")
        return answer

    def _words(self) -> bytes:
        """What a refusal says, as far as it comes: the status alone says enough."""
        words = bytearray()
        deadline = time.monotonic() + REFUSAL_S
        try:
            while len(words) < MAX_REFUSAL_BYTES and isinstance(news := self._exchange.next(deadline), bytes):
                words += news
        except TimeoutError:
            pass
        return bytes(words)

    def _parsed(self, text: str) -> Json:
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            quoted = quote_safely(text, self._choice)
            raise ModelGarbled(f"{self._choice.host} answered with something that cannot be understood: {quoted}")
        return said

    def _next(self) -> ResponseHead | bytes | ResponseEnd:
        """What comes next, in time."""
        try:
            news = self._exchange.next(self._deadline())
        except TimeoutError:
            if self._assembly.is_finished:
                return ResponseEnd()
            raise ModelTimeout(self._complaint()) from None
        if news is None:
            raise _Cancelled
        if isinstance(news, ConnectionFailure):
            if self._assembly.is_finished:
                return ResponseEnd()
            raise to_connection_error(news, self._choice)
        if isinstance(news, bytes):
            self._received += len(news)
            if self._received > MAX_BYTES:
                raise ModelGarbled(f"the answer of {self._choice.host} has more than {MAX_BYTES} bytes")
        return news

    def _deadline(self) -> float:
        now = time.monotonic()
        if self._assembly.is_finished:
            # Some endpoints say so with each piece; what is no part of an answer does not prolong it.
            if not self._aftermath or self._assembly.size != self._size:
                self._aftermath, self._size = now + AFTERMATH_S, self._assembly.size
            return min(self._last, self._aftermath)
        return min(self._last, now + self._timeouts.between_tokens_s if self._assembly.is_begun else self._first)

    def _complaint(self) -> str:
        host, timeouts = self._choice.host, self._timeouts
        if time.monotonic() >= self._last:
            return f"{host} was not done within {timeouts.total_s:g} s"
        if self._assembly.is_begun:
            return f"{host} said nothing more for {timeouts.between_tokens_s:g} s"
        return f"{host} did not begin to answer within {timeouts.first_token_s:g} s"

    def _take_leave(self) -> None:
        """Wait a little for the end of what is sent, so that the connection is whole."""
        deadline = time.monotonic() + GOODBYE_S
        try:
            while not isinstance(self._exchange.next(deadline), ResponseEnd | ConnectionFailure | None):
                pass
        except TimeoutError:
            pass  # the connection is not used again
