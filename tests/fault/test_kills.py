"""Processes that are killed: while they write, commit, checkpoint, upgrade a file, or handle SIGTERM."""

from __future__ import annotations

from pathlib import Path

from tests.torture.runner import assert_unharmed


def test_killed_writers_have_stored_all_that_they_acknowledged(tmp_path: Path) -> None:
    assert_unharmed("kill-writers", tmp_path, rounds=3)


def test_process_killed_at_a_page_of_the_log_loses_nothing(tmp_path: Path) -> None:
    assert_unharmed("kill-commit", tmp_path)


def test_process_killed_at_a_page_of_a_checkpoint_loses_nothing(tmp_path: Path) -> None:
    assert_unharmed("kill-checkpoint", tmp_path)


def test_process_terminated_in_a_checkpoint_loses_nothing(tmp_path: Path) -> None:
    assert_unharmed("term-checkpoint", tmp_path)


def test_upgrade_killed_at_a_page_is_repeated(tmp_path: Path) -> None:
    assert_unharmed("kill-upgrade", tmp_path)
