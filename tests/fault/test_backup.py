"""Backups that are made while other processes write, on full disks, and of damaged files."""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import apsw
import pytest

from hermes.errors import Conflict, InvalidValue, NotFound, StoreBusy, StoreCorrupt, StoreFull
from hermes.state.sqlite.backup.backup import back_up, back_up_into, backups_in, directory_lock
from hermes.state.sqlite.checks.verify import verify
from hermes.state.sqlite.files import long_read, page_copy
from hermes.state.sqlite.files.page_copy import copy_database
from hermes.state.sqlite.schema.inspection import SchemaState, inspect
from hermes_state import SessionDB
from tests.fault.child import SESSION
from tests.fault.processes import Child, assert_sound
from tests.support.plainsql import change, plain, rows

BACK_UP = """
import sys
from pathlib import Path
from hermes.state.sqlite.backup.backup import back_up_into
back_up_into(Path(sys.argv[1]), Path(sys.argv[2]), 1)
"""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """The path of the backup: in its own directory, so that other new files there are noticed."""
    directory = tmp_path / "backups"
    directory.mkdir()
    return directory / "copy.db"


def fill(path: Path, messages: int = 2_000) -> None:
    with SessionDB(path) as db:
        db.append_messages(SESSION, [{"role": "user", "content": f"axolotl {n} " + "x" * 500} for n in range(messages)])


def uids(path: Path) -> set[str]:
    return {uid for (uid,) in rows(path, "SELECT uid FROM messages")}


def names(directory: Path) -> set[str]:
    return {each.name for each in directory.iterdir()}


