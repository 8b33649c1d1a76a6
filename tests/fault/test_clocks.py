"""Clocks that jump while processes write."""

from __future__ import annotations

from pathlib import Path

from tests.torture.runner import assert_unharmed


def test_clocks_that_jump_change_neither_order_nor_content(tmp_path: Path) -> None:
    assert_unharmed("clock-jumps", tmp_path)
