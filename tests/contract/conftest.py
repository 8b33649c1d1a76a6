"""A new store for every test, on every engine."""

from __future__ import annotations

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.engines import clock, open_store, stores
from tests.support.stores import Opener

__all__ = ["clock", "open_store", "store", "stores"]


@pytest.fixture
def store(open_store: Opener) -> SessionDBProvider:
    """An empty store."""
    return open_store()
