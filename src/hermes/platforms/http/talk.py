"""The routes that talk: chat completions, responses and conversations, as OpenAI's clients use them."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response, StreamingResponse

from hermes.platforms.http.conversations import (
    Conversation,
    answered_message,
    named_conversation,
    new_conversation,
    new_message_digits,
    start,
)
from hermes.platforms.http.errors import ApiError, error_body
from hermes.platforms.http.exchange import Answer, ApiAdapter
from hermes.platforms.http.requests import bad, content_text, optional_bool, optional_text, read_object

if TYPE_CHECKING:
    from starlette.requests import Request

    from hermes.state.lanes.types import LaneRow

SESSION_HEADER = "X-Hermes-Session-Id"
MODEL = "hermes"
MOST_MESSAGES = 2000
_EVENTS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@dataclass(frozen=True, slots=True)
class Said:
    """A message that was stored, and what is needed to answer the request."""

    conversation: Conversation
    message_id: str
    before: LaneRow | None

    @property
    def headers(self) -> dict[str, str]:
        """The header with which a client continues the conversation."""
        return {SESSION_HEADER: self.conversation.id}


class Talk:
    """The handlers; each is given the name of the principal."""

    def __init__(self, adapter: ApiAdapter) -> None:
        self._adapter = adapter
        self._db = adapter.db

    async def models(self, request: Request, principal: str) -> Response:
        """List the only model: the agent."""
        return JSONResponse({"object": "list", "data": [_model()]})

    async def model(self, request: Request, principal: str) -> Response:
        """Return the model."""
        if request.path_params["model"] != MODEL:
            raise ApiError(404, "model_not_found", "there is no such model")
        return JSONResponse(_model())

    async def complete(self, request: Request, principal: str) -> Response:
        """Answer the last message of a chat; earlier ones begin a new conversation, or are known."""
        data = await read_object(request)
        is_streamed = optional_bool(data, "stream")
        messages = _messages(data.get("messages"))
        said = await self._say(request, principal, messages, request.headers.get(SESSION_HEADER))
        head = {"id": f"chatcmpl-{said.conversation.digits}{said.message_id}", "created": int(time.time())}
        if is_streamed:
            options = data.get("stream_options")
            has_usage = isinstance(options, dict) and options.get("include_usage") is True
            return _events(self._chunks(said, head, has_usage=has_usage), said)
        answer = await self._adapter.answer(said.conversation, said.message_id, said.before)
        message = {"role": "assistant", "content": answer.text, "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        body = {**head, "object": "chat.completion", "model": MODEL, "choices": [choice], "usage": _usage(answer)}
        return JSONResponse({**body, "session_id": answer.session_id}, headers=said.headers)

    async def respond(self, request: Request, principal: str) -> Response:
        """Answer the input of a response; it continues another response or a conversation."""
        data = await read_object(request)
        is_streamed = optional_bool(data, "stream")
        given = data.get("input")
        if given is None:
            raise bad("input is missing")
        messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
        if (instructions := optional_text(data, "instructions", 200_000)) and isinstance(messages, list):
            messages = [{"role": "system", "content": instructions}, *messages]
        name = await self._continued(data, principal, request.headers.get(SESSION_HEADER))
        said = await self._say(request, principal, _messages(messages), name)
        previous = optional_text(data, "previous_response_id")
        head = _response_head(said.conversation, said.message_id, previous)
        if is_streamed:
            return _events(self._response_events(said, head), said)
        answer = await self._adapter.answer(said.conversation, said.message_id, said.before)
        return JSONResponse(_response(head, answer), headers=said.headers)

    async def response(self, request: Request, principal: str) -> Response:
        """Return a stored response; it is in progress until its answer is stored."""
        conversation, message_id = answered_message(principal, request.path_params["response_id"])
        row = await self._adapter.message(conversation, message_id)
        if row is None:
            raise ApiError(404, "not_found", "there is no such response")
        head = _response_head(conversation, message_id, None, row["accepted_at"])
        try:
            answer = await self._adapter.find_answer(conversation, message_id)
        except ApiError as error:
            failure = {"code": "server_error", "message": error.message}
            return JSONResponse({**head, "status": "failed", "error": failure, "output": []})
        return JSONResponse(head if answer is None else _response(head, answer))

    async def create_conversation(self, request: Request, principal: str) -> Response:
        """Create a conversation."""
        data = await read_object(request)
        history = [] if data.get("items") in (None, []) else _messages(data["items"], needs_user=False)
        conversation = new_conversation(principal, _idempotency_key(request))
        await start(self._db, conversation, [each for each in history if each["role"] != "system"])
        return JSONResponse(await self._described(conversation))

    async def conversation(self, request: Request, principal: str) -> Response:
        """Return a conversation."""
        return JSONResponse(await self._described(await self._known(request, principal)))

    async def items(self, request: Request, principal: str) -> Response:
        """List the messages of a conversation, the newest first unless `order` is `asc`."""
        from hermes.platforms.http.requests import page_size

        conversation, size = await self._known(request, principal), page_size(request)
        lane = await self._db.lanes.get(conversation.key)
        rows = [] if lane is None else await self._db.get_messages(lane["session_id"])
        said = [each for each in rows if each["role"] in ("user", "assistant") and isinstance(each["content"], str)]
        if request.query_params.get("order") != "asc":
            said.reverse()
        after = request.query_params.get("after")
        ids = [f"msg_{each['id']}" for each in said]
        first = ids.index(after) + 1 if after in ids else 0
        page = [_item(each["role"], str(each["content"]), f"msg_{each['id']}") for each in said[first : first + size]]
        ends = {"first_id": page[0]["id"] if page else "", "last_id": page[-1]["id"] if page else ""}
        return JSONResponse({"object": "list", "data": page, **ends, "has_more": first + size < len(said)})

    # --- parts --------------------------------------------------------------------------------------------------------

    async def _say(
        self, request: Request, principal: str, messages: Sequence[dict[str, str]], name: str | None
    ) -> Said:
        """Store the last message in its conversation, which is created with the earlier ones if it is new."""
        retry_key = _idempotency_key(request)
        if name is None:
            conversation = new_conversation(principal, retry_key)
        else:
            if not name.strip() or len(name) > 256 or not name.isprintable():
                raise bad(f"{SESSION_HEADER} must have 1 to 256 printable characters")
            conversation = await named_conversation(self._db, principal, name)
        before = await self._db.lanes.get(conversation.key)
        text = messages[-1]["content"]
        if before is None:
            told = [each["content"] for each in messages if each["role"] == "system"]
            await start(self._db, conversation, [each for each in messages[:-1] if each["role"] != "system"])
            text = "\n\n".join([*told, text])
        message_id = new_message_digits(retry_key)
        await self._adapter.say(conversation, message_id, text)
        return Said(conversation, message_id, before)

    async def _continued(self, data: dict[str, Any], principal: str, header: str | None) -> str | None:
        """Return the conversation that a response continues."""
        if (previous := optional_text(data, "previous_response_id")) is not None:
            conversation, message_id = answered_message(principal, previous)
            if await self._adapter.message(conversation, message_id) is None:
                raise ApiError(404, "not_found", "there is no such response")
            return conversation.id
        given = data.get("conversation")
        if given is None:
            return header
        name = optional_text(given if isinstance(given, dict) else {"id": given}, "id")
        if name is None:
            raise bad("conversation must be an id, or an object with an id")
        conversation = await named_conversation(self._db, principal, name)
        if await self._db.lanes.get(conversation.key) is None:
            raise ApiError(404, "not_found", "there is no such conversation")
        return conversation.id

    async def _known(self, request: Request, principal: str) -> Conversation:
        conversation = await named_conversation(self._db, principal, request.path_params["conversation_id"])
        if await self._db.lanes.get(conversation.key) is None:
            raise ApiError(404, "not_found", "there is no such conversation")
        return conversation

    async def _described(self, conversation: Conversation) -> dict[str, Any]:
        lane = await self._db.lanes.get(conversation.key)
        created = 0 if lane is None else int(lane["created_at"])
        session = None if lane is None else lane["session_id"]
        body = {"id": conversation.id, "object": "conversation", "created_at": created, "metadata": {}}
        return {**body, "session_id": session}

    async def _deltas(self, said: Said) -> AsyncIterator[str | Answer]:
        """Yield what is new of the answer, and then the answer itself; together the parts are its text."""
        shown = ""
        async for part in self._adapter.parts(said.conversation, said.message_id, said.before):
            text = part.text if isinstance(part, Answer) else part
            if text.startswith(shown) and text != shown:
                yield text[len(shown) :]
                shown = text
            elif isinstance(part, Answer) and text != shown:
                yield f"\n\n{text}"  # a tool was called after the text that was shown
            if isinstance(part, Answer):
                yield part

    async def _chunks(self, said: Said, head: dict[str, Any], *, has_usage: bool) -> AsyncIterator[str]:
        base = {**head, "object": "chat.completion.chunk", "model": MODEL}

        def chunk(delta: dict[str, str], reason: str | None = None) -> str:
            return _event({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

        yield chunk({"role": "assistant", "content": ""})
        async for part in self._deltas(said):
            if isinstance(part, str):
                yield chunk({"content": part})
                continue
            yield chunk({}, "stop")
            if has_usage:
                yield _event({**base, "choices": [], "usage": _usage(part)})
        yield "data: [DONE]\n\n"

    async def _response_events(self, said: Said, head: dict[str, Any]) -> AsyncIterator[str]:
        number, item_id = 0, f"msg_{said.message_id}"
        place = {"item_id": item_id, "output_index": 0, "content_index": 0}

        def event(kind: str, **fields: Any) -> str:
            nonlocal number
            number += 1
            return f"event: {kind}\n" + _event({"type": kind, "sequence_number": number - 1, **fields})

        yield event("response.created", response=head)
        empty = {**_item("assistant", "", item_id), "status": "in_progress", "content": []}
        yield event("response.output_item.added", output_index=0, item=empty)
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        yield event("response.content_part.added", **place, part=part)
        async for each in self._deltas(said):
            if isinstance(each, str):
                yield event("response.output_text.delta", **place, delta=each, logprobs=[])
                continue
            yield event("response.output_text.done", **place, text=each.text, logprobs=[])
            yield event("response.content_part.done", **place, part={**part, "text": each.text})
            yield event("response.output_item.done", output_index=0, item=_item("assistant", each.text, item_id))
            yield event("response.completed", response=_response(head, each))


def _messages(given: object, *, needs_user: bool = True) -> list[dict[str, str]]:
    """Return messages as role and text; raise `ApiError` if one cannot be read or the last one is not the user's."""
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_MESSAGES:
        raise bad(f"messages must be a list of 1 to {MOST_MESSAGES} messages")
    found = []
    for index, each in enumerate(given):
        role = each.get("role") if isinstance(each, dict) else None
        if role not in ("system", "developer", "user", "assistant"):
            raise bad(f"messages[{index}] must be a message of system, developer, user or assistant")
        text = content_text(each.get("content"), f"messages[{index}].content")
        found.append({"role": "system" if role == "developer" else role, "content": text})
    if needs_user and (found[-1]["role"] != "user" or not found[-1]["content"].strip()):
        raise bad("the last message must be one of the user, with text")
    return found


