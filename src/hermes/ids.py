"""Identifiers: readable ones for sessions, short random ones for messages."""

from __future__ import annotations

import os
import time
from base64 import urlsafe_b64encode

OWN_UID = "~"
"""How the uids begin that were not given by a caller."""


def new_session_id(now: float | None = None) -> str:
    """An id such as `20261115_204247_9f3a01bc`: the local time (now, unless one is given), then 32 random bits."""
    return f"{time.strftime('%Y%m%d_%H%M%S', time.localtime(now))}_{os.urandom(4).hex()}"


def new_message_uid() -> str:
    """A tilde and 72 random bits: enough to be unique within a session, and short."""
    return OWN_UID + urlsafe_b64encode(os.urandom(9)).decode()
