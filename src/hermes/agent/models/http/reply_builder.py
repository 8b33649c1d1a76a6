"""Builds a reply from the pieces that an endpoint sends, in the formats of all known endpoints."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeGuard, assert_never

from hermes.agent.models.http.thoughts import Piece, ThoughtFilter
from hermes.agent.models.model import ReasoningDelta, Reply, TextDelta, TextWasReasoning, ToolCall, Usage
from hermes.errors import ModelGarbled

Json = dict[str, Any]
AnswerDelta = TextDelta | ReasoningDelta | TextWasReasoning

MAX_TEXT_CHARACTERS = 4 * 1024 * 1024
"""The most characters of an answer; its reasoning may have as many."""
MAX_CALLS = 128
MAX_ARGUMENT_CHARACTERS = 2 * 1024 * 1024
"""The most characters of the arguments of all tool calls together."""
_MAX_NAME_CHARACTERS = 1_000
_MAX_TOKENS, _MAX_COST_USD = 10**12, 1e6
"""The most that a call can use; larger numbers are ignored."""


@dataclass(slots=True)
class _Call:
    """A tool call, possibly incomplete."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ReplyBuilder:
    """The answer so far."""

    _text: list[str] = field(default_factory=list)
    _reasoning: list[str] = field(default_factory=list)
    _text_size: int = 0
    _reasoning_size: int = 0
    _argument_size: int = 0
    _filter: ThoughtFilter = field(default_factory=ThoughtFilter)
    _half: str = ""
    """The first half of a character whose second half is in the next piece."""
    _calls: list[_Call] = field(default_factory=list)
    _by_index: dict[int, _Call] = field(default_factory=dict)
    _finish_reason: str | None = None
    _usage: Usage | None = None
    _model: str | None = None

    @property
    def is_visible(self) -> bool:
        """Whether the user may have seen a piece of the answer."""
        return bool(self._text or self._reasoning)

    @property
    def is_begun(self) -> bool:
        """Whether anything has arrived, including tool calls."""
        return self.is_visible or bool(self._calls)

    @property
    def size(self) -> int:
        """The size of text, reasoning and tool calls so far."""
        return self._text_size + self._reasoning_size + self._argument_size + len(self._calls)

    @property
    def is_finished(self) -> bool:
        """Whether the model has finished."""
        return self._finish_reason is not None

    def take(self, chunk: Json) -> Iterator[AnswerDelta]:
        """Add a chunk of a stream, or a whole answer; yield its visible pieces.

        Raises `ModelGarbled` if the answer gets too large; the pieces before that stay.
        """
        self._model = _text(chunk.get("model"))[:_MAX_NAME_CHARACTERS] or self._model
        self._usage = read_usage(chunk.get("usage")) or self._usage
        for choice in _objects(chunk.get("choices")):
            yield from self._take_delta(_object(choice.get("delta" if "delta" in choice else "message")))
            self._finish_reason = _text(choice.get("finish_reason"))[:_MAX_NAME_CHARACTERS] or self._finish_reason

    def finish(self) -> Iterator[AnswerDelta]:
        """Yield the text that was held back because it could have become a tag or a character."""
        if self._half:
            half, self._half = self._half, ""
            yield from self._deltas(self._filter.take(half))
        for kind, text in self._filter.finish():
            (self._reasoning if kind == "thought" else self._text).append(text)
            yield ReasoningDelta(text) if kind == "thought" else TextDelta(text)

    def reply(self) -> Reply:
        """Return the complete reply."""
        return Reply(
            text="".join(self._text),
            tool_calls=tuple(
                ToolCall(call.id or _new_call_id(), call.name, "".join(call.arguments)) for call in self._calls
            ),
            reasoning="".join(self._reasoning) or None,
            finish_reason=self._finish_reason,
            usage=self._usage,
            model=self._model,
        )

    def _take_delta(self, delta: Json) -> Iterator[AnswerDelta]:
        reasoning = _text(delta.get("reasoning_content")) or _text(delta.get("reasoning"))
        if reasoning:
            yield from self._deltas([Piece("thought", reasoning)])
        text = self._whole_characters(_content_text(delta.get("content")) or _text(delta.get("refusal")))
        if text:
            yield from self._deltas(self._filter.take(text))
        for fragment in _objects(delta.get("tool_calls")):
            self._take_fragment(fragment)

    def _whole_characters(self, text: str) -> str:
        """Return a piece without half a character at its end; the half begins the next piece."""
        if not text:
            return ""
        if self._half:
            text = (self._half + text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        self._half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
        return text[: len(text) - len(self._half)]

    def _deltas(self, pieces: list[Piece]) -> Iterator[AnswerDelta]:
        for kind, text in pieces:
            match kind:
                case "text":
                    self._text_size = _check_limit(self._text_size + len(text), MAX_TEXT_CHARACTERS, "characters")
                    self._text.append(text)
                    yield TextDelta(text)
                case "thought":
                    self._reasoning_size = _check_limit(
                        self._reasoning_size + len(text), MAX_TEXT_CHARACTERS, "characters of reasoning"
                    )
                    self._reasoning.append(text)
                    yield ReasoningDelta(text)
                case "reconsidered":
                    self._reasoning_size = _check_limit(
                        self._reasoning_size + self._text_size, MAX_TEXT_CHARACTERS, "characters of reasoning"
                    )
                    self._reasoning += self._text
                    self._text, self._text_size = [], 0
                    yield TextWasReasoning()
                case never:
                    assert_never(never)

    def _take_fragment(self, fragment: Json) -> None:
        function = _object(fragment.get("function"))
        name, call_id = _text(function.get("name")), _text(fragment.get("id"))
        call = self._call_of(fragment.get("index"), call_id, is_named=bool(name))
        call.id = call.id or call_id[:_MAX_NAME_CHARACTERS]
        call.name = call.name or name[:_MAX_NAME_CHARACTERS]
        arguments = function.get("arguments")
        text = _text(arguments) if not isinstance(arguments, dict) else json.dumps(arguments)
        self._argument_size = _check_limit(
            self._argument_size + len(text), MAX_ARGUMENT_CHARACTERS, "characters of arguments"
        )
        if text:
            call.arguments.append(text)

    def _call_of(self, index: object, call_id: str, *, is_named: bool) -> _Call:
        """Return the call that a fragment belongs to: by its index, else by its id, else the last one.

        Some endpoints give every call the same index: a name with another id begins a new call.
        """
        if isinstance(index, int):
            call = self._by_index.get(index)
        elif call_id:
            call = next((each for each in self._calls if each.id == call_id), None)
        else:
            call = self._calls[-1] if self._calls and not is_named else None
        if call is None or (is_named and call_id and call.id and call.id != call_id):
            _check_limit(len(self._calls) + 1, MAX_CALLS, "tool calls")
            call = _Call()
            self._calls.append(call)
            if isinstance(index, int):
                self._by_index[index] = call
        return call


def read_usage(usage: object) -> Usage | None:
    """Read the token counts of a call, in the format of any endpoint; return None if there are none."""
    if not isinstance(usage, dict) or not usage:
        return None
    details = _object(usage.get("prompt_tokens_details")) or _object(usage.get("input_tokens_details"))
    output = _object(usage.get("completion_tokens_details")) or _object(usage.get("output_tokens_details"))
    cache_read = (
        _count(details.get("cached_tokens"))
        or _count(usage.get("cache_read_input_tokens"))
        or _count(usage.get("prompt_cache_hit_tokens"))
    )
    cache_write = _count(details.get("cache_write_tokens")) or _count(usage.get("cache_creation_input_tokens"))
    if "prompt_tokens" in usage:  # includes cached tokens; `input_tokens` next to cache fields does not
        fresh = max(0, _count(usage["prompt_tokens"]) - cache_read - cache_write)
    else:
        fresh = max(0, _count(usage.get("input_tokens")) - _count(details.get("cached_tokens")))
    return Usage(
        input_tokens=fresh,
        output_tokens=_count(usage.get("completion_tokens")) or _count(usage.get("output_tokens")),
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
        reasoning_tokens=_count(output.get("reasoning_tokens")),
        cost_usd=_cost(usage.get("cost")),
    )


def _check_limit(size: int, limit: int, what: str) -> int:
    """Return the size, or raise `ModelGarbled` if it exceeds the limit."""
    if size > limit:
        raise ModelGarbled(f"the answer has more than {limit} {what}", hint="ask for less at once")
    return size


def _new_call_id() -> str:
    return f"call_{os.urandom(12).hex()}"


def _content_text(content: object) -> str:
    """The text of a content, which some endpoints send in parts."""
    if isinstance(content, str):
        return content
    return "".join(_text(part.get("text")) for part in _objects(content) if part.get("type", "text") == "text")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    """A number of tokens; 0 for any other value, also for infinity."""
    return int(value) if _is_number(value) and 0 <= value <= _MAX_TOKENS else 0


def _cost(value: object) -> float | None:
    return float(value) if _is_number(value) and 0 <= value <= _MAX_COST_USD else None


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
