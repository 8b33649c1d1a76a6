"""What a language model is to the agent: messages in, a stream of events out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import RLock
from typing import Any, Protocol

Message = Mapping[str, Any]
"""A message in the form of OpenAI's chat completions."""

ToolSchema = Mapping[str, Any]
"""A tool as a model is told of it, in the same form."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of one call, each counted once."""

    input_tokens: int = 0
    """What was read anew: neither found in the endpoint's cache nor written to it."""
    output_tokens: int = 0
    """All that was written, the reasoning too."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    """How many of the output tokens were reasoning."""
    cost_usd: float | None = None
    """What the endpoint says that the call cost, where it does."""

    @property
    def prompt_tokens(self) -> int:
        """How long the conversation was that the model read."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to have a tool run."""

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
    """The next piece of what the model thinks before it answers."""

    text: str


@dataclass(frozen=True, slots=True)
class Reconsidered:
    """All pieces of the answer until here were what the model thought, as it says only now."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The endpoint could not answer and is asked again after so many seconds."""

    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the person should know, in one sentence."""

    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """All that a model said in one call; the last event of a stream that came to its end."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    finish_reason: str | None = None
    usage: Usage | None = None
    model: str | None = None
    """The model that really answered, where the endpoint says so."""


Event = TextDelta | ReasoningDelta | Reconsidered | Waiting | Notice | Reply


@dataclass(slots=True)
class Stop:
    """A wish, from any thread or signal handler, that a call ends now."""

    _wished: bool = False
    _closers: list[Callable[[], None]] = field(default_factory=list)
    # A signal handler runs on a thread that may hold it already.
    _lock: RLock = field(default_factory=RLock)

    @property
    def is_wished(self) -> bool:
        """Whether the call is to end."""
        return self._wished

    def wish(self) -> None:
        """End the call: what it waits for is closed."""
        with self._lock:
            self._wished = True
            closers, self._closers = self._closers, []
        for close in closers:
            close()

    def when_wished(self, close: Callable[[], None]) -> Callable[[], None]:
        """Have `close` called when the wish comes, or now if it has come; answers how to take that back."""
        with self._lock:
            if not self._wished:
                self._closers.append(close)
                return lambda: self._forget(close)
        close()
        return lambda: None

    def wait(self, seconds: float) -> bool:
        """Let time pass until the wish comes; answers whether it has come."""
        bell: SimpleQueue[None] = SimpleQueue()
        forget = self.when_wished(lambda: bell.put(None))
        try:
            bell.get(timeout=max(0.0, seconds))
        except Empty:
            pass
        finally:
            forget()
        return self._wished

    def _forget(self, close: Callable[[], None]) -> None:
        with self._lock:
            if close in self._closers:
                self._closers.remove(close)


class Model(Protocol):
    """Something that answers."""

    @property
    def name(self) -> str:
        """What it is called, such as `gpt-5-mini`."""
        ...

    @property
    def provider(self) -> str:
        """Who runs it, such as `openai`, `openrouter`, `anthropic`, `ollama`, `custom` or `offline`."""
        ...

    @property
    def base_url(self) -> str | None:
        """Where it is reached, without credentials; None for one that is here."""
        ...

    @property
    def context_tokens(self) -> int | None:
        """How much it can read at once, if that is known."""
        ...

    def stream(self, messages: Sequence[Message], tools: Sequence[ToolSchema], stop: Stop) -> Iterator[Event]:
        """Answer: pieces and news as they come, then one `Reply`; a stream that was stopped ends without one.

        Raises an error of `hermes.errors.ModelError` when there is no answer to be had, after its own attempts. After
        the first piece that is `AnswerCut`, and the pieces are all that was said.
        """
        ...
