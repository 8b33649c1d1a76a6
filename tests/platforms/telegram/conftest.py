"""A server of the Bot API, and adapters that run on the test's own loop."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.platforms.telegram.bot_api import BotApi, bot_api


@pytest.fixture
def api() -> Iterator[BotApi]:
    """Run a server."""
    with bot_api() as server:
        yield server
