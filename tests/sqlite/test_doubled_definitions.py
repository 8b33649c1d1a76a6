"""Files whose schema has a definition twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.state.sqlite.checks.verify import verify
from hermes_state import SessionDB, StoreCorrupt
from tests.support.plainsql import flaws, plain, rows

NAMES = (
    *("messages_fts", "messages_fts_trigram", "messages_fts_docsize", "idx_messages_uid", "messages_fts_update"),
    "sessions",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one message."""
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "walrus")
    return path


def double(path: Path, name: str, sql: str = "sql") -> None:
    """Add a definition to the schema a second time, perhaps with another text."""
    with plain(path) as connection:
        connection.execute("PRAGMA writable_schema = ON").fetchall()
        connection.execute(
            f"INSERT INTO sqlite_schema SELECT type, name, tbl_name, rootpage, {sql} FROM sqlite_schema WHERE name = ?",
            (name,),
        ).fetchall()
        assert connection.changes() == 1


@pytest.mark.parametrize("name", NAMES)
def test_opening_removes_the_second_definition(path: Path, name: str) -> None:
    double(path, name)
    with SessionDB(path) as db:
        db.append_message("s", "user", "narwhal")
        assert [len(db.search_messages(word)) for word in ("walrus", "narwhal")] == [1, 1]
    assert rows(path, "SELECT count(*) FROM sqlite_schema WHERE name = ?", name) == [(1,)]
    assert flaws(path) == []
    assert verify(path).defects == ()


def test_second_search_index_of_another_form_is_removed(path: Path) -> None:
    double(path, "messages_fts", "'CREATE VIRTUAL TABLE messages_fts USING fts5(content)'")
    with SessionDB(path) as db:
        assert len(db.search_messages("walrus")) == 1
    assert verify(path).defects == ()


def test_file_that_is_only_read_is_not_changed(path: Path) -> None:
    double(path, "messages_fts")
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt, match="repair"):
        SessionDB(path, read_only=True)
    assert path.read_bytes() == before


def test_file_of_another_program_is_not_changed(path: Path) -> None:
    with plain(path) as connection:
        connection.execute("DROP TABLE hermes_ledger").fetchall()
    double(path, "messages_fts")
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt):
        SessionDB(path)
    assert path.read_bytes() == before


def test_two_tables_with_their_own_pages_are_left_to_a_repair(path: Path) -> None:
    with plain(path) as connection:
        connection.execute("CREATE TABLE other (x)").fetchall()
        connection.execute("PRAGMA writable_schema = ON").fetchall()
        connection.execute("UPDATE sqlite_schema SET name = 'rewinds', tbl_name = 'rewinds' WHERE name = 'other'")
        connection.execute("UPDATE sqlite_schema SET sql = 'CREATE TABLE rewinds (x)' WHERE sql LIKE '%other%'")
    with pytest.raises(StoreCorrupt):
        SessionDB(path)
