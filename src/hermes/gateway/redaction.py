"""Names for users and chats in prompts that reveal neither ids nor names."""

from __future__ import annotations

import hashlib

_HASH_CHARACTERS = 12


def hash_id(value: str) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of an id."""
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARACTERS]


def hash_user_id(value: str) -> str:
    """Return `user_` and the hash of a user id."""
    return f"user_{hash_id(value)}"


def hash_chat_id(value: str) -> str:
    """Return the hash of a chat id; a prefix such as `telegram:` stays."""
    prefix, colon, rest = value.partition(":")
    return f"{prefix}:{hash_id(rest)}" if colon and prefix else hash_id(value)
