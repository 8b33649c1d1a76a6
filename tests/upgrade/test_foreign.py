"""Changes of other programs to our files, and files that are only read."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_state import SessionDB, StoreTooNew
from tests.support.plainsql import change, plain, rows
from tests.upgrade import checks, oldfiles
from tests.upgrade.build_files import build
from tests.upgrade.checks import FTS_TABLES, schema_of
from tests.upgrade.corpus import Expected

OLD_SESSION = (
    "INSERT INTO sessions (id, source, user_id, model, started_at) VALUES ('foreign', 'telegram', 'u7', 'm', 500.0)"
)
OLD_COUNT = "UPDATE sessions SET message_count = message_count + 1 WHERE id = '{session}'"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of ours with one session of two messages."""
    path = tmp_path / "state.db"
    with SessionDB(path, clock=lambda: 100.0) as db:
        db.create_session("ours", "cli")
        db.append_messages("ours", [{"role": "user", "content": "walrus"}, {"role": "assistant", "content": "yes"}])
    return path


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that every user may enter; the tests' own is private."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    try:
        yield place
    finally:
        place.chmod(0o755)
        shutil.rmtree(place)


def append_as_old_program(path: Path, session: str, content: str, *, at: float, calls: str | None = None) -> int:
    """Write a message like a program of version 11: an INSERT of the documented columns, and the count."""
    with plain(path) as connection, connection:
        connection.execute(
            "INSERT INTO messages (session_id, role, content, tool_calls, timestamp) VALUES (?, 'user', ?, ?, ?)",
            (session, content, calls, at),
        )
        message_id = connection.last_insert_rowid()
        connection.execute(OLD_COUNT.format(session=session))
    return message_id


def row_of(db: SessionDB, session_id: str) -> dict[str, Any]:
    """A session that must exist."""
    row = db.get_session(session_id)
    assert row is not None
    return {**row}


class TestHealing:
    """A file of ours that another program changed is fixed at the next open."""

    def test_version_number_of_another_program_is_reset(self, path: Path) -> None:
        change(path, "UPDATE schema_version SET version = 22")
        with SessionDB(path) as db:
            assert not db.read_only
            db.append_message("ours", "user", "and on")
            assert len(db.get_messages("ours")) == 3
        assert rows(path, "SELECT version FROM schema_version") == [(11,)]
        assert checks.backups(path) == []

    def test_columns_and_tables_of_another_program_do_no_harm(self, path: Path) -> None:
        change(
            path,
            "UPDATE schema_version SET version = 22",
            "ALTER TABLE sessions ADD COLUMN git_branch TEXT",
            "ALTER TABLE messages ADD COLUMN display_kind TEXT",
            "CREATE TABLE gateway_routing (scope TEXT, session_key TEXT)",
            "CREATE INDEX idx_messages_session_active ON messages(session_id, active, timestamp)",
        )
        with SessionDB(path) as db:
            assert [message["content"] for message in db.get_messages("ours")] == ["walrus", "yes"]
            db.append_message("ours", "user", "and on")
        with SessionDB(path) as db:
            assert db.message_count("ours") == 3

    def test_triggers_of_another_program_are_dropped_and_the_index_is_rebuilt(self, path: Path, tmp_path: Path) -> None:
        SessionDB(tmp_path / "fresh.db").close()
        change(
            path,
            """CREATE TRIGGER messages_fts_trigram_insert AFTER INSERT ON messages BEGIN
                   INSERT INTO messages_fts_trigram(rowid, content) VALUES (new.id, COALESCE(new.content, ''));
               END""",
            """CREATE TRIGGER messages_fts_trigram_update AFTER UPDATE ON messages BEGIN
                   DELETE FROM messages_fts_trigram WHERE rowid = old.id;
                   INSERT INTO messages_fts_trigram(rowid, content) VALUES (new.id, COALESCE(new.content, ''));
               END""",
            "DROP TRIGGER messages_fts_update",
        )
        append_as_old_program(path, "ours", "axolotl", at=200.0)
        with SessionDB(path) as db:
            db.append_message("ours", "user", "narwhal")
        assert schema_of(path) == schema_of(tmp_path / "fresh.db")
        for table in FTS_TABLES:
            assert checks.indexed(path, table) == [1, 2, 3, 4]
            assert checks.matching(path, table, "axolotl") == [3]
            assert checks.matching(path, table, "narwhal") == [4]

    def test_full_text_tables_of_another_form_are_rebuilt(self, path: Path, tmp_path: Path) -> None:
        SessionDB(tmp_path / "fresh.db").close()
        change(
            path,
            *(f"DROP TABLE {table}" for table in FTS_TABLES),
            "CREATE VIRTUAL TABLE messages_fts USING fts5(content)",
            "CREATE VIRTUAL TABLE messages_fts_trigram USING fts5(content, tokenize='trigram')",
            "INSERT INTO messages_fts(rowid, content) SELECT id, content FROM messages",
        )
        with SessionDB(path) as db:
            db.append_message("ours", "user", "narwhal")
        assert schema_of(path) == schema_of(tmp_path / "fresh.db")
        for table in FTS_TABLES:
            assert checks.indexed(path, table) == [1, 2, 3]
            assert checks.matching(path, table, "walrus") == [1]

    def test_lost_triggers_and_indexes_are_created_again(self, path: Path, tmp_path: Path) -> None:
        SessionDB(tmp_path / "fresh.db").close()
        names = rows(
            path, "SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'index') AND sql IS NOT NULL"
        )
        change(path, *(f"DROP {kind} {name}" for kind, name in names))
        SessionDB(path).close()
        assert schema_of(path) == schema_of(tmp_path / "fresh.db")

    def test_adopted_file_is_not_changed_again(self, path: Path) -> None:
        change(path, "UPDATE schema_version SET version = 22")
        for _ in range(2):
            SessionDB(path).close()
        kept = checks.digest(path)
        SessionDB(path).close()
        assert checks.digest(path) == kept

    def test_messages_written_while_a_trigger_was_missing_are_indexed(self, path: Path) -> None:
        change(path, "DROP TRIGGER messages_fts_update", "UPDATE messages SET content = 'axolotl' WHERE id = 1")
        SessionDB(path).close()
        for table in FTS_TABLES:
            assert checks.matching(path, table, "axolotl") == [1]
            assert checks.matching(path, table, "walrus") == []


