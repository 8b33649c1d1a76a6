"""Errors of the HTTP server, in the form that clients of OpenAI's API read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hermes.errors import HermesError, InvalidValue, NotFound

JSON = "application/json"
_TYPES = {401: "authentication_error", 404: "not_found_error", 409: "conflict_error", 429: "rate_limit_error"}
MISSING_SESSION = "there is no such session"


class ApiError(Exception):
    """A request that is refused with a status, a code and a sentence."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        headers: Mapping[str, str] | None = None,
        *,
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})
        self.param = param

    @property
    def described(self) -> dict[str, Any]:
        """The error as clients read it."""
        kind = _TYPES.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")
        return {"message": self.message, "type": kind, "param": self.param, "code": self.code}

    @property
    def body(self) -> bytes:
        """The JSON of the error."""
        return json.dumps({"error": self.described}).encode()


def error_of(error: HermesError) -> ApiError:
    """Return the error of the API for an error of the store."""
    if isinstance(error, NotFound):
        return ApiError(404, "not_found", MISSING_SESSION)
    if isinstance(error, InvalidValue):
        return ApiError(400, error.code, error.message)
    if error.code == "title_taken":
        return ApiError(409, error.code, "another session has this title", param="title")
    if error.code == "query_budget_exceeded":
        return ApiError(400, error.code, "the search takes too long; search for rarer words", param="q")
    return ApiError(503, "unavailable", "the store is not available now; try again in a moment", {"Retry-After": "2"})


def too_late() -> ApiError:
    """Return the error for an answer that takes too long."""
    return ApiError(504, "timeout", "the answer takes too long; fetch it later")
