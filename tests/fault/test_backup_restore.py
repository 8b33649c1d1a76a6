"""Restoring a backup: with other processes at work, over damaged files, and refused cases."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes.errors import InvalidValue, MessageSpooled, NotADatabase, StoreBusy, StoreCorrupt
from hermes.state.messages.spool import Spool
from hermes.state.sqlite.backup import restore as restoring
from hermes.state.sqlite.backup.backup import back_up
from hermes.state.sqlite.backup.copies import copies_of
from hermes.state.sqlite.backup.restore import Loss, compare, restore
from hermes.state.sqlite.checks.verify import verify
from hermes_state import SessionDB
from tests.fault.child import SESSION
from tests.fault.processes import ROOT, Child, assert_sound
from tests.support.plainsql import rows
from tests.support.waiting import LIMIT_S, wait_until
from tests.upgrade.build_files import build

UPSTREAM = Path(__file__).parents[1] / "upgrade" / "files" / "v22.db.gz"
IDLE = """
import sys
from hermes_state import SessionDB
with SessionDB(sys.argv[1]) as db:
    db.append_message("s", "user", "before it was idle")
    print("idle", flush=True)
    sys.stdin.readline()
"""
READ_ON = """
import sys
from hermes.state.sqlite.engine import SqliteEngine
from pathlib import Path

def look(view):
    view.rows("SELECT count(*) FROM messages")
    print("reading", flush=True)
    sys.stdin.readline()

