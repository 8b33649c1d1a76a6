"""The settings of the file: durable, private, and with a short log."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from hermes_state import SessionDB
from tests.sqlite.statements import Record, recorded
from tests.upgrade.build_files import build


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of the test's store, in a directory that does not exist yet."""
    return tmp_path / "home" / "nested" / "state.db"


@pytest.fixture
def record() -> Iterator[Record]:
    """All statements of the test."""
    with recorded() as record:
        yield record


@pytest.fixture
def open_umask() -> Iterator[None]:
    """A umask with which everyone could read new files."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    """The permissions of a file."""
    return stat.S_IMODE(path.stat().st_mode)


def pragma(connection: apsw.Connection, name: str) -> object:
    """The value of a setting of a connection."""
    return connection.pragma(name)


def writer_of(record: Record) -> apsw.Connection:
    """The connection that ran the last transaction."""
    return next(each.connection for each in reversed(record.statements) if each.sql == "BEGIN IMMEDIATE")


def test_writer_is_durable_and_checks_references(path: Path, record: Record) -> None:
    with SessionDB(path) as db:
        with record.listening():
            db.create_session("s", "cli")
        writer = writer_of(record)
        assert pragma(writer, "journal_mode") == "wal"
        assert pragma(writer, "synchronous") == 2
        assert pragma(writer, "foreign_keys") == 1
        assert pragma(writer, "wal_autocheckpoint") == 0


def test_readers_cannot_write(path: Path, record: Record) -> None:
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        with record.listening() as statements:
            db.get_session("s")
        reader = statements[-1].connection
        assert reader.readonly("main")
        with pytest.raises(apsw.ReadOnlyError):
            reader.execute("DELETE FROM sessions")


@pytest.mark.usefixtures("open_umask")
def test_only_the_owner_can_read_the_files(path: Path) -> None:
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "private")
        db.get_messages("s")
        names = {each.name: mode(each) for each in path.parent.iterdir()}
    assert names == dict.fromkeys(["state.db", "state.db-wal", "state.db-shm", "state.db.lock", "state.db.gate"], 0o600)
    assert [mode(path.parent), mode(path.parent.parent)] == [0o700, 0o700]


@pytest.mark.usefixtures("open_umask")
def test_only_the_owner_can_read_a_backup(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    build(7, path)
    path.chmod(0o644)
    SessionDB(path).close()
    (backup,) = tmp_path.glob("state.db.pre-7-*")
    assert mode(backup) == 0o600


def test_log_is_moved_into_the_file_every_fifty_writes(path: Path, record: Record) -> None:
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        received = []
        with record.listening():
            for number in range(2, 151):
                db.append_message("s", "user", str(number))
                if "PRAGMA wal_checkpoint(PASSIVE)" in record.sql():
                    received.append(number)
                    record.statements.clear()
        assert received == [50, 100, 150]


def test_log_is_emptied_on_close(path: Path, record: Record) -> None:
    db = SessionDB(path)
    db.create_session("s", "cli")
    with record.listening():
        db.close()
    assert "PRAGMA wal_checkpoint(TRUNCATE)" in record.sql()
    assert sorted(each.name for each in path.parent.iterdir()) == ["state.db", "state.db.gate", "state.db.lock"]


def test_close_does_not_wait_for_a_reader_elsewhere(path: Path) -> None:
    db = SessionDB(path)
    db.create_session("s", "cli")
    reader = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM sessions").fetchall()
    db.append_message("s", "user", "later")
    db.close()
    reader.close()
    with SessionDB(path) as again:
        assert len(again.get_messages("s")) == 1


def test_append_is_one_transaction_with_one_commit(path: Path, record: Record) -> None:
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        with record.listening():
            db.append_message("s", "user", "one")
        begun = [sql for sql in record.sql() if sql.startswith(("BEGIN", "COMMIT", "SAVEPOINT", "ROLLBACK"))]
        assert begun == ["BEGIN IMMEDIATE", "COMMIT"]


def test_opening_a_store_reads_no_message(path: Path, record: Record) -> None:
    """The cost of an open does not grow with the number of messages."""
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        db.append_messages("s", [{"role": "user", "content": "x"}] * 50)
    with record.listening() as statements:
        db = SessionDB(path)
    plans = {each.sql: each.plan() for each in statements if each.sql.lstrip().startswith("SELECT")}
    db.close()
    for sql, steps in plans.items():
        for step in steps:
            assert not step.startswith("SCAN messages") or "idx_messages_foreign" in step, sql
            assert not step.startswith("SCAN sessions"), sql


def test_nearly_full_disk_is_logged(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("hermes.state.sqlite.store.open_file.free_bytes", lambda _: 20 << 20)
    SessionDB(path).close()
    assert [record.getMessage() for record in caplog.records] == [
        f"only 20 MB are free on the disk of {path}: free some space"
    ]
