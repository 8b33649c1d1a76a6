"""Errors of Slack, as what they say about the message."""

from __future__ import annotations

import asyncio

from hermes.gateway.engine.ports import MaybeSent, NotSent
from hermes.platforms.base.failures import error_of_connection, error_of_status

_RATE_LIMITS = frozenset({"ratelimited", "rate_limited", "message_limit_exceeded"})
_DOUBTFUL = frozenset({"internal_error", "fatal_error"})
"""Errors after which, as Slack says, a part of the work may be done."""
_PASSING = frozenset(
    {
        *("invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "missing_scope"),
        *("request_timeout", "service_unavailable", "team_added_to_org"),
    }
)
"""Errors that end by themselves or that an operator can mend while the message waits."""
_GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
_UNREADABLE = frozenset({"missing_scope", "not_in_channel", "channel_not_found", "thread_not_found"})
_USUAL_WAIT_S = 30.0


class Refused(NotSent):
    """Slack refused a request, with a code."""

    def __init__(self, code: str, *, is_final: bool) -> None:
        super().__init__(f"Slack says {code}", is_final=is_final)
        self.code = code

    @property
    def is_unreadable(self) -> bool:
        """Whether Slack does not let the bot read here."""
        return self.code in _UNREADABLE

    @property
    def is_gone(self) -> bool:
        """Whether the message to change does not exist or cannot be changed any more."""
        return self.code in _GONE


def error_of(error: Exception) -> NotSent | MaybeSent:
    """Return what an error of the client says about the message; raise it if it is none of the client's."""
    import aiohttp
    from slack_sdk.errors import SlackApiError, SlackClientError

    if isinstance(error, NotSent | MaybeSent):
        return error
    if isinstance(error, SlackApiError):
        return _error_of_response(error.response)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return NotSent("Slack cannot be reached")
    if isinstance(error, asyncio.TimeoutError):
        return MaybeSent("Slack did not reply in time")
    if isinstance(error, aiohttp.ClientError):
        return MaybeSent(f"the connection to Slack was lost: {type(error).__name__}")
    if isinstance(error, OSError):
        return error_of_connection(error)
    if isinstance(error, SlackClientError):
        return NotSent(f"Slack's client refused the request: {type(error).__name__}", is_final=True)
    if isinstance(error, AttributeError | TypeError | ValueError):  # the library expects an object
        return MaybeSent("Slack's response cannot be read")
    raise error


def _error_of_response(response: object) -> NotSent | MaybeSent:
    status = getattr(response, "status_code", None) or getattr(response, "status", None) or 200
    data = getattr(response, "data", None)
    code = data.get("error") if isinstance(data, dict) else None
    if status == 429 or code in _RATE_LIMITS:
        return NotSent("Slack wants a pause", retry_after_s=_wait_of(getattr(response, "headers", None)))
    if not isinstance(code, str) or not code:
        return error_of_status(status, f"status {status}") if status >= 400 else MaybeSent("the response has no result")
    if code in _DOUBTFUL:
        return MaybeSent(f"Slack says {code}")
    return Refused(code[:100], is_final=code not in _PASSING)


def _wait_of(headers: object) -> float:
    found = headers.get("Retry-After") if hasattr(headers, "get") else None
    text = str(found[0] if isinstance(found, list) and found else found or "")
    return float(text) if text.isascii() and text.isdigit() and 0 < len(text) < 6 else _USUAL_WAIT_S