engine = SqliteEngine(Path(sys.argv[1]))
engine.write(lambda tx: tx.run("UPDATE sessions SET cwd = 'here'"))
engine.read(look)
engine.close()
"""


@pytest.fixture
def backup(path: Path, tmp_path: Path) -> Path:
    """A backup with one message of the store, which has a second message and a second session since."""
    append(path, "in the backup")
    made = back_up(path, tmp_path / "backup.db").path
    with SessionDB(path) as db:
        db.append_message(SESSION, "user", "since then")
        db.create_session("new", "cli")
    return made


def append(path: Path, *texts: str) -> None:
    with SessionDB(path) as db:
        for text in texts:
            db.append_message(SESSION, "user", text)


def contents(path: Path) -> list[str]:
    return [content for (content,) in rows(path, "SELECT content FROM messages ORDER BY id")]


def uids(path: Path) -> set[str]:
    return {uid for (uid,) in rows(path, "SELECT uid FROM messages")}


def beside(path: Path) -> set[str]:
    return {each.name for each in path.parent.glob("*") if ".partial" in each.name or "replaced" in each.name}


class TestRestoring:
    def test_restore_replaces_the_store_and_keeps_the_old_file(self, path: Path, backup: Path) -> None:
        kept = restore(path, verify(backup))
        assert contents(path) == ["in the backup"]
        assert kept is not None
        assert kept.name.startswith("state.db.replaced-2")
        assert contents(kept) == ["in the backup", "since then"]
        for each in (path, kept):
            assert_sound(each)
        assert kept.stat().st_nlink == path.stat().st_nlink == 1
        with SessionDB(path) as db:
            assert [hit["content"] for hit in db.get_messages(SESSION)] == ["in the backup"]
            assert len(db.search_messages("backup")) == 1
            db.append_message(SESSION, "user", "and on")

    def test_restored_file_has_its_log_and_permissions_at_once(self, path: Path, backup: Path) -> None:
        path.chmod(0o640)
        restore(path, verify(backup))
        assert path.stat().st_mode & 0o777 == 0o640
        assert rows(path, "PRAGMA journal_mode") == [("wal",)]

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
    def test_file_restored_by_root_keeps_its_owner(self, path: Path, backup: Path) -> None:
        for each in path.parent.glob("state.db*"):
            os.chown(each, 65_534, 65_534)
        restore(path, verify(backup))
        assert {each.stat().st_uid for each in path.parent.glob("state.db*")} == {65_534}

    def test_messages_only_in_the_log_are_kept(self, path: Path, backup: Path) -> None:
        with Child("append", path, "writer", "3") as writer:
            writer.send()
            assert writer.line() == "ready"
            assert [writer.line() for _ in range(3)]
            writer.kill()
            writer.finish()
        kept = restore(path, verify(backup))
        assert kept is not None
        assert {"writer-0", "writer-1", "writer-2"} <= uids(kept)

    def test_old_file_is_copied_where_links_do_not_work(
        self, path: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", refuse)
        kept = restore(path, verify(backup))
        assert kept is not None
        assert contents(kept) == ["in the backup", "since then"]
        assert kept.stat().st_mode & 0o777 == 0o600

    def test_deleted_store_is_restored(self, path: Path, backup: Path) -> None:
        for each in path.parent.glob("state.db*"):
            each.unlink()
        assert restore(path, verify(backup)) is None
        assert contents(path) == ["in the backup"]
        assert path.stat().st_mode & 0o777 == 0o600

    def test_link_to_the_store_stays_a_link(self, path: Path, backup: Path, tmp_path: Path) -> None:
        link = tmp_path / "home" / "state.db"
        link.parent.mkdir()
        link.symlink_to(path)
        kept = restore(link, verify(backup))
        assert link.is_symlink()
        assert link.resolve() == path
        assert kept is not None
        assert kept.parent == path.parent
        assert contents(link) == ["in the backup"]

    def test_backup_of_an_older_version_is_upgraded_at_the_next_open(self, path: Path, tmp_path: Path) -> None:
        build(7, tmp_path / "old.db")
        restore(path, verify(tmp_path / "old.db", is_backup=True))
        assert rows(path, "SELECT version FROM schema_version") == [(7,)]
        with SessionDB(path) as db:
            assert db.schema_version() == 11
            assert db.message_count() > 0

    def test_kept_file_can_be_restored(self, path: Path, backup: Path, tmp_path: Path) -> None:
        kept = restore(path, verify(backup))
        (copy,) = copies_of(path, tmp_path / "no backups")
        assert (copy.path, copy.kind) == (kept, "replaced")
        assert copy.contents is not None
        assert copy.contents[:2] == (2, 2)
        restore(path, verify(copy.path, is_backup=True))
        assert contents(path) == ["in the backup", "since then"]

    def test_spooled_messages_go_into_the_restored_store(self, path: Path, backup: Path) -> None:
        overwrite_messages(path)
        with SessionDB(path) as db, pytest.raises(MessageSpooled):
            db.append_message(SESSION, "user", "waiting")
        restore(path, verify(backup))
        with SessionDB(path) as db:
            assert [each["content"] for each in db.get_messages(SESSION)] == ["in the backup", "waiting"]
        assert Spool(Path(f"{path}.spool")).is_empty()


def overwrite_messages(path: Path) -> None:
    (page,) = rows(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'messages'")[0]
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(os.urandom(4096))


class TestOverDamage:
    def test_a_damaged_file_is_kept_byte_by_byte(self, path: Path, backup: Path) -> None:
        overwrite_messages(path)
        damaged = path.read_bytes()
        assert compare(path, backup).trouble
        kept = restore(path, verify(backup))
        assert kept is not None
        assert kept.read_bytes() == damaged
        assert contents(path) == ["in the backup"]

    def test_unreadable_file_is_kept_with_its_log(self, path: Path, backup: Path) -> None:
        path.write_bytes(b"\0" * 20_000)
        Path(f"{path}-wal").write_bytes(b"what was in the log")
        kept = restore(path, verify(backup))
        assert kept is not None
        assert kept.read_bytes() == b"\0" * 20_000
        assert Path(f"{kept}-wal").read_bytes() == b"what was in the log"
        assert contents(path) == ["in the backup"]
        assert_sound(path)

    def test_log_of_an_emptied_file_is_kept(self, path: Path, backup: Path) -> None:
        path.write_bytes(b"")
        Path(f"{path}-wal").write_bytes(b"what was in the log")
        assert "only its log is left" in compare(path, backup).trouble
        kept = restore(path, verify(backup))
        assert kept is not None
        assert kept.read_bytes() == b""
        assert Path(f"{kept}-wal").read_bytes() == b"what was in the log"
        assert contents(path) == ["in the backup"]


class TestOtherProcesses:
    def test_open_stores_of_other_processes_write_to_the_restored_file(self, path: Path, backup: Path) -> None:
        writers = [Child("append", path, f"writer{number}", "forever") for number in range(3)]
        try:
            for writer in writers:
                assert writer.line() == "ready"
                writer.send()
            acknowledged = {writer.line() for writer in writers for _ in range(10)}
            kept = restore(path, verify(backup))
            wait_until(
                lambda: {uid.split("-")[0] for uid in uids(path)} >= {"writer0", "writer1", "writer2"},
                "a message of each in the restored file",
            )
        finally:
            for writer in writers:
                writer.kill()
        acknowledged |= {uid for writer in writers for uid in writer.lines()}
        for writer in writers:
            writer.__exit__(None, None, None)
        assert kept is not None
        assert contents(path)[0] == "in the backup"
        assert "since then" not in contents(path)
        assert acknowledged <= uids(path) | uids(kept)
        assert uids(path) & uids(kept) == uids(backup)
        for each in (path, kept):
            assert_sound(each)

    def test_foreign_program_with_the_file_open_is_named_and_nothing_changes(self, path: Path, backup: Path) -> None:
        with Child("hold-transaction", path, "20") as stranger:
            assert stranger.line() == "held"
            with pytest.raises(StoreBusy, match=rf"pid {stranger.pid} \(.*tests\.fault\.child") as caught:
                restore(path, verify(backup))
            assert "end that program" in caught.value.hint
            assert beside(path) == set()
        assert contents(path) == ["in the backup", "since then"]
        restore(path, verify(backup))
        assert contents(path) == ["in the backup"]

    def test_restore_waits_for_a_writer_and_gives_up_in_time(self, path: Path, backup: Path) -> None:
        with Child("hold-lock", path) as holder:
            assert holder.line() == "held"
            with pytest.raises(StoreBusy, match="being written by another process"):
                restore(path, verify(backup), timeout_s=0.1)
            assert beside(path) == set()
            holder.send()
            assert holder.line() == "released"
            restore(path, verify(backup))
        assert contents(path) == ["in the backup"]

    def test_restore_waits_for_a_reader_of_the_log(self, path: Path, backup: Path) -> None:
        with running(READ_ON, path) as reader:
            append(path, "after the reader looked")
            with pytest.raises(StoreBusy, match="being read by other processes"):
                restore(path, verify(backup), timeout_s=0.1)
            assert contents(path) == ["in the backup", "since then", "after the reader looked"]
            reader.communicate("go\n", timeout=LIMIT_S)
            kept = restore(path, verify(backup))
        assert kept is not None
        assert contents(kept) == ["in the backup", "since then", "after the reader looked"]
        assert contents(path) == ["in the backup"]

    def test_process_that_exits_late_keeps_the_log_of_the_restored_file(self, path: Path, backup: Path) -> None:
        with running(IDLE, path) as idler:
            kept = restore(path, verify(backup))
            with SessionDB(path) as db:
                db.append_message(SESSION, "user", "into the log")
                log = Path(f"{path}-wal").stat().st_ino
                idler.communicate("go\n", timeout=LIMIT_S)
                assert Path(f"{path}-wal").stat().st_ino == log
                db.append_message(SESSION, "user", "and more")
                with Child("append", path, "other", "1") as other:
                    assert other.line() == "ready"
                    other.send()
                    assert other.line() == "other-0"
                assert db.message_count() == 4
        assert contents(path) == ["in the backup", "into the log", "and more", "other says 0"]
        assert kept is not None
        assert contents(kept) == ["in the backup", "since then", "before it was idle"]
        for each in (path, kept):
            assert_sound(each)


@contextmanager
def running(code: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has printed its first line."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait(LIMIT_S)
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()


class TestRefused:
    @pytest.mark.parametrize("harm", ["bit", "cut", "empty", "zeros", "unsealed page"])
    def test_bad_backup_is_refused(self, path: Path, backup: Path, harm: str) -> None:
        data = backup.read_bytes()
        if harm == "bit":
            backup.write_bytes(data.replace(b"in the backup", b"in the backuq"))
        elif harm == "cut":
            backup.write_bytes(data[: len(data) // 2])
        elif harm == "empty":
            backup.write_bytes(b"")
        elif harm == "zeros":
            backup.write_bytes(b"\0" * len(data))
        else:
            Path(f"{backup}.sha256").unlink()
            overwrite_messages(backup)
        before = path.read_bytes()
        verdict = verify(backup, is_backup=True)
        with pytest.raises((StoreCorrupt, NotADatabase), match="was not restored"):
            restore(path, verdict)
        assert path.read_bytes() == before
        assert beside(path) == set()

    def test_file_of_another_program_is_refused_with_a_hint_to_import_it(self, path: Path, tmp_path: Path) -> None:
        foreign = tmp_path / "foreign.db"
        foreign.write_bytes(gzip.decompress(UPSTREAM.read_bytes()))
        with pytest.raises(NotADatabase, match="another program") as caught:
            restore(path, verify(foreign, is_backup=True))
        assert f"hermes sessions import {foreign}" in caught.value.hint

    def test_replacing_a_file_of_another_program_is_refused(self, path: Path, backup: Path) -> None:
        foreign = gzip.decompress(UPSTREAM.read_bytes())
        path.write_bytes(foreign)
        for attempt in (lambda: compare(path, backup), lambda: restore(path, verify(backup))):
            with pytest.raises(NotADatabase, match="not replaced"):
                attempt()
        assert path.read_bytes() == foreign

    def test_restoring_the_store_from_itself_is_refused(self, path: Path, tmp_path: Path) -> None:
        (tmp_path / "link.db").symlink_to(path)
        for each in (path, tmp_path / "link.db"):
            with pytest.raises(InvalidValue, match="itself"):
                restore(path, verify(each))


class TestComparing:
    def test_comparison_counts_what_would_be_lost(self, path: Path, backup: Path) -> None:
        loss = compare(path, backup)
        assert loss.contents is not None
        assert loss.contents[:2] == (2, 2)
        assert (loss.sessions, loss.messages, loss.trouble) == (1, 1, "")

    def test_message_with_a_reused_id_counts_as_lost(self, path: Path, backup: Path) -> None:
        kept = restore(path, verify(backup))
        append(path, "another second one", "a third one")
        assert kept is not None
        assert compare(path, kept)[1:3] == (0, 2)
        assert compare(kept, path)[1:3] == (1, 1)

    def test_damaged_store_is_named_and_not_the_backup(self, path: Path, backup: Path) -> None:
        overwrite_messages(path)
        loss = compare(path, backup)
        assert loss.contents is None
        assert str(path) in loss.trouble
        assert str(backup) not in loss.trouble

    def test_nothing_is_lost_without_a_store(self, path: Path, backup: Path, tmp_path: Path) -> None:
        assert compare(tmp_path / "missing.db", backup) == Loss(None)
        (tmp_path / "empty.db").touch()
        assert compare(tmp_path / "empty.db", backup) == Loss(None)


def test_second_name_of_a_killed_restore_is_removed(path: Path, backup: Path) -> None:
    left = restoring._keep_old_file(path, with_log=False)
    assert left is not None
    assert left.samefile(path)
    unrelated = Path(shutil.copy(backup, f"{path}.replaced-20200101_000000"))
    kept = restore(path, verify(backup))
    assert not left.exists() or left == kept
    assert kept is not None
    assert kept.stat().st_nlink == 1
    assert unrelated.exists()
