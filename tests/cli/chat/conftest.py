"""Conversations to resume."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from hermes_state import SessionDB
from tests.cli.conftest import Hermes

Remember = Callable[..., str]


@pytest.fixture
def remember(hermes: Hermes) -> Remember:
    """Return a function that stores a terminal conversation of an hour ago."""

    def store(session_id: str, *contents: tuple[str, str], title: str | None = None, **fields: Any) -> str:
        moment = time.time() - 3600
        with SessionDB(hermes.database) as db:
            db.create_session(session_id, "cli", started_at=moment, **fields)
            messages = [{"role": role, "content": text, "timestamp": moment} for role, text in contents]
            db.append_messages(session_id, messages)
            if title:
                db.set_session_title(session_id, title)
            db.end_session(session_id, "user_exit")
        return session_id

    return store
