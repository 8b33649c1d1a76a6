"""The routes about conversations, as OpenAI's clients use them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from hermes.platforms.http.conversations import (
    Conversation,
    named_conversation,
    new_conversation,
    sessions_of,
    start,
)
from hermes.platforms.http.errors import ApiError
from hermes.platforms.http.principals import owner_of_principal
from hermes.platforms.http.requests import MAX_NAME_CHARACTERS, idempotency_key, message_number, page_size, read_fields
from hermes.platforms.http.routes.sessions import MAX_PAGE_BYTES
from hermes.platforms.http.routes.shapes import encode, item, json_response

if TYPE_CHECKING:
    from starlette.requests import Request

    from hermes.state.asynchronous.owner_view import AsyncOwnerView
    from hermes.state.asynchronous.session_db import AsyncSessionDB
    from hermes.state.row_types import MessageRow, SessionRow

_STEP = 20
_NEWEST = 1 << 62
_PREFIX = "msg_"


class Conversations:
    """The handlers; each is given the name of the principal."""

    def __init__(self, db: AsyncSessionDB, sessions_dir: Path) -> None:
        self._db = db
        self._sessions_dir = sessions_dir

    async def create(self, request: Request, principal: str) -> Response:
        """Create a conversation."""
        data = await read_fields(request)
        history = [] if data.is_empty("items") else data.messages("items", needs_user=False)
        conversation = new_conversation(principal, idempotency_key(request), route="create")
        await start(self._db, conversation, [each for each in history if each["role"] != "system"])
        return json_response(_described(*await self._find(conversation)))

    async def get(self, request: Request, principal: str) -> Response:
        """Return a conversation."""
        return json_response(_described(*await self._known(request, principal)))

    async def delete(self, request: Request, principal: str) -> Response:
        """Delete a conversation with its messages, also those from before it was compressed."""
        conversation, session = await self._known(request, principal)
        session_ids = await sessions_of(self._db, principal, session["id"])
        await self._db.delete_sessions(session_ids, self._sessions_dir)
        return json_response({"id": conversation.id, "object": "conversation.deleted", "deleted": True})

    async def items(self, request: Request, principal: str) -> Response:
        """List the messages of a conversation, the newest first unless `order` is `asc`."""
        (_, session), size = await self._known(request, principal), page_size(request)
        after = message_number(request.query_params.get("after"), _PREFIX)
        is_ascending = request.query_params.get("order") == "asc"
        rows = self._said(self._view(principal), session["id"], after, is_ascending=is_ascending)
        page: list[dict[str, Any]] = []
        size_bytes, has_more = 0, False
        async for row in rows:
            if len(page) == size or size_bytes > MAX_PAGE_BYTES:
                has_more = True
                break
            page.append(_item(row))
            size_bytes += len(encode(page[-1]))
        ends = {"first_id": page[0]["id"] if page else "", "last_id": page[-1]["id"] if page else ""}
        return json_response({"object": "list", "data": page, **ends, "has_more": has_more})

    async def item(self, request: Request, principal: str) -> Response:
        """Return a message of a conversation."""
        _, session = await self._known(request, principal)
        number = message_number(request.path_params["item_id"], _PREFIX) or 0
        view = self._view(principal)
        for row in await view.get_messages(session["id"], after_id=number - 1, limit=1):
            if row["id"] == number and _is_said(row):
                return json_response(_item(row))
        raise ApiError(404, "not_found", "there is no such item")

    async def _said(
        self, view: AsyncOwnerView, session_id: str, after: int | None, *, is_ascending: bool
    ) -> AsyncIterator[MessageRow]:
        """Yield what user and agent have said, after a message in the order that is wanted; few are in memory."""
        place = after if after is not None else 0 if is_ascending else _NEWEST
        while True:
            if is_ascending:
                rows = await view.get_messages(session_id, after_id=place, limit=_STEP)
            else:
                rows = (await view.get_messages(session_id, before_id=place, limit=_STEP))[::-1]
            for each in filter(_is_said, rows):
                yield each
            if len(rows) < _STEP:
                return
            place = rows[-1]["id"]

    def _view(self, principal: str) -> AsyncOwnerView:
        return self._db.for_owner(owner_of_principal(principal))

    async def _known(self, request: Request, principal: str) -> tuple[Conversation, SessionRow]:
        """Return the conversation of a path and its session; one whose session was deleted is gone."""
        name = request.path_params["conversation_id"]
        if len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
            raise _missing()
        return await self._find(await named_conversation(self._db, principal, name))

    async def _find(self, conversation: Conversation) -> tuple[Conversation, SessionRow]:
        session_id = conversation.continues
        if session_id is None and (lane := await self._db.lanes.get(conversation.key)) is not None:
            session_id = lane["session_id"]
        session = None if session_id is None else await self._view(conversation.principal).get_session(session_id)
        if session is None:
            raise _missing()
        return conversation, session


def _missing() -> ApiError:
    return ApiError(404, "not_found", "there is no such conversation")


def _is_said(row: MessageRow) -> bool:
    return row["role"] in ("user", "assistant") and isinstance(row["content"], str)


def _item(row: MessageRow) -> dict[str, Any]:
    return item(row["role"], str(row["content"]), f"{_PREFIX}{row['id']}")


def _described(conversation: Conversation, session: SessionRow) -> dict[str, Any]:
    body = {"id": conversation.id, "object": "conversation", "created_at": int(session["started_at"]), "metadata": {}}
    return {**body, "session_id": session["id"]}
