"""The API as an application: its routes, the check of keys, and errors as clients read them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hermes.errors import HermesError
from hermes.platforms.http.errors import JSON, ApiError, error_of
from hermes.platforms.http.openapi import document
from hermes.platforms.http.routes.conversations import Conversations
from hermes.platforms.http.routes.sessions import Sessions
from hermes.platforms.http.routes.talk import Talk

if TYPE_CHECKING:
    from hermes.platforms.http.exchange import ApiAdapter
    from hermes.platforms.http.principals import Principals

Endpoint = Callable[[Request, str], Awaitable[Response]]
_CODES = {404: "not_found", 405: "method_not_allowed"}


def make_app(adapter: ApiAdapter, principals: Principals, sessions_dir: Path) -> Starlette:
    """Return the application; every route but the document needs a key. `sessions_dir` has the files of sessions."""
    talk = Talk(adapter)
    conversations, sessions = Conversations(adapter.db, sessions_dir), Sessions(adapter.db, sessions_dir)
    endpoints: dict[tuple[str, str], Endpoint] = {
        ("GET", "/v1/models"): talk.models,
        ("GET", "/v1/models/{model}"): talk.model,
        ("POST", "/v1/chat/completions"): talk.complete,
        ("POST", "/v1/responses"): talk.respond,
        ("GET", "/v1/responses/{response_id}"): talk.response,
        ("POST", "/v1/conversations"): conversations.create,
        ("GET", "/v1/conversations/{conversation_id}"): conversations.get,
        ("DELETE", "/v1/conversations/{conversation_id}"): conversations.delete,
        ("GET", "/v1/conversations/{conversation_id}/items"): conversations.items,
        ("GET", "/v1/conversations/{conversation_id}/items/{item_id}"): conversations.item,
        ("GET", "/v1/sessions"): sessions.list,
        ("GET", "/v1/sessions/search"): sessions.search,
        ("GET", "/v1/sessions/{session_id}"): sessions.get,
        ("PATCH", "/v1/sessions/{session_id}"): sessions.rename,
        ("DELETE", "/v1/sessions/{session_id}"): sessions.delete,
        ("GET", "/v1/sessions/{session_id}/messages"): sessions.messages,
        ("POST", "/v1/sessions/{session_id}/fork"): sessions.fork,
        ("GET", "/v1/sessions/{session_id}/export"): sessions.export,
    }
    by_path: dict[str, dict[str, Endpoint]] = {}
    for (method, path), endpoint in endpoints.items():
        by_path.setdefault(path, {})[method] = endpoint
    routes = [Route(path, _guarded(methods, principals), methods=list(methods)) for path, methods in by_path.items()]
    routes.append(Route("/openapi.json", _document, methods=["GET"]))
    handlers = {ApiError: _on_error, HTTPException: _on_http_error}
    app = Starlette(routes=routes, exception_handlers=handlers)  # type: ignore[arg-type]
    app.router.redirect_slashes = False
    return app


def _guarded(methods: dict[str, Endpoint], principals: Principals) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        principal = principals.require(request.headers.get("Authorization", ""))
        method = "GET" if request.method == "HEAD" and "HEAD" not in methods else request.method
        try:
            return await methods[method](request, principal)
        except HermesError as error:
            raise error_of(error) from error
        except ClientDisconnect:
            raise ApiError(400, "incomplete", "the request is not complete") from None

    return serve


async def _document(request: Request) -> Response:
    return JSONResponse(document())


async def _on_error(request: Request, error: ApiError) -> Response:
    return Response(error.body, error.status, error.headers, JSON)


async def _on_http_error(request: Request, error: HTTPException) -> Response:
    code = _CODES.get(error.status_code, "bad_request")
    return Response(
        ApiError(error.status_code, code, str(error.detail)).body, error.status_code, dict(error.headers or {}), JSON
    )
