"""Errors of Slack, as what they say about the message."""

from __future__ import annotations

import asyncio

from hermes.gateway.engine.ports import MaybeSent, NotSent
from hermes.platforms.base.failures import error_of_connection, error_of_status

_RATE_LIMITS = frozenset({"ratelimited", "rate_limited", "message_limit_exceeded"})
_DOUBTFUL = frozenset({"internal_error", "fatal_error", "request_timeout", "service_unavailable", "team_added_to_org"})
_MENDABLE = frozenset(
    {"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "missing_scope"}
)
"""Errors that an operator can mend while the message waits."""
_USUAL_WAIT_S = 30.0


def error_of(error: BaseException) -> NotSent | MaybeSent:
    """Return what an error of the client says about the message."""
    import aiohttp
    from slack_sdk.errors import SlackApiError, SlackClientError

    if isinstance(error, SlackApiError):
        return _error_of_response(error)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return NotSent("Slack cannot be reached")
    if isinstance(error, asyncio.TimeoutError):
        return MaybeSent("Slack did not reply in time")
    if isinstance(error, OSError):
        return error_of_connection(error)
    if isinstance(error, aiohttp.ClientError):
        return MaybeSent(f"the connection to Slack was lost: {type(error).__name__}")
    if isinstance(error, SlackClientError):
        return NotSent(f"Slack's client refused the request: {type(error).__name__}", is_final=True)
    raise error


def is_missing_permission(error: NotSent | MaybeSent) -> bool:
    """Return whether Slack does not let the bot read here."""
    return str(error).removeprefix("Slack says ") in ("missing_scope", "not_in_channel", "channel_not_found")


def _error_of_response(error: object) -> NotSent | MaybeSent:
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None) or getattr(response, "status", None) or 200
    data = getattr(response, "data", None)
    code = str(data.get("error") or "an error without a name") if isinstance(data, dict) else f"status {status}"
    reason = f"Slack says {code[:100]}"
    if status == 429 or code in _RATE_LIMITS:
        return NotSent(reason, retry_after_s=_wait_of(getattr(response, "headers", None)))
    if code in _DOUBTFUL:
        return MaybeSent(reason)
    if status >= 400:
        return error_of_status(status, reason)
    if not isinstance(data, dict):
        return MaybeSent("Slack's response cannot be read")
    return NotSent(reason, is_final=code not in _MENDABLE)


def _wait_of(headers: object) -> float:
    found = headers.get("Retry-After") if hasattr(headers, "get") else None
    text = str(found[0] if isinstance(found, list) and found else found or "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else _USUAL_WAIT_S
