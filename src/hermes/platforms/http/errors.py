"""Errors of the HTTP server, in the form that clients of OpenAI's API read."""

from __future__ import annotations

import json
from collections.abc import Mapping

JSON = "application/json"
_TYPES = {401: "authentication_error", 404: "not_found_error", 409: "conflict_error", 429: "rate_limit_error"}


class ApiError(Exception):
    """A request that is refused with a status, a code and a sentence."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})


def error_body(status: int, code: str, message: str) -> bytes:
    """Return the JSON of an error."""
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}}).encode()