def _idempotency_key(request: Request) -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is not None and not 1 <= len(key) <= 255:
        raise bad("Idempotency-Key must have 1 to 255 characters")
    return key


def _model() -> dict[str, Any]:
    return {"id": MODEL, "object": "model", "created": 0, "owned_by": "hermes"}


def _usage(answer: Answer) -> dict[str, int]:
    total = answer.prompt_tokens + answer.completion_tokens
    return {
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "total_tokens": total,
    }


def _response_head(
    conversation: Conversation, message_id: str, previous: str | None, created_at: float | None = None
) -> dict[str, Any]:
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


def _response(head: dict[str, Any], answer: Answer) -> dict[str, Any]:
    used = {
        "input_tokens": answer.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": answer.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
    }
    item = _item("assistant", answer.text, f"msg_{head['id'][-24:]}")
    return {**head, "status": "completed", "output": [item], "usage": used, "session_id": answer.session_id}


def _item(role: str, text: str, item_id: str) -> dict[str, Any]:
    kind: dict[str, Any] = {"type": "input_text", "text": text}
    if role == "assistant":
        kind = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"id": item_id, "type": "message", "role": role, "status": "completed", "content": [kind]}


def _event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data)}\n\n"


def _events(events: AsyncIterator[str], said: Said) -> StreamingResponse:
    headers = {**_EVENTS, **said.headers}
    return StreamingResponse(_with_errors(events), media_type="text/event-stream", headers=headers)


async def _with_errors(events: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yield events; an error ends them with one that clients read."""
    try:
        async for event in events:
            yield event
    except ApiError as error:
        yield f"data: {error_body(error.status, error.code, error.message).decode()}\n\n"
