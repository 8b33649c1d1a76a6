"""The routes about stored sessions; each shows a principal only its own."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from hermes.ids import new_session_id
from hermes.platforms.http.errors import MISSING_SESSION, ApiError
from hermes.platforms.http.principals import owner_of_principal
from hermes.platforms.http.requests import MAX_NAME_CHARACTERS, bad, message_number, page_size, read_fields
from hermes.platforms.http.routes.shapes import encode, json_response, list_response

if TYPE_CHECKING:
    from starlette.requests import Request

    from hermes.state.asynchronous.owner_view import AsyncOwnerView
    from hermes.state.asynchronous.session_db import AsyncSessionDB
    from hermes.state.row_types import MessageRow

MAX_PAGE_BYTES = 8 * 1024 * 1024
"""A page of messages ends after so many bytes, even if it has fewer messages than were asked for."""
_STEP = 20
_MAX_TITLE = 1000
_SHOWN = ("id", "source", "title", "model", "started_at", "ended_at", "end_reason", "message_count", "last_active")
_FIGURES = ("parent_session_id", "input_tokens", "output_tokens", "estimated_cost_usd", "preview")
_MESSAGE = ("id", "role", "content", "timestamp", "tool_name", "tool_calls", "tool_call_id", "finish_reason")
_EXPORTED = (
    *_SHOWN[:-1],
    *("parent_session_id", "tool_call_count", "input_tokens", "output_tokens", "cache_read_tokens"),
    *("cache_write_tokens", "reasoning_tokens", "estimated_cost_usd", "actual_cost_usd"),
)


class Sessions:
    """The handlers; each is given the name of the principal."""

    def __init__(self, db: AsyncSessionDB, sessions_dir: Path) -> None:
        self._db = db
        self._sessions_dir = sessions_dir

    async def list(self, request: Request, principal: str) -> Response:
        """List sessions, the most recently active first; `after` takes the `next` of the page before."""
        size, after = page_size(request, 50, 200), request.query_params.get("after")
        if after is not None and len(after) > MAX_NAME_CHARACTERS:
            raise bad("after is no cursor", param="after")
        rows = await self._view(principal).list_sessions_rich(limit=size + 1, order_by_last_active=True, after=after)
        has_more, rows = len(rows) > size, rows[:size]
        following = rows[-1].get("cursor") if has_more else None
        data = [_session(each) for each in rows]
        return json_response({"object": "list", "data": data, "has_more": has_more, "next": following})

    async def get(self, request: Request, principal: str) -> Response:
        """Return a session."""
        return json_response(_session(await self._session(request, principal)))

    async def messages(self, request: Request, principal: str) -> Response:
        """List messages in their order; `after` is the id of the last one of the page before."""
        session, size = await self._session(request, principal), page_size(request, 100, 500)
        after = message_number(request.query_params.get("after")) or 0
        data: list[dict[str, Any]] = []
        size_bytes, has_more = 0, False
        async for row in self._messages(principal, session["id"], after):
            if len(data) == size or size_bytes > MAX_PAGE_BYTES:
                has_more = True
                break
            data.append(_message(row))
            size_bytes += len(encode(data[-1]))
        return json_response({"object": "list", "data": data, "has_more": has_more})

    async def search(self, request: Request, principal: str) -> Response:
        """Search the messages of all sessions."""
        query = request.query_params.get("q", "")
        if not 1 <= len(query.strip()) <= 500:
            raise bad("q must have 1 to 500 characters", param="q")
        hits = await self._view(principal).search_messages(query, limit=page_size(request))
        names = ("id", "session_id", "title", "role", "timestamp", "snippet")
        return json_response({"object": "list", "data": [{name: hit.get(name) for name in names} for hit in hits]})

    async def rename(self, request: Request, principal: str) -> Response:
        """Change the title of a session; null or an empty text removes it."""
        session, data = await self._session(request, principal), await read_fields(request)
        if data.given != {"title"}:
            raise bad("only title can be changed", param="title")
        await self._view(principal).set_session_title(session["id"], data.text("title", _MAX_TITLE))
        return await self.get(request, principal)

    async def delete(self, request: Request, principal: str) -> Response:
        """Delete a session with its messages and files."""
        session = await self._session(request, principal)
        await self._db.delete_session(session["id"], self._sessions_dir)
        return json_response({"id": session["id"], "object": "session.deleted", "deleted": True})

    async def fork(self, request: Request, principal: str) -> Response:
        """Copy a session into a new one."""
        session, data = await self._session(request, principal), await read_fields(request)
        child_id, title = f"{new_session_id()}{secrets.token_hex(8)}", data.text("title", _MAX_TITLE)
        await self._view(principal).branch_session(session["id"], child_id, title)
        child = await self._view(principal).get_session(child_id)
        if child is None:
            raise ApiError(404, "not_found", "the session was deleted meanwhile")
        return json_response(_session(child), 201)

    async def export(self, request: Request, principal: str) -> Response:
        """Return a session with all its messages, however many there are."""
        session = await self._session(request, principal)
        rows = self._messages(principal, session["id"], 0)
        head = {name: session.get(name) for name in _EXPORTED}
        return list_response(head, "messages", (_message(row) async for row in rows))

    async def _messages(self, principal: str, session_id: str, after: int) -> AsyncIterator[MessageRow]:
        """Yield messages in their order; few of them are in memory."""
        view = self._view(principal)
        while rows := await view.get_messages(session_id, after_id=after, limit=_STEP):
            for row in rows:
                yield row
            after = rows[-1]["id"]

    def _view(self, principal: str) -> AsyncOwnerView:
        return self._db.for_owner(owner_of_principal(principal))

    async def _session(self, request: Request, principal: str) -> dict[str, Any]:
        """Return the session of a path; one of another owner is as unknown as one that does not exist."""
        name = request.path_params["session_id"]
        found = None
        if len(name) <= MAX_NAME_CHARACTERS and name.isprintable():
            found = await self._view(principal).get_session(name)
        if found is None:
            raise ApiError(404, "not_found", MISSING_SESSION)
        return dict(found)


def _session(row: Any) -> dict[str, Any]:
    shown = {name: row.get(name) for name in (*_SHOWN, *_FIGURES)}
    return {"object": "session", **shown, "has_system_prompt": bool(row.get("system_prompt"))}


def _message(row: Any) -> dict[str, Any]:
    return {name: row.get(name) for name in _MESSAGE}
