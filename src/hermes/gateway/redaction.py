"""Names for users and chats in prompts that reveal neither ids nor names."""

from __future__ import annotations

import hashlib

from hermes.gateway.platform import Platform

_HASH_CHARACTERS = 12
_KINDS = ("dm", "group", "channel", "thread", "room", "user")


def hash_id(value: str) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of an id."""
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARACTERS]


def hash_user_id(value: str) -> str:
    """Return `user_` and the hash of a user id."""
    return f"user_{hash_id(value)}"


def hash_chat_id(value: str) -> str:
    """Return the hash of a chat id; a platform or a kind of chat before a colon stays, but no part of an id."""
    prefix, colon, rest = value.partition(":")
    is_kept = bool(colon) and (prefix in _KINDS or Platform.is_name(prefix))
    return f"{prefix}:{hash_id(rest)}" if is_kept else hash_id(value)
