"""A store in which titles were unique among all sessions, before they were unique for each owner."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_state import SessionDB
from tests.support.plainsql import change, flaws, rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of the previous version."""
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        db.set_session_title("s", "Docker")
        db.append_message("s", "user", "quince")
    change(
        path,
        "DROP INDEX idx_sessions_title_unique",
        "ALTER TABLE sessions DROP COLUMN imported_from",
        "CREATE UNIQUE INDEX idx_sessions_title_unique ON sessions(title) WHERE title IS NOT NULL",
        "DELETE FROM hermes_ledger WHERE name = '0005_owners'",
    )
    return path


@pytest.mark.parametrize("read_only", [True, False])
def test_session_of_the_previous_version_has_no_owner(path: Path, read_only: bool) -> None:
    with SessionDB(path, read_only=read_only) as db:
        row = db.get_session("s")
        assert row is not None
        assert (row["title"], row["imported_from"]) == ("Docker", None)
        assert [found["session_id"] for found in db.search_messages("quince")] == ["s"]
        assert [found["id"] for found in db.list_sessions_rich()] == ["s"]


def test_reading_does_not_change_the_file(path: Path) -> None:
    before = path.read_bytes()
    with SessionDB(path, read_only=True) as db:
        assert db.session_count() == 1
    assert path.read_bytes() == before


def test_opening_makes_titles_unique_for_each_owner(path: Path) -> None:
    SessionDB(path).close()
    (index,) = rows(path, "SELECT sql FROM sqlite_schema WHERE name = 'idx_sessions_title_unique'")
    assert "COALESCE(owner, '')" in index[0]
    assert flaws(path) == []


def test_second_use_of_a_title_by_another_program_gets_a_number(tmp_path: Path) -> None:
    """Another program leaves the owner empty; it is determined when the file is opened."""
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session("mine", "telegram", user_id="1")
        db.set_session_title("mine", "Docker")
    change(
        path,
        """INSERT INTO sessions (id, source, user_id, started_at, title)
           VALUES ('theirs', 'telegram', '1', 5.0, 'Docker')""",
    )
    with SessionDB(path) as db:
        titles = {each: db.get_session_title(each, owner="telegram:1") for each in ("mine", "theirs")}
    assert titles == {"mine": "Docker", "theirs": "Docker (2)"}
