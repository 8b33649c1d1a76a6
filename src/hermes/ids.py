"""Identifiers: readable for sessions, short and random for messages."""

from __future__ import annotations

import os
import time
from binascii import b2a_base64

_URL_SAFE = bytes.maketrans(b"+/", b"-_")

OWN_UID = "~"
"""The first character of generated uids; a caller's own uid does not start with it."""


def new_session_id(now: float | None = None) -> str:
    """Return an id such as `20261115_204247_9f3a01bc`: the local time (of `now`, if given), then 32 random bits."""
    return f"{time.strftime('%Y%m%d_%H%M%S', time.localtime(now))}_{os.urandom(4).hex()}"


def new_message_uid() -> str:
    """Return a tilde and 72 random bits: short, and unique within a session."""
    return OWN_UID + _random_text(9)


def new_caller_uid() -> str:
    """Return a uid that a caller gives to a message which it may store twice; the store recognizes the second one."""
    return _random_text(12)


def _random_text(count: int) -> str:
    """Return random bytes as base64 with the letters that URLs and file names allow."""
    return b2a_base64(os.urandom(count), newline=False).translate(_URL_SAFE).decode()