class TestNewerFile:
    """A file says which programs may read and which may write it."""

    def test_newer_writer_refuses_writing_and_allows_reading(self, path: Path) -> None:
        change(path, "UPDATE state_meta SET value = '2' WHERE key = 'min_writer'")
        before = checks.digest(path)
        with pytest.raises(StoreTooNew, match="newer version"):
            SessionDB(path)
        with SessionDB(path, read_only=True) as db:
            assert len(db.get_messages("ours")) == 2
        assert checks.digest(path) == before

    def test_newer_writer_is_respected_when_its_schema_differs(self, path: Path) -> None:
        change(
            path,
            "UPDATE state_meta SET value = '2' WHERE key = 'min_writer'",
            "CREATE TABLE of_tomorrow (id INTEGER PRIMARY KEY)",
            "UPDATE schema_version SET version = 12",
        )
        before = checks.digest(path)
        with pytest.raises(StoreTooNew):
            SessionDB(path)
        assert checks.digest(path) == before

    def test_newer_reader_refuses_both(self, path: Path) -> None:
        change(path, "UPDATE state_meta SET value = '2' WHERE key IN ('min_reader', 'min_writer')")
        before = checks.digest(path)
        for read_only in (False, True):
            with pytest.raises(StoreTooNew):
                SessionDB(path, read_only=read_only)
        assert checks.digest(path) == before

    def test_newer_reader_alone_refuses_writing_too(self, path: Path) -> None:
        change(path, "UPDATE state_meta SET value = '2' WHERE key = 'min_reader'")
        with pytest.raises(StoreTooNew):
            SessionDB(path)

    def test_later_addition_without_requirements_is_kept(self, path: Path) -> None:
        change(
            path,
            "CREATE TABLE of_tomorrow (id INTEGER PRIMARY KEY)",
            "INSERT INTO of_tomorrow VALUES (1)",
            "INSERT INTO hermes_ledger VALUES ('0002_tomorrow', 'sum', 1.0)",
        )
        with SessionDB(path) as db:
            db.append_message("ours", "user", "still fine")
        assert rows(path, "SELECT id FROM of_tomorrow") == [(1,)]
        assert ("0002_tomorrow",) in rows(path, "SELECT name FROM hermes_ledger")


