"""Stores that are opened and closed very often."""

from __future__ import annotations

from pathlib import Path

from tests.torture.runner import assert_unharmed


def test_opening_and_closing_keeps_no_descriptor_no_thread_and_no_memory(tmp_path: Path) -> None:
    assert_unharmed("opens", tmp_path)
