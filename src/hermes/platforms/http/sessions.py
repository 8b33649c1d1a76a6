"""The routes about stored sessions; each shows a principal only its own."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from hermes.errors import HermesError, InvalidValue, UnknownSession
from hermes.ids import new_session_id
from hermes.platforms.http.errors import ApiError
from hermes.platforms.http.principals import owner_of_principal
from hermes.platforms.http.requests import MAX_NAME_CHARACTERS, bad, optional_text, page_size, read_object

if TYPE_CHECKING:
    from starlette.requests import Request

    from hermes.state.asynchronous.owner_view import AsyncOwnerView
    from hermes.state.asynchronous.session_db import AsyncSessionDB

_SHOWN = ("id", "source", "title", "model", "started_at", "ended_at", "end_reason", "message_count", "last_active")
_FIGURES = ("parent_session_id", "input_tokens", "output_tokens", "estimated_cost_usd", "preview")
_MESSAGE = ("id", "role", "content", "timestamp", "tool_name", "tool_calls", "tool_call_id", "finish_reason")
_HIDDEN = ("system_prompt", "model_config", "owner", "cwd")


class Sessions:
    """The handlers; each is given the name of the principal."""

    def __init__(self, db: AsyncSessionDB) -> None:
        self._db = db

    async def list(self, request: Request, principal: str) -> Response:
        """List sessions, the most recently active first; `after` takes the `next` of the page before."""
        size, after = page_size(request, 50, 200), request.query_params.get("after")
        if after is not None and len(after) > MAX_NAME_CHARACTERS:
            raise bad("after is no cursor")
        rows = await self._view(principal).list_sessions_rich(limit=size + 1, order_by_last_active=True, after=after)
        has_more, rows = len(rows) > size, rows[:size]
        following = rows[-1].get("cursor") if has_more else None
        return JSONResponse(
            {"object": "list", "data": [_session(each) for each in rows], "has_more": has_more, "next": following}
        )

    async def get(self, request: Request, principal: str) -> Response:
        """Return a session."""
        return JSONResponse(_session(await self._session(request, principal)))

    async def messages(self, request: Request, principal: str) -> Response:
        """List messages in their order; `after` is the id of the last one of the page before."""
        session, size = await self._session(request, principal), page_size(request, 100, 500)
        after = request.query_params.get("after", "0")
        if not (after.isascii() and after.isdigit() and len(after) < 18):
            raise bad("after must be the id of a message")
        rows = await self._view(principal).get_messages(session["id"], after_id=int(after), limit=size + 1)
        data = [{name: each.get(name) for name in _MESSAGE} for each in rows[:size]]
        return JSONResponse({"object": "list", "data": data, "has_more": len(rows) > size})

    async def search(self, request: Request, principal: str) -> Response:
        """Search the messages of all sessions."""
        query = request.query_params.get("q", "")
        if not 1 <= len(query.strip()) <= 500:
            raise bad("q must have 1 to 500 characters")
        hits = await self._view(principal).search_messages(query, limit=page_size(request))
        names = ("id", "session_id", "title", "role", "timestamp", "snippet")
        return JSONResponse({"object": "list", "data": [{name: hit.get(name) for name in names} for hit in hits]})

    async def rename(self, request: Request, principal: str) -> Response:
        """Change the title of a session; null or an empty text removes it."""
        session, data = await self._session(request, principal), await read_object(request)
        if set(data) != {"title"}:
            raise bad("only title can be changed")
        await self._view(principal).set_session_title(session["id"], optional_text(data, "title", 1000))
        return await self.get(request, principal)

    async def delete(self, request: Request, principal: str) -> Response:
        """Delete a session and its messages."""
        session = await self._session(request, principal)
        await self._db.delete_session(session["id"])
        return JSONResponse({"id": session["id"], "object": "session.deleted", "deleted": True})

    async def fork(self, request: Request, principal: str) -> Response:
        """Copy a session into a new one."""
        session, data = await self._session(request, principal), await read_object(request)
        child_id, title = f"{new_session_id()}{secrets.token_hex(8)}", optional_text(data, "title", 1000)
        await self._view(principal).branch_session(session["id"], child_id, title)
        child = await self._view(principal).get_session(child_id)
        if child is None:
            raise ApiError(404, "not_found", "the session was deleted meanwhile")
        return JSONResponse(_session(child), status_code=201)

    async def export(self, request: Request, principal: str) -> Response:
        """Return a session with all its messages."""
        session = await self._session(request, principal)
        exported = await self._view(principal).export_session(session["id"])
        return JSONResponse({name: value for name, value in (exported or {}).items() if name not in _HIDDEN})

    def _view(self, principal: str) -> AsyncOwnerView:
        return self._db.for_owner(owner_of_principal(principal))

    async def _session(self, request: Request, principal: str) -> dict[str, Any]:
        """Return the session of a path; one of another owner is as unknown as one that does not exist."""
        name = request.path_params["session_id"]
        found = None
        if len(name) <= MAX_NAME_CHARACTERS and name.isprintable():
            found = await self._view(principal).get_session(name)
        if found is None:
            raise ApiError(404, "not_found", "there is no such session")
        return dict(found)


def error_of(error: HermesError) -> ApiError:
    """Return the error of the API for an error of the store."""
    if isinstance(error, UnknownSession):
        return ApiError(404, "not_found", "there is no such session")
    if isinstance(error, InvalidValue):
        return ApiError(400, error.code, error.message)
    if error.code == "title_taken":
        return ApiError(409, error.code, error.message)
    return ApiError(503, "unavailable", "the store is not available now; try again in a moment")


def _session(row: Any) -> dict[str, Any]:
    shown = {name: row.get(name) for name in (*_SHOWN, *_FIGURES)}
    return {"object": "session", **shown, "has_system_prompt": bool(row.get("system_prompt"))}
