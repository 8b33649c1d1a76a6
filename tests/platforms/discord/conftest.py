"""A Discord server per test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.platforms.discord.server import DiscordServer


@pytest.fixture
def server() -> Iterator[DiscordServer]:
    made = DiscordServer()
    yield made
    made.close()
