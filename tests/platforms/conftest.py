"""Servers of platforms that tests start and stop many times."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
LEFT_OPEN = (
    "ignore:Exception ignored in. <(function _SelectorTransport|socket.socket):pytest.PytestUnraisableExceptionWarning"
)
"""A server of a test that stops while a client connects may leave that connection to the garbage collector."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let no test of this folder fail because of a connection that an earlier server has left."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings(LEFT_OPEN))
