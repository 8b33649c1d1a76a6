"""Errors of Discord, as what they say about the message."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from hermes.gateway.engine.ports import MaybeSent, NotSent
from hermes.platforms.base.failures import error_of_connection, error_of_status

_UNAUTHORIZED, _TOO_MANY = 401, 429
_TOKEN_RETRY_S, _USUAL_WAIT_S, _LONGEST_WAIT_S, _SLOW_MODE_S = 60.0, 30.0, 3600.0, 10.0
_SLOW_MODE = frozenset({20016, 20028})
_OVERLOADED = 130000
_NO_MESSAGE = 10008
_EXPLAINED: Mapping[int, str] = {
    10003: "the channel does not exist any more",
    _NO_MESSAGE: "the message does not exist any more",
    40005: "the file is larger than Discord allows here",
    50001: "the bot cannot see this channel",
    50007: "the user does not accept messages of the bot",
    50013: "the bot lacks a permission here, such as Send Messages, Send Messages in Threads or Attach Files",
    50083: "the thread is archived",
    160005: "the thread is locked",
}
GONE = frozenset({403, 404})
"""Statuses that say that the bot cannot have something."""


class MessageGone(NotSent):
    """The message that was to be changed was deleted."""


def error_of(error: Exception) -> NotSent | MaybeSent:
    """Return what an error of the library says about the message."""
    import aiohttp
    from discord import DiscordException, HTTPException, LoginFailure, RateLimited

    if isinstance(error, NotSent | MaybeSent):
        return error
    if isinstance(error, RateLimited):
        return NotSent("Discord wants a pause", retry_after_s=min(max(error.retry_after, 1.0), _LONGEST_WAIT_S))
    if isinstance(error, LoginFailure):
        return NotSent("Discord refuses the token", retry_after_s=_TOKEN_RETRY_S)
    if isinstance(error, HTTPException):
        return _error_of_response(error.status, error.code, error.text, error.response.headers)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return NotSent("Discord cannot be reached")
    if isinstance(error, TimeoutError | asyncio.TimeoutError):
        return MaybeSent("Discord did not respond in time")
    if isinstance(error, aiohttp.ClientError):
        return MaybeSent(f"the connection to Discord was lost: {type(error).__name__}")
    if isinstance(error, OSError):
        return error_of_connection(error)
    if isinstance(error, DiscordException):
        return NotSent(f"Discord's library refused the request: {type(error).__name__}", is_final=True)
    # The library raises such errors about a response that it does not understand.
    return MaybeSent(f"Discord's response cannot be read: {type(error).__name__}")


def _error_of_response(status: int, code: int, text: str, headers: Mapping[str, str]) -> NotSent | MaybeSent:
    said = "".join(each for each in text if each.isprintable())[:150]
    reason = f"Discord says: {_EXPLAINED.get(code) or said or f'status {status}'}"
    if status == _UNAUTHORIZED:
        return NotSent("Discord refuses the token", retry_after_s=_TOKEN_RETRY_S)
    if status == _TOO_MANY:
        return NotSent("Discord wants a pause", retry_after_s=_wait_of(headers))
    if code in _SLOW_MODE:
        return NotSent(reason, retry_after_s=_SLOW_MODE_S)
    if code == _OVERLOADED:
        return NotSent(reason)
    if code == _NO_MESSAGE:
        return MessageGone(reason, is_final=True)
    return error_of_status(status, reason)


def _wait_of(headers: Mapping[str, str]) -> float:
    text = headers.get("Retry-After") or ""
    try:
        seconds = float(text) if text.isascii() and len(text) < 12 else _USUAL_WAIT_S
    except ValueError:
        return _USUAL_WAIT_S
    return min(max(seconds, 1.0), _LONGEST_WAIT_S) if seconds == seconds else _USUAL_WAIT_S
