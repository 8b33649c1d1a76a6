"""The description of the API in the format of OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

from hermes import __version__

_STRING: dict[str, Any] = {"type": "string"}
_NUMBER: dict[str, Any] = {"type": "integer"}
_MAYBE_TEXT: dict[str, Any] = {"type": ["string", "null"]}
_EVENT: dict[str, Any] = {"type": "object", "properties": {"event": _STRING, "data": _STRING}}
_MAYBE_NUMBER: dict[str, Any] = {"type": ["number", "null"]}
_FLAG: dict[str, Any] = {"type": "boolean"}
_OBJECT: dict[str, Any] = {"type": "object"}
_TEXT: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 32_000, "pattern": r"\S"}
_TITLE: dict[str, Any] = {"type": ["string", "null"], "maxLength": 100}
_ID: dict[str, Any] = {"type": ["string", "null"], "minLength": 1, "maxLength": 256}
_PART: dict[str, Any] = {
    "type": "object",
    "properties": {"type": {"enum": ["text", "input_text", "output_text"]}, "text": _TEXT},
    "required": ["type", "text"],
}
_GIVEN_MESSAGE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "role": {"enum": ["system", "developer", "user", "assistant"]},
        "content": {"anyOf": [_TEXT, {"type": "array", "items": _PART, "minItems": 1, "maxItems": 1000}]},
    },
    "required": ["role", "content"],
}
_MESSAGES: dict[str, Any] = {"type": "array", "items": _GIVEN_MESSAGE, "minItems": 1, "maxItems": 2000}
_RETRY: dict[str, Any] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {**_STRING, "minLength": 1, "maxLength": 255},
}


def document() -> dict[str, Any]:
    """Return the document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Hermes Sessions", "version": __version__},
        "security": [{"key": []}],
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
        },
        "paths": {**_talk(), **_conversations(), **_sessions()},
    }


def _talk() -> dict[str, Any]:
    named = _parameter(
        "X-Hermes-Session-Id", "header", {**_STRING, "minLength": 1, "maxLength": 256, "pattern": "^[!-~]+$"}
    )
    return {
        "/v1/models": {"get": _operation("List the models", "ModelList")},
        "/v1/models/{model}": {"get": _operation("Return a model", "Model", ["model"])},
        "/v1/chat/completions": {
            "post": _operation(
                "Answer a chat",
                "ChatCompletion",
                others=[_RETRY, named],
                body={"messages": _MESSAGES, "stream": _FLAG},
            )
        },
        "/v1/responses": {
            "post": _operation(
                "Answer an input",
                "Response",
                others=[_RETRY, named],
                body={
                    "input": {"anyOf": [_TEXT, _MESSAGES]},
                    "stream": _FLAG,
                    "background": _FLAG,
                    "instructions": {"type": ["string", "null"], "maxLength": 10_000},
                    "previous_response_id": _ID,
                    "conversation": _ID,
                },
            )
        },
        "/v1/responses/{response_id}": {"get": _operation("Return a response", "Response", ["response_id"])},
    }


def _conversations() -> dict[str, Any]:
    one, order = "/v1/conversations/{conversation_id}", _parameter("order", "query", {"enum": ["asc", "desc"]})
    return {
        "/v1/conversations": {
            "post": _operation(
                "Create a conversation", "Conversation", others=[_RETRY], body={"items": _MESSAGES}, needed=[]
            )
        },
        one: {
            "get": _operation("Return a conversation", "Conversation", ["conversation_id"]),
            "delete": _operation("Delete a conversation", "Deleted", ["conversation_id"]),
        },
        f"{one}/items": {
            "get": _operation(
                "List the messages of a conversation",
                "ItemList",
                ["conversation_id"],
                [_limit(100), _after("msg_"), order],
            )
        },
        f"{one}/items/{{item_id}}": {
            "get": _operation("Return a message of a conversation", "Item", ["conversation_id", "item_id"])
        },
    }


