"""Disks that refuse writes, and machines that lose their power."""

from __future__ import annotations

from pathlib import Path

from tests.torture.runner import assert_unharmed


def test_failing_disk_loses_no_acknowledged_message(tmp_path: Path) -> None:
    assert_unharmed("failing-disk", tmp_path)


def test_power_loss_loses_no_acknowledged_message(tmp_path: Path) -> None:
    assert_unharmed("power-cut", tmp_path, rounds=2)