class TestWhileOthersWrite:
    def test_backup_has_every_message_acknowledged_before_it_began(self, path: Path, target: Path) -> None:
        fill(path)
        writers = [Child("append", path, f"writer{number}", "forever") for number in range(4)]
        try:
            for writer in writers:
                assert writer.line() == "ready"
                writer.send()
            acknowledged = {writer.line() for writer in writers for _ in range(20)}
            verdict = back_up(path, target)
            later = {writer.line() for writer in writers for _ in range(20)}
        finally:
            for writer in writers:
                writer.__exit__(None, None, None)
        assert verdict.defects == ()
        assert acknowledged <= uids(target)
        assert acknowledged | later <= uids(path)
        assert_sound(target)
        assert_sound(path)

    def test_backup_is_of_one_moment_and_does_not_restart(
        self, path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(page_copy, "STEP_PAGES", 32)
        fill(path)
        done: list[int] = []
        with SessionDB(path) as db:
            before = db.message_count()

            def write_on(_what: str, pages: int, _total: int) -> None:
                done.append(pages)
                db.append_message(SESSION, "user", "meanwhile")

            copy_database(path, target, write_on)
            assert db.message_count() == before + len(done)
        assert rows(target, "SELECT count(*) FROM messages") == [(before,)]
        assert done == sorted(done)
        assert len(done) > 10

    def test_backup_ends_if_the_log_grows_too_large(
        self, path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(page_copy, "STEP_PAGES", 32)
        monkeypatch.setattr(long_read, "LOG_LIMIT_BYTES", 100_000)
        fill(path)
        with SessionDB(path) as db:

            def write_on(*_: object) -> None:
                db.append_message(SESSION, "user", "x" * 50_000)

            with pytest.raises(StoreBusy, match="its log grew"):
                copy_database(path, target, write_on)
            db.append_message(SESSION, "user", "and on it goes")
        assert names(target.parent) == set()

    def test_backup_without_a_log_restarts_three_times_then_blocks_writers(
        self, tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(page_copy, "STEP_PAGES", 32)
        path = tmp_path / "plain.db"
        change(path, "CREATE TABLE t (n INTEGER PRIMARY KEY, filler BLOB)")
        done, waiting = [0], 0
        with plain(path) as writer:
            writer.executemany("INSERT INTO t (filler) VALUES (randomblob(?))", [(4_000,)] * 200).fetchall()
            writer.set_busy_timeout(0)

            def write_on(_what: str, pages: int, _total: int) -> None:
                nonlocal waiting
                done.append(pages)
                try:
                    writer.execute("INSERT INTO t (filler) VALUES (randomblob(100))").fetchall()
                except apsw.BusyError:
                    waiting += 1

            copy_database(path, target, write_on)
            writer.execute("INSERT INTO t (filler) VALUES (randomblob(100))").fetchall()
        assert done[:6] == [0, 32, 32, 32, 32, 64]
        assert all(earlier < later for earlier, later in pairwise(done[4:]))
        assert waiting == len(done[4:])
        assert rows(target, "PRAGMA integrity_check") == [("ok",)]


class TestBackupFile:
    def test_backup_can_be_opened_and_searched(self, path: Path, target: Path) -> None:
        fill(path)
        back_up(path, target)
        assert inspect(target).state is SchemaState.CURRENT
        with SessionDB(target) as db:
            found = db.search_messages("axolotl", limit=3_000)
            assert (len(found), found.degraded, found.path) == (2_000, False, "words")
            db.append_message(SESSION, "user", "it is a store like any other")

    def test_backup_is_one_private_file_without_a_log(self, path: Path, target: Path) -> None:
        with SessionDB(path) as db:
            db.append_message(SESSION, "user", "only in the log")
            back_up(path, target)
        assert names(target.parent) == {"copy.db", "copy.db.sha256"}
        assert {each.stat().st_mode & 0o777 for each in target.parent.iterdir()} == {0o600}
        assert rows(target, "SELECT content FROM messages") == [("only in the log",)]
        assert rows(target, "PRAGMA journal_mode") == [("delete",)]

    def test_checksum_file_is_correct(self, path: Path, target: Path) -> None:
        back_up(path, target)
        digest = hashlib.sha256(target.read_bytes()).hexdigest()
        assert Path(f"{target}.sha256").read_text() == f"{digest}  copy.db\n"

    @pytest.mark.parametrize("name", ["with space", "50% & more", "what?", "#1", "[x]*", "ünï"])
    def test_backup_works_with_any_file_name(self, tmp_path: Path, name: str) -> None:
        path, directory = tmp_path / name / f"{name}.db", tmp_path / f"to {name}"
        with SessionDB(path) as db:
            db.create_session(SESSION, "cli")
        made = [back_up_into(path, directory, 2).verdict.path for _ in range(3)]
        assert backups_in(directory, path) == [made[2], made[1]]
        assert verify(made[2]).defects == ()

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
    def test_backup_made_by_root_belongs_to_the_owner_of_the_store(self, path: Path, tmp_path: Path) -> None:
        os.chown(path, 65_534, 65_534)
        back_up_into(path, tmp_path / "backups", 1)
        made = [tmp_path / "backups", *(tmp_path / "backups").iterdir()]
        assert len(made) == 3
        assert {each.stat().st_uid for each in made} == {65_534}


class TestTarget:
    def test_existing_file_is_overwritten_only_on_request(self, path: Path, target: Path) -> None:
        target.write_text("precious")
        with pytest.raises(Conflict):
            back_up(path, target)
        assert target.read_text() == "precious"
        assert names(target.parent) == {"copy.db"}
        assert back_up(path, target, overwrite=True).path == target
        assert verify(target).defects == ()

    @pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal", ".lock", ".gate", ".spool"])
    def test_target_must_not_be_a_file_of_the_database(self, path: Path, suffix: str) -> None:
        with pytest.raises(InvalidValue, match="itself"):
            back_up(path, Path(f"{path}{suffix}"), overwrite=True)
        assert_sound(path)

    def test_target_must_not_be_the_database_under_another_name(self, path: Path, tmp_path: Path) -> None:
        link, second_name = tmp_path / "link.db", tmp_path / "second.db"
        link.symlink_to(path)
        os.link(path, second_name)
        for other in (link, second_name):
            with pytest.raises(InvalidValue, match="itself"):
                back_up(path, other, overwrite=True)

    def test_target_must_be_a_file_in_an_existing_directory(self, path: Path, tmp_path: Path) -> None:
        with pytest.raises(InvalidValue, match="not a file"):
            back_up(path, tmp_path, overwrite=True)
        with pytest.raises(NotFound, match="no directory"):
            back_up(path, tmp_path / "missing" / "copy.db")
        assert not (tmp_path / "missing").exists()

    def test_second_backup_in_the_same_directory_is_refused(self, path: Path, target: Path) -> None:
        with directory_lock(target.parent), pytest.raises(Conflict, match="another process"):
            back_up(path, target)
        back_up(path, target)


class TestFullDisk:
    def test_full_disk_is_an_error_before_anything_is_written(
        self, path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(page_copy, "free_bytes", lambda _: 1 << 20)
        with pytest.raises(StoreFull, match="needs 16 MB"):
            back_up(path, target)
        assert names(target.parent) == set()

    def test_disk_that_fills_up_meanwhile_leaves_no_files(self, path: Path, target: Path) -> None:
        fill(path)
        old = back_up_into(path, target.parent, 1).verdict.path
        before = names(target.parent)
        done = subprocess.run(
            [sys.executable, "-c", BACK_UP, str(path), str(target.parent)],
            capture_output=True,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
        )
        assert done.returncode == 1
        assert "hermes.errors.Store" in done.stderr
        assert names(target.parent) == before
        assert verify(old).defects == ()
        assert_sound(path)


def test_a_damaged_database_gives_no_backup_and_removes_none(path: Path, tmp_path: Path) -> None:
    fill(path)
    good = back_up_into(path, tmp_path / "backups", 1).verdict.path
    connection = apsw.Connection(str(path))
    (page,) = connection.execute("SELECT max(pageno) FROM dbstat WHERE name = 'messages'").fetchall()[0]
    connection.close()
    assert isinstance(page, int)
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 64)
    with pytest.raises(StoreCorrupt, match="messages is damaged") as caught:
        back_up_into(path, tmp_path / "backups", 1)
    assert "hermes sessions repair" in caught.value.hint
    assert backups_in(tmp_path / "backups", path) == [good]
    assert names(tmp_path / "backups") == {good.name, f"{good.name}.sha256"}
