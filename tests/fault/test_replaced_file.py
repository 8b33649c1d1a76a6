"""A database file that is moved, removed or replaced under an open store."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw

from hermes_state import SessionDB
from tests.fault.child import SESSION


def contents(path: Path) -> list[str]:
    connection = apsw.Connection(str(path))
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = connection.execute("SELECT content FROM messages ORDER BY id").fetchall()
        return [str(content) for (content,) in rows]
    finally:
        connection.close()


def make(path: Path, *texts: str) -> None:
    with SessionDB(path) as db:
        db.create_session(SESSION, "cli")
        for text in texts:
            db.append_message(SESSION, "user", text)


def test_writes_after_a_replacement_go_to_the_new_file(path: Path, tmp_path: Path) -> None:
    other, aside = tmp_path / "other.db", tmp_path / "aside.db"
    make(other, "in the new file")
    with SessionDB(path) as db:
        db.append_message(SESSION, "user", "before")
        path.replace(aside)
        other.replace(path)
        db.append_message(SESSION, "user", "after")
        assert [each["content"] for each in db.get_messages(SESSION)] == ["in the new file", "after"]
    assert contents(path) == ["in the new file", "after"]


def test_reads_see_the_new_file_at_once(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    make(other, "in the new file")
    with SessionDB(path) as db, SessionDB(path, read_only=True) as reader:
        assert reader.message_count() == 0
        other.replace(path)
        assert db.message_count() == 1
        assert reader.message_count() == 1


def test_the_log_of_the_new_file_is_left_alone(path: Path, tmp_path: Path) -> None:
    with SessionDB(path) as db:
        db.append_message(SESSION, "user", "before")
        for suffix in ("", "-wal", "-shm"):
            shutil.move(f"{path}{suffix}", f"{tmp_path / 'aside.db'}{suffix}")
        # Another program creates the new file and keeps it open, with messages that are only in its log.
        make(path)
        foreign = apsw.Connection(str(path))
        foreign.execute("INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', 'logged', 1)")
        db.append_message(SESSION, "user", "after")
        foreign.execute("INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', 'again', 1)")
        foreign.close()
    assert contents(path) == ["logged", "after", "again"]
    assert contents(tmp_path / "aside.db") == ["before"]


def test_removed_file_is_created_again(path: Path) -> None:
    with SessionDB(path) as db:
        db.append_message(SESSION, "user", "before")
        for each in path.parent.glob("state.db*"):
            each.unlink()
        db.create_session(SESSION, "cli")
        db.append_message(SESSION, "user", "after")
    assert contents(path) == ["after"]
