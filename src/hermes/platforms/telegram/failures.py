"""Errors of the client library, as what they say about the message."""

from __future__ import annotations

import datetime
import warnings

import httpx
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, RetryAfter, TelegramError

from hermes.gateway.engine.ports import MaybeSent, NotSent

_NOT_CONNECTED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


class MessageGone(NotSent):
    """The message that was to be changed does not exist any more, or cannot be changed."""


def translate(error: TelegramError, token: str) -> NotSent | MaybeSent:
    """Return the error for the sender: whether Telegram surely has nothing, and whether trying again helps."""
    reason = f"Telegram: {text_of(error, token)}"
    if isinstance(error, RetryAfter):
        return NotSent(reason, retry_after_s=wait_of(error))
    if isinstance(error, InvalidToken | Conflict):
        return NotSent(reason)  # the operator can mend it, and the message waits
    if is_gone(error):
        return MessageGone(reason, is_final=True)
    if isinstance(error, BadRequest | Forbidden | ChatMigrated):
        return NotSent(reason, is_final=True)
    if isinstance(error.__cause__, _NOT_CONNECTED):
        return NotSent(reason)
    return MaybeSent(reason)


def wait_of(error: RetryAfter) -> float:
    """Return the seconds that Telegram asks for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library warns that the type will change; both are read here
        wait = error.retry_after
    return wait.total_seconds() if isinstance(wait, datetime.timedelta) else float(wait)


def text_of(error: Exception, token: str) -> str:
    """Return the text of an error without the token, which addresses of requests contain."""
    text = str(error).replace(token, "***")
    return text[:300] or type(error).__name__


def refuses_entities(error: BadRequest) -> bool:
    """Whether Telegram could not read the formatting."""
    text = str(error).lower()
    return "parse entities" in text or "parse_mode" in text or "unsupported start tag" in text


def is_unchanged(error: BadRequest) -> bool:
    """Whether an edit was refused because the message has this text already."""
    return "message is not modified" in str(error).lower()


def is_gone(error: TelegramError) -> bool:
    """Whether an edit was refused because the message was deleted or cannot be changed."""
    text = str(error).lower()
    return isinstance(error, BadRequest) and ("message to edit not found" in text or "can't be edited" in text)
