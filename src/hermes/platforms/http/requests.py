"""Bodies and queries of requests, checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes.platforms.http.errors import ApiError

if TYPE_CHECKING:
    from starlette.requests import Request

MAX_NAME_CHARACTERS = 256


def bad(message: str, code: str = "invalid_value") -> ApiError:
    """Return the error for a wrong value."""
    return ApiError(400, code, message)


async def read_object(request: Request) -> dict[str, Any]:
    """Return the JSON object of a body; raise `ApiError` if it is none."""
    try:
        data = json.loads((await request.body()) or b"{}")
    except (ValueError, RecursionError):
        raise bad("the body is not JSON", "invalid_json") from None
    if not isinstance(data, dict):
        raise bad("the body is not a JSON object", "invalid_json")
    return data


def optional_text(data: Mapping[str, Any], name: str, most: int = MAX_NAME_CHARACTERS) -> str | None:
    """Return a text of a request; raise `ApiError` if it is no text or too long."""
    value = data.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > most or "\0" in value or not is_unicode(value):
        raise bad(f"{name} must be text with at most {most} characters")
    return value


def optional_bool(data: Mapping[str, Any], name: str) -> bool:
    """Return a truth value of a request."""
    value = data.get(name)
    if value is not None and not isinstance(value, bool):
        raise bad(f"{name} must be true or false")
    return bool(value)


def page_size(request: Request, usual: int = 20, most: int = 100) -> int:
    """Return the `limit` of a list."""
    text = request.query_params.get("limit", str(usual))
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 6 and 1 <= int(text) <= most):
        raise bad(f"limit must be a whole number from 1 to {most}")
    return int(text)


def content_text(content: object, name: str) -> str:
    """Return the text of a message's content: a text, or parts of which each is text."""
    if isinstance(content, str):
        if not is_unicode(content) or "\0" in content:
            raise bad(f"{name} contains characters that cannot be stored")
        return content
    if not isinstance(content, list) or len(content) > 1000:
        raise bad(f"{name} must be text or a list of text parts")
    texts = []
    for part in content:
        if not isinstance(part, dict) or part.get("type") not in ("text", "input_text", "output_text"):
            raise bad(f"{name} may contain only text parts", "unsupported_content")
        texts.append(content_text(part.get("text") if isinstance(part.get("text"), str) else None, name))
    return "\n".join(texts)


def is_unicode(text: str) -> bool:
    """Whether a text has no lone surrogates, which no store takes."""
    return not any("\ud800" <= each <= "\udfff" for each in text)
