"""The description of the API in the format of OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

from hermes import __version__

_TEXT: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 32_000, "pattern": r"\S"}
_TITLE: dict[str, Any] = {"type": ["string", "null"], "maxLength": 100}
_ANY: dict[str, Any] = {"type": "object"}
_MESSAGE: dict[str, Any] = {
    "type": "object",
    "properties": {"role": {"enum": ["system", "developer", "user", "assistant"]}, "content": _TEXT},
    "required": ["role", "content"],
}
_MESSAGES: dict[str, Any] = {"type": "array", "items": _MESSAGE, "minItems": 1, "maxItems": 2000}


def document() -> dict[str, Any]:
    """Return the document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Hermes Sessions", "version": __version__},
        "security": [{"key": []}],
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _error_schema()},
        },
        "paths": _paths(),
    }


def _paths() -> dict[str, Any]:
    session = "/v1/sessions/{session_id}"
    retry = _parameter("Idempotency-Key", "header", {"type": "string", "minLength": 1, "maxLength": 255})
    named = _parameter(
        "X-Hermes-Session-Id", "header", {"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[!-~]+$"}
    )
    return {
        "/v1/models": {"get": _operation("List the models")},
        "/v1/models/{model}": {"get": _operation("Return a model", ["model"])},
        "/v1/chat/completions": {
            "post": _operation(
                "Answer a chat", others=[retry, named], body={"messages": _MESSAGES, "stream": {"type": "boolean"}}
            )
        },
        "/v1/responses": {
            "post": _operation(
                "Answer an input",
                others=[retry, named],
                body={
                    "input": {"anyOf": [_TEXT, _MESSAGES]},
                    "stream": {"type": "boolean"},
                    "instructions": {"type": ["string", "null"], "maxLength": 10_000},
                    "previous_response_id": {"type": ["string", "null"], "maxLength": 256},
                    "conversation": {"type": ["string", "null"], "maxLength": 256},
                },
                needed=["input"],
            )
        },
        "/v1/responses/{response_id}": {"get": _operation("Return a response", ["response_id"])},
        "/v1/conversations": {
            "post": _operation("Create a conversation", others=[retry], body={"items": _MESSAGES}, needed=[])
        },
        "/v1/conversations/{conversation_id}": {"get": _operation("Return a conversation", ["conversation_id"])},
        "/v1/conversations/{conversation_id}/items": {
            "get": _operation("List the messages of a conversation", ["conversation_id"], [_limit(100)])
        },
        "/v1/sessions": {
            "get": _operation(
                "List the sessions", others=[_limit(200), _parameter("after", "query", {"type": "string"})]
            )
        },
        "/v1/sessions/search": {
            "get": _operation(
                "Search the messages", others=[_limit(100), _parameter("q", "query", _TEXT, is_needed=True)]
            )
        },
        session: {
            "get": _operation("Return a session", ["session_id"]),
            "patch": _operation("Rename a session", ["session_id"], body={"title": _TITLE}),
            "delete": _operation("Delete a session", ["session_id"]),
        },
        f"{session}/messages": {"get": _operation("List the messages of a session", ["session_id"], [_limit(500)])},
        f"{session}/fork": {
            "post": _operation("Copy a session", ["session_id"], body={"title": _TITLE}, needed=[], success="201")
        },
        f"{session}/export": {"get": _operation("Export a session", ["session_id"])},
    }


def _operation(
    summary: str,
    path_names: list[str] | None = None,
    others: list[dict[str, Any]] | None = None,
    body: dict[str, Any] | None = None,
    needed: list[str] | None = None,
    success: str = "200",
) -> dict[str, Any]:
    name = {"type": "string", "minLength": 1}
    parameters = [_parameter(each, "path", name, is_needed=True) for each in path_names or []]
    content: dict[str, Any] = {"application/json": {"schema": _ANY}}
    if body is not None and "stream" in body:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    refused = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    found: dict[str, Any] = {
        "summary": summary,
        "parameters": parameters + (others or []),
        "responses": {
            success: {"description": "Done", "content": content},
            "default": {"description": "Refused", "content": refused},
        },
    }
    if body is not None:
        first = [next(iter(body))] if needed is None else needed
        schema = {"type": "object", "properties": body, "required": first}
        found["requestBody"] = {"required": bool(first), "content": {"application/json": {"schema": schema}}}
    return found


def _parameter(name: str, place: str, schema: dict[str, Any], *, is_needed: bool = False) -> dict[str, Any]:
    return {"name": name, "in": place, "required": is_needed, "schema": schema}


def _limit(most: int) -> dict[str, Any]:
    return _parameter("limit", "query", {"type": "integer", "minimum": 1, "maximum": most})


def _error_schema() -> dict[str, Any]:
    fields = {name: {"type": ["string", "null"]} for name in ("message", "type", "param", "code")}
    error = {"type": "object", "properties": fields, "required": ["message", "type", "code"]}
    return {"type": "object", "properties": {"error": error}, "required": ["error"]}
