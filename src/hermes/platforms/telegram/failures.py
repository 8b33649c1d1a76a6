"""Errors of the client library, as what they say about the message."""

from __future__ import annotations

import datetime
import re

import httpx
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, RetryAfter, TelegramError

from hermes.gateway.engine.ports import MaybeSent, NotSent

_NOT_CONNECTED = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)
_REFUSED = re.compile(r"\(4\d\d\)")
"""How the library names a status of HTTP for which it has no class of its own."""
_REFUSED_PHRASES = ("request entity too large", "content too large")


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
    if _REFUSED.search(str(error)) or str(error).lower().startswith(_REFUSED_PHRASES):
        return NotSent(reason, is_final=True)
    return MaybeSent(reason)


def wait_of(error: RetryAfter) -> float:
    """Return the seconds that Telegram asks for."""
    wait = error.retry_after
    return wait.total_seconds() if isinstance(wait, datetime.timedelta) else float(wait)


def text_of(error: Exception, token: str) -> str:
    """Return the text of an error without the token, which addresses of requests contain."""
    text = " ".join(str(error).replace(token, "***").split())
    return text[:300] or type(error).__name__


def refuses_entities(error: BadRequest) -> bool:
    """Whether Telegram could not use the formatting, or nothing is left of a text that has only formatting."""
    text = str(error).lower()
    return any(
        each in text
        for each in ("parse entities", "parse_mode", "unsupported start tag", "text is empty", "text must be non-empty")
    )


def is_unchanged(error: BadRequest) -> bool:
    """Whether an edit was refused because the message has this text already."""
    return "message is not modified" in str(error).lower()


def is_gone(error: TelegramError) -> bool:
    """Whether a change was refused because the message was deleted or cannot be changed."""
    text = str(error).lower()
    phrases = ("message to edit not found", "can't be edited", "message_id_invalid")
    return isinstance(error, BadRequest) and any(each in text for each in phrases)


def is_deleted(error: TelegramError) -> bool:
    """Whether a message could not be deleted because it is deleted already."""
    return isinstance(error, BadRequest) and "message to delete not found" in str(error).lower()