def _sessions() -> dict[str, Any]:
    one = "/v1/sessions/{session_id}"
    return {
        "/v1/sessions": {
            "get": _operation(
                "List the sessions", "SessionList", others=[_limit(200), _parameter("after", "query", _STRING)]
            )
        },
        "/v1/sessions/search": {
            "get": _operation(
                "Search the messages",
                "HitList",
                others=[_limit(100), _parameter("q", "query", {**_TEXT, "maxLength": 500}, is_needed=True)],
            )
        },
        one: {
            "get": _operation("Return a session", "Session", ["session_id"]),
            "patch": _operation("Rename a session", "Session", ["session_id"], body={"title": _TITLE}),
            "delete": _operation("Delete a session", "Deleted", ["session_id"]),
        },
        f"{one}/messages": {
            "get": _operation("List the messages of a session", "MessageList", ["session_id"], [_limit(500), _after()])
        },
        f"{one}/fork": {
            "post": _operation(
                "Copy a session", "Session", ["session_id"], body={"title": _TITLE}, needed=[], success="201"
            )
        },
        f"{one}/export": {"get": _operation("Export a session", "Export", ["session_id"])},
    }


def _schemas() -> dict[str, Any]:
    session = {
        **dict.fromkeys(("id", "source"), _STRING),
        **dict.fromkeys(("title", "model", "end_reason", "parent_session_id"), _MAYBE_TEXT),
        **dict.fromkeys(("message_count", "input_tokens", "output_tokens"), _NUMBER),
        **dict.fromkeys(("started_at", "ended_at", "estimated_cost_usd"), _MAYBE_NUMBER),
    }
    shown = {**session, "object": {"const": "session"}, "last_active": _MAYBE_NUMBER, "preview": _MAYBE_TEXT}
    message = {
        "id": _NUMBER,
        "role": _STRING,
        "content": {"type": ["string", "array", "object", "null"]},
        "timestamp": _MAYBE_NUMBER,
        **dict.fromkeys(("tool_name", "tool_call_id", "finish_reason"), _MAYBE_TEXT),
        "tool_calls": {"type": ["array", "null"]},
    }
    hit = {"id": _NUMBER, "session_id": _STRING, "title": _MAYBE_TEXT, "role": _STRING, "snippet": _MAYBE_TEXT}
    model = {"id": _STRING, "object": {"const": "model"}, "created": _NUMBER, "owned_by": _STRING}
    item = {
        "id": _STRING,
        "type": {"const": "message"},
        "role": _STRING,
        "status": _STRING,
        "content": {"type": "array"},
    }
    found: dict[str, Any] = {"Model": model, "Session": shown, "Message": message, "Hit": hit, "Item": item}
    lists = {f"{name}List": {"object": {"const": "list"}, "data": _list(name)} for name in found}
    created = {"id": _STRING, "created_at": _NUMBER}
    others = {
        "Export": {**session, "messages": _list("Message")},
        "Conversation": {**created, "object": {"const": "conversation"}, "session_id": _MAYBE_TEXT},
        "Deleted": {"id": _STRING, "object": _STRING, "deleted": {"const": True}},
        "ChatCompletion": {
            "id": _STRING,
            "object": {"const": "chat.completion"},
            "created": _NUMBER,
            "session_id": _STRING,
            "choices": {"type": "array"},
            "usage": _OBJECT,
        },
        "Response": {
            **created,
            "object": {"const": "response"},
            "output": {"type": "array"},
            "conversation": _OBJECT,
            "status": {"enum": ["in_progress", "completed", "failed"]},
        },
    }
    schemas = {name: _object(fields) for name, fields in {**found, **lists, **others}.items()}
    error = _object(dict.fromkeys(("message", "type", "code"), _STRING) | {"param": _MAYBE_TEXT})
    return {**schemas, "Error": _object({"error": error})}


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields)}


def _list(name: str) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}}


def _operation(
    summary: str,
    returns: str,
    path_names: list[str] | None = None,
    others: list[dict[str, Any]] | None = None,
    body: dict[str, Any] | None = None,
    needed: list[str] | None = None,
    success: str = "200",
) -> dict[str, Any]:
    name = {**_STRING, "minLength": 1}
    parameters = [_parameter(each, "path", name, is_needed=True) for each in path_names or []]
    content: dict[str, Any] = {"application/json": {"schema": {"$ref": f"#/components/schemas/{returns}"}}}
    if body is not None and "stream" in body:
        content["text/event-stream"] = {"schema": _EVENT}
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


def _after(prefix: str = "") -> dict[str, Any]:
    return _parameter("after", "query", {**_STRING, "pattern": f"^{prefix}[0-9]{{1,17}}$"})


def _limit(most: int) -> dict[str, Any]:
    return _parameter("limit", "query", {"type": "integer", "minimum": 1, "maximum": most})
