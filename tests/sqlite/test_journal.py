"""The journal mode of a file, which depends on its file system."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import apsw
import pytest

from hermes.state.sqlite import journal_mode
from hermes.state.sqlite.filesystem import FileSystem
from hermes_state import SessionDB
from tests.fault.processes import assert_sound
from tests.support.waiting import LIMIT_S


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def mode(path: Path) -> object:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute("PRAGMA journal_mode").fetchall()[0][0]
    finally:
        connection.close()


def put_on(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(journal_mode, "file_system_of", lambda _: FileSystem(kind, "/somewhere", is_shared=True))


def fill(path: Path, text: str) -> None:
    with SessionDB(path) as db:
        db.ensure_session("s", "cli")
        db.append_message("s", "user", text)


def test_a_local_file_has_a_wal(path: Path) -> None:
    fill(path, "one")
    assert mode(path) == "wal"


def test_a_shared_file_has_no_wal_and_works(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    put_on(monkeypatch, "nfs4")
    fill(path, "one")
    fill(path, "two")
    assert mode(path) == "delete"
    assert not Path(f"{path}-wal").exists()
    with SessionDB(path) as db:
        assert [hit["id"] for hit in db.search_messages("one OR two", sort="newest")] == [2, 1]


def test_a_file_moved_to_a_shared_file_system_loses_its_wal(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    fill(path, "one")
    put_on(monkeypatch, "virtiofs")
    fill(path, "two")
    assert mode(path) == "delete"


def test_a_wal_that_is_open_in_another_process_is_kept(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    fill(path, "one")
    other = apsw.Connection(str(path))
    other.execute("BEGIN").fetchall()
    other.execute("SELECT count(*) FROM messages").fetchall()
    put_on(monkeypatch, "virtiofs")
    fill(path, "two")
    assert other.execute("SELECT count(*) FROM messages").fetchall() == [(1,)]
    other.close()
    assert mode(path) == "wal"


def test_readers_and_writers_of_a_shared_file_both_succeed(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    put_on(monkeypatch, "cifs")
    fill(path, "zero")
    with SessionDB(path) as db:
        stop = threading.Event()
        failures: list[Exception] = []

        def read() -> None:
            while not stop.is_set():
                try:
                    db.get_messages("s")
                except Exception as exc:  # noqa: BLE001 - collected, and asserted to be none
                    failures.append(exc)

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        for number in range(30):
            db.append_message("s", "user", str(number))
        stop.set()
        for reader in readers:
            reader.join()
        assert failures == []
        assert db.message_count("s") == 31


def test_warning_about_the_file_system_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put_on(monkeypatch, "nfs4")
    for text in ("one", "two"):
        fill(path, text)
    assert [record.getMessage() for record in caplog.records].count(
        f"{path} is on nfs4, which other machines may write to: it is kept without a WAL"
    ) == 1


def test_unfinished_write_of_a_killed_writer_is_rolled_back(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    put_on(monkeypatch, "nfs4")
    fill(path, "one")
    # Without space in its cache, SQLite writes to the file before the commit; the journal has the old content.
    program = """if True:
        import apsw, os, signal, sys
        connection = apsw.Connection(sys.argv[1])
        connection.execute("PRAGMA cache_size = 1").fetchall()
        connection.execute("BEGIN IMMEDIATE")
        for number in range(200):
            connection.execute("UPDATE sessions SET system_prompt = ?", ("x" * 5000 + str(number),)).fetchall()
        connection.execute("UPDATE messages SET content = 'half done'").fetchall()
        os.kill(os.getpid(), signal.SIGKILL)"""
    subprocess.run([sys.executable, "-c", program, str(path)], timeout=LIMIT_S)
    assert Path(f"{path}-journal").exists()
    with SessionDB(path) as db:
        assert [message["content"] for message in db.get_messages("s")] == ["one"]
    assert_sound(path)
