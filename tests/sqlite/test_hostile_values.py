"""Files with values that no version of Hermes stores: a number that is no number, a definition that exists twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes.state.sqlite.checks.verify import DefectKind, verify
from hermes.state.sqlite.repair.repair import FileCondition, repair
from hermes_state import NotADatabase, SessionDB, StoreCorrupt
from tests.support.plainsql import change, flaws, plain, rows

MARKS = ("abc", "-3", "99999999", "9" * 30, "9" * 5000, "")
"""Values that cannot be the id of the last indexed message."""

CONVERSIONS = {
    "number": ("content               TEXT", "content NUMERIC", "converts content into numbers"),
    "integer": ("tool_call_id          TEXT", "tool_call_id BIGINT", "converts tool_call_id into numbers"),
    "demand": ("reasoning             TEXT", "reasoning TEXT NOT NULL", "requires a value for reasoning"),
    "filling": ("reasoning             TEXT", "reasoning TEXT DEFAULT 'x'", "has a default for reasoning"),
}
"""Columns of messages: the text in their definition, the text that replaces it, and the effect."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one session of one message."""
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "walrus")
    return path


def rewrite(path: Path, *statements: str) -> None:
    """Change the schema of a file behind SQLite's back."""
    with plain(path) as connection:
        connection.execute("PRAGMA writable_schema = ON").fetchall()
        for statement in statements:
            connection.execute(statement).fetchall()


def found(path: Path, *, read_only: bool = False) -> int:
    """How many messages a search finds."""
    with SessionDB(path, read_only=read_only) as db:
        return len(db.search_messages("walrus"))


@pytest.mark.parametrize("mark", MARKS)
def test_invalid_index_mark_hides_nothing(path: Path, mark: str) -> None:
    change(path, f"UPDATE state_meta SET value = '{mark}' WHERE key = 'indexed_upto'")
    with SessionDB(path) as db:
        db.append_message("s", "user", "another walrus")
    assert found(path) == 2
    assert not verify(path).defects


def test_invalid_index_epoch_does_not_prevent_searches(path: Path) -> None:
    change(path, "INSERT OR REPLACE INTO state_meta VALUES ('index_epoch', 'abc')")
    assert found(path, read_only=True) == found(path) == 1


@pytest.mark.parametrize("seq", ["'abc'", "x'00'", "-5", "NULL"])
def test_invalid_last_message_id_is_tolerated(path: Path, seq: str) -> None:
    change(path, f"UPDATE sqlite_sequence SET seq = {seq} WHERE name = 'messages'")
    with SessionDB(path) as db:
        db.append_message("s", "user", "another walrus")
    assert found(path) == 2


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE schema_version SET version = 'abc'",
        "UPDATE schema_version SET version = x'ff'",
        "UPDATE state_meta SET value = 'abc' WHERE key = 'min_reader'",
        f"UPDATE state_meta SET value = '{'9' * 5000}' WHERE key = 'min_writer'",
    ],
)
def test_invalid_schema_version_is_damage_that_a_repair_fixes(path: Path, statement: str) -> None:
    change(path, statement)
    for read_only in (True, False):
        with pytest.raises(StoreCorrupt, match="is not a number"):
            SessionDB(path, read_only=read_only)
    assert verify(path).has(DefectKind.DAMAGE)
    assert repair(path).condition is FileCondition.REPAIRED
    assert found(path) == 1


def test_session_with_a_numeric_id_does_not_prevent_opening(path: Path) -> None:
    change(path, "INSERT INTO stale_sessions VALUES (x'00')")
    assert found(path) == 1


@pytest.mark.parametrize("name", ["messages", "messages_fts_update"])
def test_definition_that_is_not_text_is_refused(path: Path, name: str) -> None:
    rewrite(path, f"UPDATE sqlite_schema SET sql = CAST(sql AS BLOB) WHERE name = '{name}'")
    for read_only in (True, False):
        with pytest.raises(StoreCorrupt, match="is not text"):
            SessionDB(path, read_only=read_only)
    assert [finding.code for finding in verify(path).defects] == ["altered"]
    assert repair(path).condition is FileCondition.REPAIRED
    assert found(path) == 1


@pytest.mark.parametrize(("old", "new", "message"), CONVERSIONS.values(), ids=CONVERSIONS)
def test_column_that_changes_or_refuses_values_is_not_written_to(path: Path, old: str, new: str, message: str) -> None:
    rewrite(path, f"UPDATE sqlite_schema SET sql = replace(sql, '{old}', '{new.replace(chr(39), chr(39) * 2)}')")
    with pytest.raises(StoreCorrupt, match=message):
        SessionDB(path)
    assert found(path, read_only=True) == 1
    assert repair(path).condition is FileCondition.REPAIRED
    with SessionDB(path) as db:
        db.append_message("s", "user", "007")
        assert db.get_messages("s")[-1]["content"] == "007"


@pytest.mark.parametrize(
    "name", ["messages_fts", "messages_fts_data", "messages", "idx_messages_session", "sessions_adopt"]
)
def test_opening_removes_a_second_definition(path: Path, name: str) -> None:
    rewrite(path, f"INSERT INTO sqlite_schema SELECT * FROM sqlite_schema WHERE name = '{name}'")
    assert found(path) == 1
    assert flaws(path) == []
    assert rows(path, "SELECT count(*) FROM sqlite_schema WHERE name = ?", name) == [(1,)]


def test_second_definition_of_another_program_is_left_alone(path: Path) -> None:
    rewrite(
        path,
        "UPDATE schema_version SET version = 22",
        "DROP TABLE hermes_ledger",
        "INSERT INTO sqlite_schema SELECT * FROM sqlite_schema WHERE name = 'messages'",
    )
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt):
        SessionDB(path)
    assert path.read_bytes() == before


def test_pipe_as_a_store_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotADatabase, match="not a file"):
        SessionDB(tmp_path / "pipe", read_only=True)


def test_pipe_as_a_store_is_refused_for_writing_too(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotADatabase, match="not a file"):
        SessionDB(tmp_path / "pipe")


@pytest.mark.parametrize("read_only", [True, False])
def test_pipe_as_a_journal_is_refused_at_once(path: Path, read_only: bool) -> None:
    SessionDB(path).close()
    os.mkfifo(f"{path}-journal")
    with pytest.raises(NotADatabase, match="-journal is not a file"):
        SessionDB(path, read_only=read_only)


def test_pipe_as_a_journal_is_refused_by_verify_and_repair(path: Path) -> None:
    SessionDB(path).close()
    os.mkfifo(f"{path}-journal")
    assert "-journal is not a file" in verify(path).defects[0].message
    with pytest.raises(NotADatabase, match="-journal is not a file"):
        repair(path)


def test_pipe_is_not_imported(tmp_path: Path, path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with SessionDB(path) as db, pytest.raises(NotADatabase, match="not a file"):
        db.import_database(tmp_path / "pipe")
