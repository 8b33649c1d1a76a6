"""Sixteen writers that have to wait."""

from __future__ import annotations

from pathlib import Path

from tests.torture.runner import assert_unharmed


def test_all_writers_finish_after_a_process_that_held_the_lock(tmp_path: Path) -> None:
    assert_unharmed("lock-held", tmp_path)


def test_all_writers_finish_after_a_program_without_the_lock(tmp_path: Path) -> None:
    assert_unharmed("lock-foreign", tmp_path)


def test_all_writers_finish_after_a_process_frozen_in_its_transaction(tmp_path: Path) -> None:
    assert_unharmed("lock-frozen", tmp_path)


def test_frozen_program_of_schema_11_loses_nothing_when_its_file_is_upgraded(tmp_path: Path) -> None:
    assert_unharmed("frozen-program", tmp_path)