class TestPlainSql:
    """Rows that an older program writes into our file."""

    def test_new_session_and_messages_are_adopted_at_the_next_open(self, path: Path) -> None:
        change(path, OLD_SESSION)
        calls = json.dumps([{"id": "c", "function": {"name": "terminal", "arguments": "{}"}}])
        first = append_as_old_program(path, "foreign", "axolotl", at=510.0)
        second = append_as_old_program(path, "foreign", "again", at=520.0, calls=calls)
        with SessionDB(path) as db:
            row = row_of(db, "foreign")
            assert (row["message_count"], row["tool_call_count"], row["last_active"]) == (2, 1, 520.0)
            assert (row["preview"], row["owner"], row["listed"]) == ("axolotl", "telegram:u7", 1)
            assert db.get_session_tools("foreign") == {"terminal": 1}
            uids = [message["uid"] for message in db.get_messages("foreign")]
            assert len(set(uids)) == 2
            assert [row["id"] for row in db.list_sessions_rich(order_by_last_active=True)] == ["foreign", "ours"]
        assert rows(path, "SELECT count(*) FROM messages WHERE uid IS NULL") == [(0,)]
        assert rows(path, "SELECT * FROM stale_sessions") == []
        for table in FTS_TABLES:
            assert checks.indexed(path, table) == [1, 2, first, second]
            assert checks.matching(path, table, "axolotl") == [first]

    def test_message_in_one_of_our_sessions_is_counted(self, path: Path) -> None:
        append_as_old_program(path, "ours", "axolotl", at=300.0)
        with SessionDB(path) as db:
            row = row_of(db, "ours")
            assert (row["message_count"], row["last_active"], row["chain_active"]) == (3, 300.0, 300.0)
            assert row["preview"] == "walrus"

    def test_uid_of_an_adopted_message_stays(self, path: Path) -> None:
        third = append_as_old_program(path, "ours", "axolotl", at=300.0)
        with SessionDB(path, read_only=True) as db:
            seen = db.get_messages("ours")[-1]["uid"]
        with SessionDB(path) as db:
            assert db.get_messages("ours")[-1]["uid"] == seen
            assert db.append_message("ours", "user", "axolotl", uid=seen) == third

    def test_adopted_uid_never_collides_with_an_imported_one(self, path: Path) -> None:
        with SessionDB(path) as db:
            imported = {"id": "moved", "source": "cli", "started_at": 1.0}
            db.import_session({**imported, "messages": [{"role": "user", "content": "a", "uid": "row-4"}]})
        assert append_as_old_program(path, "moved", "b", at=2.0) == 4
        with SessionDB(path) as db:
            assert [message["content"] for message in db.get_messages("moved")] == ["a", "b"]
            assert row_of(db, "moved")["message_count"] == 2

    def test_changed_text_is_found_and_the_old_text_is_not(self, path: Path) -> None:
        change(path, "UPDATE messages SET content = 'axolotl' WHERE id = 1")
        with SessionDB(path) as db:
            db.append_message("ours", "user", "next")
        for table in FTS_TABLES:
            assert checks.matching(path, table, "axolotl") == [1]
            assert checks.matching(path, table, "walrus") == []
        assert rows(path, "SELECT * FROM stale_index") == []

    def test_deleted_message_leaves_the_index_and_the_count(self, path: Path) -> None:
        change(path, "DELETE FROM messages WHERE id = 1")
        with SessionDB(path) as db:
            assert row_of(db, "ours")["message_count"] == 1
            assert not row_of(db, "ours")["preview"]
        for table in FTS_TABLES:
            assert checks.indexed(path, table) == [2]

    def test_old_program_can_delete_a_session_of_ours(self, path: Path) -> None:
        with SessionDB(path) as db:
            db.update_token_counts("ours", input_tokens=5)
            db.append_message("ours", "assistant", tool_calls=[{"id": "c", "function": {"name": "terminal"}}])
        with plain(path) as connection:
            connection.execute("PRAGMA foreign_keys = ON")
            with connection:
                connection.execute("DELETE FROM messages WHERE session_id = 'ours'")
                connection.execute("DELETE FROM sessions WHERE id = 'ours'")
        with SessionDB(path) as db:
            assert db.get_session("ours") is None
            assert db.session_count() == 0

    def test_tokens_counted_by_an_old_program_are_recorded(self, path: Path) -> None:
        change(path, OLD_SESSION, "UPDATE sessions SET input_tokens = 70, output_tokens = 7 WHERE id = 'foreign'")
        with SessionDB(path) as db:
            (event,) = db.list_usage_events("foreign")
            assert (event["kind"], event["input_tokens"], event["output_tokens"]) == ("opening", 70, 7)

    def test_changes_of_an_old_program_do_not_disturb_an_open_store(self, path: Path) -> None:
        with SessionDB(path) as db:
            append_as_old_program(path, "ours", "axolotl", at=300.0)
            db.append_message("ours", "user", "narwhal")
            assert [message["content"] for message in db.get_messages("ours")] == [
                "walrus",
                "yes",
                "axolotl",
                "narwhal",
            ]
        with SessionDB(path) as db:
            assert row_of(db, "ours")["message_count"] == 4

    def test_continuation_without_its_first_session_is_listed(self, path: Path) -> None:
        with SessionDB(path) as db:
            db.create_session("root", "cli")
            db.append_message("root", "user", "x")
            db.end_session("root", "compression")
            db.create_session("tip", "cli", parent_session_id="root")
            db.append_message("tip", "user", "y")
        change(
            path,
            "UPDATE sessions SET parent_session_id = NULL WHERE id = 'tip'",
            "DELETE FROM messages WHERE session_id = 'root'",
            "DELETE FROM sessions WHERE id = 'root'",
        )
        with SessionDB(path) as db:
            assert "tip" in [row["id"] for row in db.list_sessions_rich(order_by_last_active=True)]
            assert row_of(db, "tip")["chain_root"] is None


