"""Insights count messages, also where the counters of a session are wrong."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from hermes.state.usage.insights import read_insights
from hermes.state.usage.period import last_days
from hermes_state import SessionDB
from tests.support.clock import NOW, FakeClock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one session of four messages."""
    path = tmp_path / "state.db"
    with SessionDB(path, clock=FakeClock()) as db:
        db.create_session("a", "cli")
        db.append_messages("a", [{"role": role, "content": "hello"} for role in ("user", "assistant", "user", "tool")])
    return path


def roles(path: Path) -> tuple[int, int, int, int]:
    with SessionDB(path, read_only=True) as db:
        overview = read_insights(db, last_days(7, NOW)).overview
    return overview.messages, overview.user_messages, overview.assistant_messages, overview.tool_messages


def change(path: Path, sql: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(sql).fetchall()
    connection.close()


@pytest.mark.parametrize("count", ["0", "3", "5", "100000", "NULL", "'four'"])
def test_messages_are_counted_if_the_counter_of_their_session_is_wrong(path: Path, count: str) -> None:
    change(path, f"UPDATE sessions SET message_count = {count}")
    assert roles(path) == (4, 2, 1, 1)


@pytest.mark.parametrize("hours_later", [0, -30])
def test_messages_that_another_program_added_are_counted(path: Path, hours_later: int) -> None:
    moment = NOW + 3600 * hours_later
    change(
        path,
        f"""WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
            INSERT INTO messages (session_id, role, content, timestamp) SELECT 'a', 'tool', 'x', {moment} FROM n""",
    )
    assert roles(path) == (40_004, 2, 1, 40_001)
