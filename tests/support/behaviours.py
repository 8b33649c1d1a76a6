"""The behaviours of the model server, and its responses in the wire format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

USAGE: Mapping[str, Any] = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}


@dataclass(frozen=True)
class Call:
    """A tool call within an answer."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    """A value that is not a mapping is sent as it is, valid or not."""
    id: str | None = "call_1"
    fragments: int = 1
    """The number of pieces in which the arguments are sent."""

    @property
    def written(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True)
class Say:
    """An answer, streamed if the client asks for that."""

    text: str = ""
    pieces: Sequence[str] = ()
    """The text in the pieces in which it is sent; otherwise word by word."""
    reasoning: str = ""
    calls: Sequence[Call] = ()
    usage: Mapping[str, Any] | None = field(default_factory=lambda: USAGE)
    finish_reason: str | None = None
    """If empty, the stream ends without one."""
    model: str | None = None
    before_s: float = 0.0
    """How long nothing is sent, not even the status."""
    first_s: float = 0.0
    """How long nothing is sent after the status."""
    between_s: float = 0.0
    after_s: float = 0.0
    """How long nothing is sent after the finish reason."""
    cut_after: int | None = None
    """The connection is cut after this many pieces."""
    error: Any = None
    """Sent in the stream after the pieces, instead of the rest."""
    stream: bool = True
    """Whether to stream if the client asks for it."""
    done: bool = True
    """Whether a stream ends with `[DONE]`."""
    newline: str = "\n"


@dataclass(frozen=True)
class Fail:
    """An error response."""

    status: int
    body: Any = None
    """Text is sent as it is, anything else as JSON."""
    retry_after: float | str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    before_s: float = 0.0


@dataclass(frozen=True)
class Raw:
    """Raw bytes, each sent on its own."""

    chunks: Sequence[bytes]
    content_type: str = "text/event-stream"
    is_cut: bool = False


Behaviour = Say | Fail | Raw


def chunks_of(behaviour: Say, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """An answer as the chunks of a stream."""
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": behaviour.model or request["model"]}

    def chunk(delta: Mapping[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        return base | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}

    if behaviour.reasoning:
        yield chunk({"reasoning_content": behaviour.reasoning})
    for piece in behaviour.pieces or _words(behaviour.text):
        yield chunk({"content": piece})
    for index, call in enumerate(behaviour.calls):
        for fragment in _fragments(call):
            yield chunk({"tool_calls": [{"index": index, **fragment}]})
    if behaviour.error is not None:
        yield {"error": behaviour.error}
        return
    finish_reason = _finish_reason(behaviour)
    if finish_reason:
        yield chunk({}, finish_reason)
    if behaviour.usage is not None and request.get("stream_options", {}).get("include_usage"):
        yield base | {"choices": [], "usage": behaviour.usage}


def whole_of(behaviour: Say, request: Mapping[str, Any]) -> dict[str, Any]:
    """An answer in one piece."""
    if behaviour.error is not None:
        return {"error": behaviour.error}
    message: dict[str, Any] = {"role": "assistant", "content": behaviour.text or "".join(behaviour.pieces) or None}
    if behaviour.reasoning:
        message["reasoning_content"] = behaviour.reasoning
    if behaviour.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.written}}
            for call in behaviour.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(behaviour) or None}
    whole = {"id": "chatcmpl-1", "model": behaviour.model or request["model"], "choices": [choice]}
    return whole if behaviour.usage is None else whole | {"usage": behaviour.usage}


def _finish_reason(behaviour: Say) -> str:
    usual = "tool_calls" if behaviour.calls else "stop"
    return usual if behaviour.finish_reason is None else behaviour.finish_reason


def _fragments(call: Call) -> Iterator[dict[str, Any]]:
    """A tool call in a stream: its name first, then its arguments in pieces."""
    size = max(1, -(-len(call.written) // call.fragments))
    pieces = [call.written[start : start + size] for start in range(0, len(call.written), size)] or [""]
    first = {"type": "function", "function": {"name": call.name, "arguments": pieces[0]}}
    yield first if call.id is None else {"id": call.id, **first}
    for piece in pieces[1:]:
        yield {"function": {"arguments": piece}}


def _words(text: str) -> list[str]:
    return [word for word in text.replace(" ", " \0").split("\0") if word]


def behaviour_of(step: Mapping[str, Any]) -> Behaviour:
    """Parse a step of a script."""
    rest = dict(step)
    if "fail" in rest:
        return Fail(rest.pop("fail"), **rest)
    if "raw" in rest:
        return Raw([rest.pop("raw").encode()], **rest)
    if "call" in rest:
        made = {each.name: rest.pop(each.name) for each in fields(Call) if each.name in rest}
        return Say(calls=[Call(rest.pop("call"), **made)], **rest)
    return Say(rest.pop("say"), **rest)
