"""The schema, and the ledger of its versions."""

from __future__ import annotations

from pathlib import Path

import apsw

from hermes_state import SessionDB


def test_file_of_a_newer_version_is_used_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO hermes_ledger VALUES ('9999_later', 'x', 1.0)").fetchall()
    connection.execute("DROP INDEX idx_messages_session").fetchall()
    connection.execute("CREATE INDEX idx_messages_session ON messages(session_id, active, id)").fetchall()
    connection.close()
    with SessionDB(path) as db:
        db.append_message("s", "user", "x")
        assert db.message_count("s") == 1
    connection = apsw.Connection(str(path))
    found = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'idx_messages_session'").fetchall()
    connection.close()
    assert "active" in str(found[0][0])
