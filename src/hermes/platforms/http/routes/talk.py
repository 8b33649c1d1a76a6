"""The routes that talk: models, chat completions and responses, as OpenAI's clients use them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from hermes.platforms.http.conversations import (
    Conversation,
    answered_message,
    missing_response,
    named_conversation,
    new_conversation,
    new_message_digits,
    start,
    text_mark,
)
from hermes.platforms.http.errors import ApiError
from hermes.platforms.http.exchange import Answer, ApiAdapter
from hermes.platforms.http.requests import Fields, bad, idempotency_key, read_fields
from hermes.platforms.http.routes.events import chunks, response_events, stream
from hermes.platforms.http.routes.shapes import (
    MODEL,
    failed_response,
    json_response,
    model,
    response_head,
    response_of,
    usage,
)

if TYPE_CHECKING:
    from starlette.requests import Request

    from hermes.state.lanes.types import LaneRow

SESSION_HEADER = "X-Hermes-Session-Id"
MAX_INSTRUCTIONS = 200_000


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
        self._saying: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """A conversation gets one message at a time, so that its earlier messages are stored first, and once."""

    async def models(self, request: Request, principal: str) -> Response:
        """List the only model: the agent."""
        return json_response({"object": "list", "data": [model()]})

    async def model(self, request: Request, principal: str) -> Response:
        """Return the model."""
        if request.path_params["model"] != MODEL:
            raise ApiError(404, "model_not_found", "there is no such model")
        return json_response(model())

    async def complete(self, request: Request, principal: str) -> Response:
        """Let the agent answer the last message of a chat; earlier ones begin a new conversation, or are known."""
        data = await read_fields(request)
        is_streamed, has_usage = data.flag("stream"), data.inner("stream_options").flag("include_usage")
        _refuse_unsupported(data)
        messages = data.messages("messages")
        said = await self._say(request, principal, messages, request.headers.get(SESSION_HEADER))
        head = {"id": f"chatcmpl-{said.conversation.digits}{said.message_id}", "created": int(time.time())}
        if is_streamed:
            parts = self._adapter.parts(said.conversation, said.message_id, said.before)
            return stream(chunks(parts, head, has_usage=has_usage), said.headers)
        answer = await self._answer(request, said)
        message = {"role": "assistant", "content": answer.text, "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        body = {**head, "object": "chat.completion", "model": MODEL, "choices": [choice], "usage": usage(answer)}
        return json_response({**body, "session_id": answer.session_id}, headers=said.headers)

    async def respond(self, request: Request, principal: str) -> Response:
        """Let the agent answer the input of a response; it continues another response or a conversation."""
        data = await read_fields(request)
        is_streamed, is_background = data.flag("stream"), data.flag("background")
        _refuse_unsupported(data)
        messages = data.messages("input")
        if instructions := data.text("instructions", MAX_INSTRUCTIONS):
            messages = [{"role": "system", "content": instructions}, *messages]
        previous = data.text("previous_response_id")
        name = await self._continued(data, principal, previous, request.headers.get(SESSION_HEADER))
        said = await self._say(request, principal, messages, name)
        head = response_head(said.conversation, said.message_id, previous)
        if is_streamed:
            parts = self._adapter.parts(said.conversation, said.message_id, said.before)
            return stream(response_events(parts, head), said.headers)
        if is_background:
            return json_response({**head, "background": True}, headers=said.headers)
        return json_response(response_of(head, await self._answer(request, said)), headers=said.headers)

    async def response(self, request: Request, principal: str) -> Response:
        """Return a stored response; it is in progress until its answer is stored."""
        if request.query_params.get("stream", "false").lower() != "false":
            raise bad("a response is streamed only while it is created", "unsupported_parameter", "stream")
        conversation, message_id = answered_message(principal, request.path_params["response_id"])
        row = await self._adapter.message(conversation, message_id)
        if row is None:
            raise missing_response()
        head = response_head(conversation, message_id, None, row["accepted_at"])
        try:
            answer = await self._adapter.find_answer(conversation, message_id)
        except ApiError as error:
            if error.status == 404:
                raise
            return json_response(failed_response(head, error))
        return json_response(head if answer is None else response_of(head, answer))

    # --- parts --------------------------------------------------------------------------------------------------------

    async def _say(
        self, request: Request, principal: str, messages: Sequence[dict[str, str]], name: str | None
    ) -> Said:
        """Store the last message in its conversation, which is created with the earlier ones if it is new."""
        retry_key = idempotency_key(request)
        if name is None:
            conversation = new_conversation(principal, retry_key)
        else:
            if not name.strip() or len(name) > 256 or not name.isprintable():
                raise bad(f"{SESSION_HEADER} must have 1 to 256 printable characters", param=SESSION_HEADER)
            conversation = await named_conversation(self._db, principal, name)
        text, message_id = messages[-1]["content"], new_message_digits(retry_key)
        async with self._saying.setdefault(conversation.key, asyncio.Lock()):
            if conversation.continues:
                await start(self._db, conversation)
            before = await self._db.lanes.get(conversation.key)
            known = None if retry_key is None else await self._adapter.message(conversation, message_id)
            if known is not None:
                if not str(known["delivery_id"]).endswith(text_mark(text)):
                    raise ApiError(409, "idempotency_key_reused", "this Idempotency-Key was used for another message")
                return Said(conversation, message_id, before)
            told = [each["content"] for each in messages if each["role"] == "system"] if before is None else []
            told_text = "\n\n".join([*told, text])
            self._adapter.check_text(told_text)
            if before is None:
                await start(self._db, conversation, [each for each in messages[:-1] if each["role"] != "system"])
            await self._adapter.say(conversation, message_id, told_text, text_mark(text))
        return Said(conversation, message_id, before)

    async def _answer(self, request: Request, said: Said) -> Answer:
        """Wait for an answer as long as the client does; the turn goes on without it."""
        answering = asyncio.ensure_future(self._adapter.answer(said.conversation, said.message_id, said.before))
        leaving = asyncio.ensure_future(_wait_until_left(request))
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                raise ClientDisconnect
            return answering.result()
        finally:
            answering.cancel()
            leaving.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)

    async def _continued(self, data: Fields, principal: str, previous: str | None, header: str | None) -> str | None:
        """Return the conversation that a response continues."""
        name = data.id_or_object("conversation")
        if previous is not None:
            if name is not None:
                raise bad("previous_response_id and conversation exclude each other", param="conversation")
            conversation, message_id = answered_message(principal, previous)
            if await self._adapter.message(conversation, message_id) is None:
                raise missing_response()
            return conversation.id
        if name is None:
            return header
        conversation = await named_conversation(self._db, principal, name)
        if not conversation.continues and await self._db.lanes.get(conversation.key) is None:
            raise ApiError(404, "not_found", "there is no such conversation", param="conversation")
        return name


def _refuse_unsupported(data: Fields) -> None:
    """Raise `ApiError` if a request asks for what changes the meaning of the answer and is not supported."""
    for name in ("tools", "functions"):
        if not data.is_empty(name):
            raise bad(f"{name} is not supported: the agent has tools of its own", "unsupported_parameter", name)
    if (data.number("n") or 1) != 1:
        raise bad("n must be 1", "unsupported_parameter", "n")
    for outer, inner in (("response_format", None), ("text", "format")):
        wanted = data.inner(outer)
        kind = (wanted if inner is None else wanted.inner(inner)).text("type")
        if kind not in (None, "text"):
            raise bad("only text can be asked for", "unsupported_parameter", outer)


async def _wait_until_left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
