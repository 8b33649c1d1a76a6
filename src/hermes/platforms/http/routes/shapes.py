"""What the API returns: the objects of OpenAI's API, and JSON that any stored text fits into."""

from __future__ import annotations

import json
import math
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.responses import Response, StreamingResponse

from hermes.platforms.http.conversations import Conversation
from hermes.platforms.http.errors import JSON, ApiError
from hermes.platforms.http.exchange import Answer

MODEL = "hermes"


def encode(value: Any) -> str:
    """Return JSON in ASCII: a stored text may have lone surrogates, which no other encoding takes."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json.dumps(_finite(value), allow_nan=False, separators=(",", ":"))


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a value as the response to a request."""
    return Response(encode(value).encode("ascii"), status, dict(headers or {}), JSON)


def list_response(head: Mapping[str, Any], name: str, items: AsyncIterator[Any]) -> StreamingResponse:
    """Return an object whose last field is a list, of which one item is in memory at a time."""

    async def pieces() -> AsyncIterator[str]:
        yield f"{encode(head)[:-1]}{',' if head else ''}{encode(name)}:["
        separator = ""
        async for item in items:
            yield separator + encode(item)
            separator = ","
        yield "]}"

    return StreamingResponse(pieces(), media_type=JSON)


def model() -> dict[str, Any]:
    """Return the only model."""
    return {"id": MODEL, "object": "model", "created": 0, "owned_by": "hermes"}


def item(role: str, text: str, item_id: str) -> dict[str, Any]:
    """Return a message of a conversation."""
    kind: dict[str, Any] = {"type": "input_text", "text": text}
    if role == "assistant":
        kind = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"id": item_id, "type": "message", "role": role, "status": "completed", "content": [kind]}


def usage(answer: Answer) -> dict[str, int]:
    """Return the tokens of a chat completion."""
    return {
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
    }


def response_head(
    conversation: Conversation, message_id: str, previous: str | None, created_at: float | None = None
) -> dict[str, Any]:
    """Return a response without its answer."""
    return {
        "id": f"resp_{conversation.digits}{message_id}",
        "object": "response",
        "created_at": int(time.time() if created_at is None else created_at),
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": MODEL,
        "output": [],
        "parallel_tool_calls": False,
        "previous_response_id": previous,
        "conversation": {"id": conversation.id},
        "tool_choice": "auto",
        "tools": [],
    }


def response_of(head: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
    """Return a response with its answer."""
    used = {
        "input_tokens": answer.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": answer.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
    }
    output = item("assistant", answer.text, f"msg_{str(head['id'])[-24:]}")
    return {**head, "status": "completed", "output": [output], "usage": used, "session_id": answer.session_id}


def failed_response(head: Mapping[str, Any], error: ApiError) -> dict[str, Any]:
    """Return a response whose turn has failed."""
    return {**head, "status": "failed", "error": {"code": "server_error", "message": error.message}, "output": []}


def _finite(value: Any) -> Any:
    """Return a value in which null stands for numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value
