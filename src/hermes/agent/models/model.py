"""The interface of a language model: messages in, a stream of events out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import RLock
from typing import Any, Protocol

Message = Mapping[str, Any]
"""A message as OpenAI's chat completions write it."""

ToolSchema = Mapping[str, Any]
"""The description of a tool, in the same format."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of one call, each counted once."""

    input_tokens: int = 0
    """Tokens that the model read without the endpoint's cache: neither found there nor written to it."""
    output_tokens: int = 0
    """All tokens that the model wrote, reasoning included."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    """How many of the output tokens were reasoning."""
    cost_usd: float | None = None
    """The cost of the call, if the endpoint reports it."""

    @property
    def prompt_tokens(self) -> int:
        """How many tokens the model read."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model wants to run."""

    id: str
    name: str
    arguments: str
    """JSON as the model wrote it, which may be anything."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """The next piece of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class TextWasReasoning:
    """The text so far was reasoning: the model closed a thought that it had not opened."""


@dataclass(frozen=True, slots=True)
class Retrying:
    """The call failed and is retried after so many seconds."""

    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class Notice:
    """One sentence that the user should read."""

    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """The complete answer of the model to one call: the last event of a complete stream."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    finish_reason: str | None = None
    usage: Usage | None = None
    model: str | None = None
    """The model that answered, if the endpoint names it."""


Event = TextDelta | ReasoningDelta | TextWasReasoning | Retrying | Notice | Reply


@dataclass(slots=True)
class Cancellation:
    """A cancellation token: any thread or signal handler can cancel, and the call ends now."""

    _is_cancelled: bool = False
    _callbacks: list[Callable[[], None]] = field(default_factory=list)
    # A signal handler runs on a thread that may hold it already.
    _lock: RLock = field(default_factory=RLock)

    @property
    def is_cancelled(self) -> bool:
        """Whether the call has been cancelled."""
        return self._is_cancelled

    def cancel(self) -> None:
        """Cancel the call, and run the callbacks registered with `on_cancel`."""
        with self._lock:
            self._is_cancelled = True
            callbacks, self._callbacks = self._callbacks, []
        for close in callbacks:
            close()

    def on_cancel(self, close: Callable[[], None]) -> Callable[[], None]:
        """Call `close` on cancellation (at once if already cancelled). Return a function that unregisters it."""
        with self._lock:
            if not self._is_cancelled:
                self._callbacks.append(close)
                return lambda: self._unregister(close)
        close()
        return lambda: None

    def wait(self, seconds: float) -> bool:
        """Wait until cancelled, or so many seconds; return whether it was cancelled."""
        bell: SimpleQueue[None] = SimpleQueue()
        unregister = self.on_cancel(lambda: bell.put(None))
        try:
            bell.get(timeout=max(0.0, seconds))
        except Empty:
            pass
        finally:
            unregister()
        return self._is_cancelled

    def _unregister(self, close: Callable[[], None]) -> None:
        with self._lock:
            if close in self._callbacks:
                self._callbacks.remove(close)


class Model(Protocol):
    """A language model that an agent can ask."""

    @property
    def name(self) -> str:
        """Its name, such as `gpt-5-mini`."""
        ...

    @property
    def provider(self) -> str:
        """Who runs it, such as `openai`, `openrouter`, `anthropic`, `ollama`, `custom` or `offline`."""
        ...

    @property
    def base_url(self) -> str | None:
        """Its address, without credentials; None for the offline model."""
        ...

    @property
    def context_tokens(self) -> int | None:
        """How many tokens it can read at once, if known."""
        ...

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], cancellation: Cancellation
    ) -> Iterator[Event]:
        """Yield pieces of the answer as they arrive, then one `Reply`; a cancelled stream ends without one.

        Raises a `ModelError` when the call fails, after its own retries. Once a piece was yielded that error is
        `AnswerCut`, and the pieces are all there is.
        """
        ...
