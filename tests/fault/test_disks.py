"""Disks that refuse what is written to them, and machines that lose their power."""

from __future__ import annotations

from pathlib import Path

from tests.torture.runner import assert_unharmed


def test_a_disk_that_refuses_now_and_then_costs_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    assert_unharmed("failing-disk", tmp_path)


def test_what_was_acknowledged_is_there_when_the_power_comes_back(tmp_path: Path) -> None:
    assert_unharmed("power-cut", tmp_path, rounds=2)
