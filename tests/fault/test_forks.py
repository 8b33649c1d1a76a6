"""Processes that fork with an open store."""

from __future__ import annotations

from pathlib import Path

import apsw

from tests.fault.processes import Child, assert_sound
from tests.torture.runner import assert_unharmed


def uids(path: Path) -> set[str]:
    """The uids of all messages, read by a plain connection."""
    connection = apsw.Connection(str(path))
    try:
        return {str(row[0]) for row in connection.execute("SELECT uid FROM messages")}
    finally:
        connection.close()


def test_parent_and_child_both_write_after_a_fork(path: Path) -> None:
    with Child("fork-and-write", path) as parent:
        assert parent.finish() == 0
    both = {f"{name}-{number}" for name in ("parent", "child") for number in range(30)}
    assert uids(path) == both | {"before"}
    assert_sound(path)


def test_child_loses_nothing_when_the_parent_closes_first(path: Path) -> None:
    with Child("fork-and-outlive", path) as parent:
        output = parent.lines()
        assert parent.finish() == 0
    assert output == [*(f"child-{number}" for number in range(1, 6)), "sees 7"]
    assert uids(path) == {"parent", *(f"child-{number}" for number in range(6))}
    assert_sound(path)


def test_parent_loses_nothing_when_a_child_exits_like_a_script(path: Path) -> None:
    with Child("fork-and-exit", path) as parent:
        assert parent.lines() == ["sees 4"]
    assert uids(path) == {f"parent-{number}" for number in range(4)}
    assert_sound(path)


def test_fork_waits_for_a_write_and_both_sides_write_after_it(path: Path) -> None:
    with Child("fork-in-a-write", path) as parent:
        assert parent.lines() == ["child wrote", "parent wrote"]
    assert uids(path) == {"in the middle", "child", "parent"}
    assert_sound(path)


def test_child_of_a_fork_inside_a_transaction_gets_an_error(path: Path) -> None:
    with Child("fork-inside-a-write", path) as parent:
        assert parent.lines() == ["store_unavailable", "sees 1"]
    assert uids(path) == {"inside"}
    assert_sound(path)


def test_forks_under_load_neither_hang_nor_lose_anything(tmp_path: Path) -> None:
    assert_unharmed("forks", tmp_path, rounds=2)
