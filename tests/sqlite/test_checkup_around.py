"""What a checkup finds around a file: whether it exists, who owns it, its file system, and which processes use it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from hermes.state.maintenance.findings import Finding, Status
from hermes.state.messages.drafts import draft_message
from hermes.state.messages.spool import Spool
from hermes.state.owner import EVERYBODY
from hermes.state.sqlite.checks import file, sizes, sqlite_version
from hermes.state.sqlite.checks import processes as use
from hermes.state.sqlite.filesystem import FileSystem
from hermes_state import SessionDB
from tests.fault.processes import Child
from tests.support.checkups import SRC, checkup, do, give_time, look, worse_than_ok
from tests.support.plainsql import change, rows
from tests.upgrade.oldfiles import real

OK, NOTE, WARNING, ERROR = Status

READ = """
import apsw, sys
connection = apsw.Connection(sys.argv[1], flags=apsw.SQLITE_OPEN_READONLY)
connection.execute("BEGIN; SELECT * FROM sessions").fetchall()
"""
WRITE = """
import sys
from hermes_state import SessionDB
db = SessionDB(sys.argv[1])
db.append_message("s", "user", "x")
"""
DIE_IN_THE_MIDDLE = """
import apsw, os, sys
connection = apsw.Connection(sys.argv[1])
connection.execute("PRAGMA cache_size = 1; BEGIN IMMEDIATE; UPDATE sessions SET title = 'x'").fetchall()
connection.execute("INSERT INTO messages (session_id, role, timestamp, content) VALUES ('s', 'user', 1, zeroblob(1e6))")
os.kill(os.getpid(), 9)
"""
WAIT = """
print("done", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def no_time_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    give_time(monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store with one message."""
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "hello")
    return path


@contextmanager
def other_process(code: str, path: Path) -> Iterator[int]:
    """Run another process that does something with a file and stays alive; yield its pid."""
    program = [sys.executable, "-c", code + WAIT, str(path)]
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"done\n"
        try:
            yield process.pid
        finally:
            process.kill()


def put_on(monkeypatch: pytest.MonkeyPatch, kind: str, *, is_shared: bool) -> None:
    monkeypatch.setattr(file, "file_system_of", lambda _: FileSystem(kind, "/somewhere", is_shared=is_shared))


def processes(found: Finding, key: str = "processes") -> list[int]:
    """The pids in a finding."""
    listed = found.values[key]
    assert isinstance(listed, list)
    return [each["pid"] for each in listed]


class TestEngine:
    def test_installed_sqlite_is_ok(self, path: Path) -> None:
        found = look(path, "engine")
        assert (found.status, found.values["sqlite"]) == (OK, apsw.sqlite_lib_version())

    @pytest.mark.parametrize(
        ("version", "options", "status"),
        [
            ("3.51.3", ("ENABLE_FTS5",), OK),
            ("3.51.2", ("ENABLE_FTS5",), WARNING),
            ("3.50.4", ("ENABLE_FTS5",), WARNING),
            ("4.0", ("ENABLE_FTS5",), OK),
            ("3.54.1", (), ERROR),
        ],
    )
    def test_unsafe_sqlite_is_reported(self, version: str, options: tuple[str, ...], status: Status) -> None:
        assert sqlite_version.judge_version(version, "3.0", options).status == status


class TestFile:
    def test_missing_file_is_ok_and_not_created(self, tmp_path: Path) -> None:
        path = tmp_path / "none" / "state.db"
        assert worse_than_ok(path) == {}
        assert "nothing is stored yet" in look(path, "file").summary
        assert not path.parent.exists()

    def test_empty_file_is_ok(self, tmp_path: Path) -> None:
        path = tmp_path / "state.db"
        path.touch(mode=0o600)
        assert worse_than_ok(path) == {}
        assert "is empty" in look(path, "file").summary

    def test_empty_file_with_a_log_is_an_error_and_the_log_stays(self, path: Path) -> None:
        with SessionDB(path) as db:
            db.append_message("s", "user", "only in the log")
            shutil.copy(f"{path}-wal", path.parent / "kept")
        os.truncate(path, 0)
        (path.parent / "kept").rename(f"{path}-wal")
        found = look(path, "file")
        assert found.status == ERROR
        assert "SQLite would remove the log" in found.remedy
        assert Path(f"{path}-wal").stat().st_size > 0

    def test_link_is_followed_and_reported(self, path: Path) -> None:
        link = path.parent / "link.db"
        link.symlink_to(path)
        assert worse_than_ok(link) == {}
        assert look(link, "file").values["link"] == str(path)

    def test_hint_for_a_broken_link_removes_it(self, tmp_path: Path) -> None:
        link = tmp_path / "a link.db"
        link.symlink_to(tmp_path / "gone" / "state.db")
        found = look(link, "file")
        assert found.status == ERROR
        do(found.remedy.partition("remove the link: ")[2], tmp_path)
        assert look(link, "file").status == OK

    def test_a_directory_is_an_error(self, tmp_path: Path) -> None:
        assert worse_than_ok(tmp_path) == {"file": ERROR}

    def test_pipe_is_an_error(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe", 0o600)
        assert worse_than_ok(tmp_path / "pipe") == {"file": ERROR}

    def test_pipe_as_a_journal_is_an_error_and_is_not_waited_for(self, path: Path) -> None:
        os.mkfifo(f"{path}-journal", 0o600)
        found = look(path, "file")
        assert found.status == ERROR
        assert "-journal is not a file" in found.summary

    @pytest.mark.parametrize("content", [b"not a database at all" * 100, bytes(8192)], ids=["text", "zeros"])
    def test_other_file_is_an_error_and_the_other_checks_run(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "state.db"
        path.write_bytes(content)
        path.chmod(0o600)
        found = checkup(path)
        assert (found["schema"].status, found["integrity"].status) == (ERROR, NOTE)
        assert found["integrity"].summary.startswith("not checked")
        assert (found["disk"].status, found["holders"].status) == (OK, OK)
        assert path.read_bytes() == content


class TestSchema:
    def test_unknown_tables_are_an_error(self, tmp_path: Path) -> None:
        change(tmp_path / "other.db", "CREATE TABLE recipes (x)")
        assert look(tmp_path / "other.db", "schema").status == ERROR

    def test_file_without_tables_is_ok(self, tmp_path: Path) -> None:
        change(tmp_path / "new.db", "CREATE TABLE x (y)", "DROP TABLE x")
        assert look(tmp_path / "new.db", "schema").status == OK

    def test_hint_for_an_older_file_upgrades_it(self, path: Path) -> None:
        real(11, path)
        found = checkup(path)
        assert (found["schema"].status, found["schema"].values["standing"]) == (NOTE, "old")
        assert (found["integrity"].status, found["counters"].status) == (OK, NOTE)
        assert "`hermes sessions optimize`" in found["schema"].remedy
        do("hermes sessions optimize", path.parent)
        assert look(path, "schema").status == OK

    def test_hint_for_a_file_of_another_program_imports_it(self, path: Path) -> None:
        foreign = path.parent / "its own.db"
        expected = real(22, foreign)
        found = look(foreign, "schema")
        assert (found.status, found.values["schema_version"]) == (WARNING, 22)
        do(found.remedy.partition("then: ")[2], path.parent)
        assert rows(path, "SELECT count(*) FROM sessions") == [(len(expected.sessions) + 1,)]

    def test_a_damaged_file_of_another_program_is_left_to_that_program(self, tmp_path: Path) -> None:
        path = tmp_path / "state.db"
        real(22, path)
        page, size = rows(path, "SELECT MAX(pageno), pgsize FROM dbstat WHERE name = 'messages'")[0]
        with open(path, "r+b") as opened:
            opened.seek((page - 1) * size)
            opened.write(b"Z" * size)
        found = look(path, "integrity")
        assert found.status == ERROR
        assert "its own program" in found.remedy
        assert "hermes sessions repair" not in found.remedy

    @pytest.mark.parametrize("key", ["min_reader", "min_writer"])
    def test_a_file_of_a_newer_version_is_an_error(self, path: Path, key: str) -> None:
        change(path, f"UPDATE state_meta SET value = '99' WHERE key = '{key}'")
        found = look(path, "schema")
        assert (found.status, found.values[key], found.remedy) == (ERROR, 99, "update Hermes")

    def test_additions_of_a_newer_version_are_named(self, path: Path) -> None:
        change(path, "INSERT INTO hermes_ledger VALUES ('0099_more', 'x', 1.0)")
        found = look(path, "schema")
        assert found.status == NOTE
        assert "0099_more" in found.summary

    def test_hint_for_foreign_schema_changes_removes_them(self, path: Path) -> None:
        change(path, "DROP TRIGGER messages_fts_update")
        assert look(path, "schema").status == NOTE
        SessionDB(path).close()
        assert worse_than_ok(path) == {}


class TestPlace:
    def test_hint_for_open_permissions_closes_them(self, path: Path) -> None:
        path.chmod(0o640)
        Path(f"{path}.lock").chmod(0o644)
        found = look(path, "permissions")
        assert found.status == WARNING
        do(found.remedy, path.parent)
        assert look(path, "permissions").status == OK

    def test_shared_file_system_is_a_note(self, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
        put_on(monkeypatch, "nfs4", is_shared=True)
        assert look(path, "place").status == NOTE

    def test_log_on_a_shared_file_system_is_an_error(self, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
        put_on(monkeypatch, "nfs4", is_shared=True)
        assert look(path, "journal").status == ERROR
        change(path, "SELECT 1")
        assert rows(path, "PRAGMA journal_mode = delete") == [("delete",)]
        assert look(path, "journal").status == OK

    def test_unknown_file_system_is_a_note(self, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
        put_on(monkeypatch, "", is_shared=False)
        assert look(path, "place").status == NOTE

    def test_hint_for_a_local_file_without_a_log_adds_one(self, path: Path) -> None:
        assert rows(path, "PRAGMA journal_mode = delete") == [("delete",)]
        assert worse_than_ok(path) == {"journal": NOTE}
        SessionDB(path).close()
        assert look(path, "journal").status == OK

    def test_hint_for_an_unfinished_write_rolls_it_back(self, path: Path) -> None:
        assert rows(path, "PRAGMA journal_mode = delete") == [("delete",)]
        subprocess.run([sys.executable, "-c", DIE_IN_THE_MIDDLE, str(path)])
        before = {each.name: each.read_bytes() for each in path.parent.iterdir()}
        assert "state.db-journal" in before
        found = look(path, "schema")
        assert found.status == WARNING
        assert "died during a write" in found.summary
        assert {each.name: each.read_bytes() for each in path.parent.iterdir()} == before
        do(found.remedy, path.parent)
        assert worse_than_ok(path, deep=True) == {"journal": NOTE}


class TestUse:
    def test_processes_with_the_writer_lock_are_listed(self, path: Path) -> None:
        with other_process(WRITE, path) as pid:
            found = look(path, "holders")
            assert (found.status, processes(found)) == (OK, [pid])

    def test_process_that_writes_without_the_lock_is_a_warning(self, path: Path) -> None:
        with Child("hold-transaction", path, "30") as stranger:
            assert stranger.line() == "held"
            found = checkup(path)
            assert (found["holders"].status, processes(found["holders"])) == (WARNING, [stranger.pid])
            assert found["writer"].summary.startswith(f"pid {stranger.pid}")
            assert found["counters"].status == OK

    def test_process_that_only_reads_is_ok(self, path: Path) -> None:
        with other_process(READ, path) as pid:
            found = checkup(path)
            assert (found["holders"].status, processes(found["holders"])) == (OK, [pid])
            assert processes(found["readers"]) == [pid]

    def test_reader_that_keeps_a_large_log_is_named(self, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
        monkeypatch.setattr(sizes, "LOG_LIMIT_BYTES", 0)
        with other_process(READ, path) as pid, SessionDB(path) as db:
            db.append_message("s", "user", "x")
            found = look(path, "wal")
            assert found.status == WARNING
            assert f"pid {pid}" in found.remedy

    def test_too_many_handles_are_a_leak(self, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
        monkeypatch.setattr(use, "MANY_HANDLES", 0)
        with other_process(WRITE, path):
            assert look(path, "holders").status == WARNING

    def test_writing_process_is_named(self, path: Path) -> None:
        with Child("hold-lock", path) as writer:
            assert writer.line() == "held"
            assert look(path, "writer").summary.startswith(f"pid {writer.pid}")
        assert look(path, "writer").values["holder"] == ""

    def test_process_of_ours_with_a_replaced_file_is_a_note(self, path: Path) -> None:
        shutil.copy(path, path.parent / "other.db")
        with other_process(WRITE, path) as pid:
            (path.parent / "other.db").replace(path)
            found = look(path, "left-behind")
            assert (found.status, processes(found, "late")) == (NOTE, [pid])

    def test_removed_log_of_an_open_file_is_an_error(self, path: Path) -> None:
        with Child("hold-transaction", path, "30") as stranger:
            assert stranger.line() == "held"
            Path(f"{path}-wal").unlink()
            found = look(path, "left-behind")
            assert (found.status, processes(found, "lost")) == (ERROR, [stranger.pid])

    def test_checks_without_system_information_are_not_ok(self, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
        nothing = path.parent / "nothing"
        monkeypatch.setattr(use, "holders_of", lambda _: None)
        monkeypatch.setattr(use, "_PROCESSES", nothing)
        monkeypatch.setattr(use, "_LOCKS", nothing)
        found = checkup(path)
        for name in ("holders", "writer", "readers", "left-behind"):
            assert (found[name].status, found[name].values) == (NOTE, {"checked": False})

    def test_compression_locks_are_reported(self, path: Path) -> None:
        with SessionDB(path) as db:
            db.try_acquire_compression_lock("s", "gateway")
        found = look(path, "leases")
        assert found.status == OK
        assert "1 session being compressed" in found.summary
        change(path, "UPDATE compression_locks SET expires_at = 1.0")
        found = look(path, "leases")
        assert (found.status, found.values) == (NOTE, {"held": [], "expired": 1})
        with SessionDB(path) as db:
            assert db.try_acquire_compression_lock("s", "another")

    def test_locked_file_is_not_reported_as_ok(self, path: Path) -> None:
        assert rows(path, "PRAGMA journal_mode = delete") == [("delete",)]
        connection = apsw.Connection(str(path))
        connection.execute("BEGIN EXCLUSIVE").fetchall()
        found = look(path, "schema")
        connection.close()
        assert found.status == NOTE
        assert found.summary.startswith("not checked")
        assert "try again" in found.remedy


class TestOtherFiles:
    def test_hint_for_spooled_messages_stores_them(self, path: Path) -> None:
        spool = Spool(Path(f"{path}.spool"))
        spool.add("s", [draft_message({"role": "user", "content": "waited"}, 1.0)], EVERYBODY)
        found = look(path, "spool")
        assert (found.status, found.values["messages"]) == (WARNING, 1)
        SessionDB(path).close()
        assert look(path, "spool").status == OK
        assert rows(path, "SELECT content FROM messages WHERE id = 2") == [("waited",)]

    @pytest.mark.parametrize("name", ["state.db.spool", "state.db.spool.unreadable"])
    def test_unreadable_spool_lines_are_reported(self, path: Path, name: str) -> None:
        (path.parent / name).write_text("{half a line\n")
        (path.parent / name).chmod(0o600)
        assert worse_than_ok(path) == {"spool": WARNING}

    def test_removable_files_are_listed_by_kind(self, path: Path) -> None:
        names = ("pre-9-20260101_000000", "left-20260101_000000-wal", "damaged-20260101_000000", "pre-9-x.partial")
        for name in names:
            Path(f"{path}.{name}").write_bytes(bytes(1024))
        (path.parent / "another.db.damaged-x").touch()
        found = look(path, "leftovers")
        assert (found.status, found.values["bytes"]) == (NOTE, 4096)
        listed = found.values["files"]
        assert isinstance(listed, dict)
        assert {kind: [Path(each).name for each in files] for kind, files in listed.items()} == {
            "copies from before an upgrade": ["state.db.pre-9-20260101_000000"],
            "logs of replaced files": ["state.db.left-20260101_000000-wal"],
            "damaged files": ["state.db.damaged-20260101_000000"],
            "unfinished copies": ["state.db.pre-9-x.partial"],
        }

    def test_backups_are_counted(self, path: Path) -> None:
        assert look(path, "backups").status == NOTE
        (path.parent / "backups").mkdir()
        (path.parent / "backups" / "state-20260101_000000.db").write_bytes(bytes(1024))
        (path.parent / "backups" / "state-20260102_000000.db.partial").touch()
        found = look(path, "backups")
        assert (found.status, found.values["files"], found.values["bytes"]) == (OK, 1, 1024)