class TestGuest:
    """A user who may only read, in a directory that cannot be written."""

    @pytest.mark.parametrize("version", [*range(1, 12), 14, 17, 22])
    def test_guest_reads_every_version(self, open_directory: Path, version: int) -> None:
        path = open_directory / "state.db"
        expected = oldfiles.real(version, path) if version > 11 else build(version, path, sessions=10)
        assert self._look(path) == self._content(expected)

    def test_guest_reads_a_store_of_ours(self, open_directory: Path) -> None:
        path = open_directory / "state.db"
        expected = oldfiles.real(11, path)
        SessionDB(path).close()
        for extra in [*checks.backups(path), *path.parent.glob("*.lock"), *path.parent.glob("*.gate")]:
            extra.unlink()
        assert self._look(path) == self._content(expected)

    def test_guest_reads_messages_in_the_log(self, open_directory: Path) -> None:
        path = open_directory / "state.db"
        with SessionDB(path) as db:
            db.create_session("s", "cli")
            db.append_message("s", "user", "in the log")
            copy = open_directory / "copy"
            copy.mkdir()
            for name in ("state.db", "state.db-wal", "state.db-shm"):
                shutil.copy(open_directory / name, copy / name)
        assert self._look(copy / "state.db") == {"sessions": ["s"], "messages": 1, "listed": 1}

    @pytest.mark.parametrize("rest", ["", "state.db-journal"])
    def test_guest_reads_a_log_without_shared_memory(self, open_directory: Path, rest: str) -> None:
        path = open_directory / "state.db"
        with SessionDB(path) as db:
            db.create_session("s", "cli")
            db.append_message("s", "user", "in the log")
            copy = open_directory / "copy"
            copy.mkdir()
            for name in ("state.db", "state.db-wal"):
                shutil.copy(open_directory / name, copy / name)
        if rest:
            (copy / rest).touch()
        assert self._look(copy / "state.db") == {"sessions": ["s"], "messages": 1, "listed": 1}

    def test_unreadable_log_is_an_error_and_not_an_empty_store(self, open_directory: Path) -> None:
        path = open_directory / "state.db"
        with SessionDB(path) as db:
            db.create_session("s", "cli")
            copy = open_directory / "copy"
            copy.mkdir()
            for name in ("state.db", "state.db-wal", "state.db-shm"):
                shutil.copy(open_directory / name, copy / name)
        with pytest.raises(subprocess.CalledProcessError) as failed:
            self._look(copy / "state.db", closed="state.db-shm")
        copy.chmod(0o755)
        assert "has a log that cannot be read" in failed.value.stderr

    def _look(self, path: Path, *, closed: str | None = None) -> dict[str, Any]:
        before, names = checks.digest(path), sorted(path.parent.iterdir())
        for file in names:
            if file.is_file():
                file.chmod(0 if file.name == closed else 0o444)
        path.parent.chmod(0o555)
        program = [sys.executable, "-m", "tests.upgrade.read_as_guest", str(path)]
        done = subprocess.run(
            program, check=True, capture_output=True, text=True, timeout=60, env=checks.environment(), cwd=checks.ROOT
        )
        path.parent.chmod(0o755)
        assert (checks.digest(path), sorted(path.parent.iterdir())) == (before, names)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def _content(self, expected: Expected) -> dict[str, Any]:
        kept = {"20250301_091001_b2c3d4e5", "20250302_130000_e5f60718"}
        listed = [s for s in expected.sessions if s.id not in kept and not s.archived]
        return {
            "sessions": sorted(session.id for session in expected.sessions),
            "messages": sum(message.active for message in expected.all_messages()),
            "listed": len(listed),
        }
