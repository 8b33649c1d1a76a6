"""Server-sent events: chunks of a chat completion, events of a response."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.responses import StreamingResponse

from hermes.errors import HermesError
from hermes.platforms.http.errors import ApiError, error_of, too_late
from hermes.platforms.http.exchange import Answer
from hermes.platforms.http.routes.shapes import MODEL, encode, failed_response, item, response_of, usage

ALIVE_S = 15.0
"""A stream without events for so long gets a comment, so that no proxy takes it for dead."""
_HEADERS = {"X-Accel-Buffering": "no"}


async def deltas(parts: AsyncIterator[str | Answer]) -> AsyncIterator[str | Answer]:
    """Yield what is new of an answer, and then the answer itself; together the parts are its text."""
    shown = ""
    async for part in parts:
        text = part.text if isinstance(part, Answer) else part
        if text.startswith(shown) and text != shown:
            yield text[len(shown) :]
            shown = text
        elif isinstance(part, Answer) and text != shown:
            yield f"\n\n{text}"  # a tool was called after the text that was shown
        if isinstance(part, Answer):
            yield part
            return
    raise too_late()


async def chunks(parts: AsyncIterator[str | Answer], head: Mapping[str, Any], *, has_usage: bool) -> AsyncIterator[str]:
    """Yield a chat completion; an error is the last event."""
    base = {**head, "object": "chat.completion.chunk", "model": MODEL}

    def chunk(delta: dict[str, str], reason: str | None = None) -> str:
        return _data({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    yield chunk({"role": "assistant", "content": ""})
    try:
        async for part in deltas(parts):
            if isinstance(part, str):
                yield chunk({"content": part})
                continue
            yield chunk({}, "stop")
            if has_usage:
                yield _data({**base, "choices": [], "usage": usage(part)})
    except (ApiError, HermesError) as error:
        yield _data({"error": _known(error).described})
        return
    yield "data: [DONE]\n\n"


async def response_events(parts: AsyncIterator[str | Answer], head: Mapping[str, Any]) -> AsyncIterator[str]:
    """Yield the events of a response; the last one is `response.completed` or `response.failed`."""
    number, item_id = 0, f"msg_{str(head['id'])[-24:]}"
    place = {"item_id": item_id, "output_index": 0, "content_index": 0}

    def event(kind: str, **fields: Any) -> str:
        nonlocal number
        number += 1
        return f"event: {kind}\n" + _data({"type": kind, "sequence_number": number - 1, **fields})

    yield event("response.created", response=head)
    empty = {**item("assistant", "", item_id), "status": "in_progress", "content": []}
    yield event("response.output_item.added", output_index=0, item=empty)
    part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    yield event("response.content_part.added", **place, part=part)
    try:
        async for each in deltas(parts):
            if isinstance(each, str):
                yield event("response.output_text.delta", **place, delta=each, logprobs=[])
                continue
            yield event("response.output_text.done", **place, text=each.text, logprobs=[])
            yield event("response.content_part.done", **place, part={**part, "text": each.text})
            yield event("response.output_item.done", output_index=0, item=item("assistant", each.text, item_id))
            yield event("response.completed", response=response_of(head, each))
    except (ApiError, HermesError) as error:
        yield event("response.failed", response=failed_response(head, _known(error)))


def stream(events: AsyncIterator[str], headers: Mapping[str, str]) -> StreamingResponse:
    """Return events as they come."""
    return StreamingResponse(_kept_alive(events), media_type="text/event-stream", headers={**_HEADERS, **headers})


async def _kept_alive(events: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yield events, and comments while none comes."""
    following = asyncio.ensure_future(_next(events))
    try:
        while True:
            done, _ = await asyncio.wait({following}, timeout=ALIVE_S)
            if not done:
                yield ": the answer is being written\n\n"
                continue
            if (event := following.result()) is None:
                return
            yield event
            following = asyncio.ensure_future(_next(events))
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def _next(events: AsyncIterator[str]) -> str | None:
    return await anext(events, None)


def _known(error: ApiError | HermesError) -> ApiError:
    return error if isinstance(error, ApiError) else error_of(error)


def _data(value: Any) -> str:
    return f"data: {encode(value)}\n\n"
