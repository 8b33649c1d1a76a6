"""Conversations to browse."""

from __future__ import annotations

import time

import pytest

from hermes_state import SessionDB
from tests.cli.conftest import Hermes

AUTH, TRIP, LETTER, PLAIN = "auth-1", "trip-2", "letter-3", "plain-4"


@pytest.fixture
def stored(hermes: Hermes, monkeypatch: pytest.MonkeyPatch) -> Hermes:
    """A home with four conversations, the first the most recently active."""
    monkeypatch.setenv("HERMES_HOME", str(hermes.home))
    hermes.store(
        (AUTH, "cli", "refactoring auth", "Help me refactor the auth module"),
        (TRIP, "telegram", "京都旅行の計画 🎉", "来月の京都旅行の計画"),
        (LETTER, "cli", "a letter", "Draft a letter to the landlord"),
        (PLAIN, "cli", None, "What is the weather?"),
    )
    with SessionDB(hermes.database) as db:
        moment = time.time() - 3 * 3600 - 1700
        for role, text in (("assistant", "It rains cats and dogs."), ("user", "Where is the umbrella?")):
            db.append_message(PLAIN, role, text, timestamp=moment)
    return hermes
