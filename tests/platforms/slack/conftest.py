"""A Slack workspace for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.platforms.slack.server import SlackServer


@pytest.fixture
def server() -> Iterator[SlackServer]:
    with SlackServer().running() as running:
        yield running
