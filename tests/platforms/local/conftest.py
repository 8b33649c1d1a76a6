"""What the tests of the local socket share."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def home() -> Iterator[Path]:
    """A home with a short path, as plain clients need it."""
    with tempfile.TemporaryDirectory(prefix="hermes-") as folder:
        yield Path(folder) / "home"
