"""A home with an empty store for every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_state import SessionDB


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A Hermes home."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    return home


@pytest.fixture
def store(home: Path) -> Iterator[SessionDB]:
    """An empty store in it."""
    with SessionDB(home / "state.db") as store:
        yield store
