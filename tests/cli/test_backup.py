"""`hermes sessions backup`, `verify` and `restore`."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import pty
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

from hermes.errors import MessageSpooled
from hermes.state.sqlite.backup.backup import back_up_into
from hermes_state import SessionDB
from tests.cli.conftest import COMMAND, TIMEOUT_S, Hermes
from tests.support.plainsql import change, rows

UPSTREAM = Path(__file__).parents[1] / "upgrade" / "files" / "v22.db.gz"


@pytest.fixture
def stored(hermes: Hermes) -> Hermes:
    """A store with two sessions."""
    hermes.store(("a", "cli", "A title", "hello"), ("b", "cli", None, "hello"))
    return hermes


def find_backups(hermes: Hermes) -> list[Path]:
    """Return the backups, oldest first."""
    return sorted((hermes.home / "backups").glob("*.db"), key=lambda each: each.stat().st_mtime_ns)


def sessions(hermes: Hermes) -> set[str]:
    return {item["id"] for item in hermes.json("sessions", "list")["items"]}


def error_of(done: subprocess.CompletedProcess[str]) -> tuple[int, str]:
    """Return the exit code and the code of the JSON error."""
    assert done.stdout == ""
    return done.returncode, json.loads(done.stderr)["error"]["code"]


def at_terminal(hermes: Hermes, answer: str, *args: str) -> tuple[int, str, str]:
    """Run a command at a terminal with a reply; return the exit code, stdout and the text on the terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.write(ours, f"{answer}\n".encode())
    try:
        done = subprocess.run(
            [*COMMAND, *args],
            env=hermes.environment(),
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            encoding="utf-8",
            timeout=TIMEOUT_S,
        )
    finally:
        os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 65_536):
            seen += chunk
    except OSError:  # Linux raises this when the other side is closed
        pass
    finally:
        os.close(ours)
    return done.returncode, done.stdout, seen.decode()


class TestBackup:
    def test_backup_goes_to_the_backup_directory(self, stored: Hermes) -> None:
        done = stored("sessions", "backup")
        (backup,) = find_backups(stored)
        size = backup.stat().st_size / 1024 / 1024
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"{backup}: 2 sessions, 2 messages, {size:.1f} MB\n"
        assert time.strftime("state-%Y%m%d_") in backup.name
        assert (backup.parent.stat().st_mode & 0o777, backup.stat().st_mode & 0o777) == (0o700, 0o600)

    def test_backup_prints_json(self, stored: Hermes) -> None:
        output = stored.json("sessions", "backup")
        (backup,) = find_backups(stored)
        assert output["schema"] == "hermes.backup/1"
        assert output["item"].pop("newest_message") < time.time()
        assert output["item"] == {
            "path": str(backup),
            "size_bytes": backup.stat().st_size,
            "standing": "current",
            "schema_version": 11,
            "sessions": 2,
            "messages": 2,
            "compared": False,
            "findings": [],
            "removed": [],
            "spooled": 0,
        }

    def test_backup_keeps_the_newest_and_deletes_only_old_backups(self, stored: Hermes) -> None:
        directory = stored.home / "backups"
        directory.mkdir()
        old = [directory / f"state-2020010{day}_120000.db" for day in range(1, 6)]
        others = ["state-mine.db", "state.db", "state-20200101_120000.db.old", "other-20200101_120000.db"]
        for name in [*(each.name for each in old), *others]:
            (directory / name).write_text("a backup, or something like it")
        (directory / "state-20190101_120000.db").mkdir()
        (directory / "state-20190102_120000.db").symlink_to(directory / "state-mine.db")
        done = stored("sessions", "backup", "--keep", "3")
        assert done.stderr.splitlines() == [f"Deleted old backup {each}" for each in (old[2], old[1], old[0])]
        assert [each for each in find_backups(stored) if each in old] == old[3:]
        assert all((directory / name).exists() for name in others)
        assert (directory / "state-20190101_120000.db").is_dir()
        assert (directory / "state-20190102_120000.db").is_symlink()

    def test_backup_uses_the_configured_directory_and_count(self, stored: Hermes) -> None:
        (stored.home / "config.yaml").write_text("backup: {directory: elsewhere, keep: 2}")
        for _ in range(3):
            assert stored("sessions", "backup").returncode == 0
        assert len(list((stored.home / "elsewhere").glob("*.db"))) == 2
        assert not find_backups(stored)

    def test_newest_backup_is_kept_if_all_are_of_the_same_second(
        self, stored: Hermes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(time, "strftime", lambda form: "20260101_000000")
        database, directory = stored.home / "state.db", stored.home / "backups"
        made = [back_up_into(database, directory, keep=2).verdict.path for _ in range(4)]
        assert [each.name for each in made] == [f"state-20260101_000000{end}.db" for end in ("", "-2", "-3", "-4")]
        assert [each for each in made if each.exists()] == made[2:]

    def test_backup_goes_to_the_given_file(self, stored: Hermes, tmp_path: Path) -> None:
        target = tmp_path / "50% of what?.db"
        assert stored("sessions", "backup", str(target)).returncode == 0
        assert rows(target, "SELECT count(*) FROM messages") == [(2,)]
        assert not find_backups(stored)
        before = target.read_bytes()
        assert error_of(stored("sessions", "backup", str(target), "--json")) == (4, "conflict")
        assert target.read_bytes() == before
        stored.store(("c", "cli", None, "more"))
        assert stored("sessions", "backup", str(target), "--force").returncode == 0
        assert rows(target, "SELECT count(*) FROM messages") == [(3,)]
        assert stored("sessions", "verify", str(target)).returncode == 0

    @pytest.mark.parametrize("args", [["x.db", "--keep", "3"], ["--force"], ["--keep", "0"], ["a", "b"]])
    def test_conflicting_backup_options_are_a_usage_error(self, stored: Hermes, args: list[str]) -> None:
        assert error_of(stored("sessions", "backup", *args, "--json")) == (2, "usage")

    def test_backup_over_the_database_itself_is_refused(self, stored: Hermes) -> None:
        done = stored("sessions", "backup", str(stored.database), "--force", "--json")
        assert error_of(done) == (2, "invalid_value")
        assert sessions(stored) == {"a", "b"}

    def test_without_a_database_there_is_nothing_to_back_up(self, hermes: Hermes) -> None:
        assert error_of(hermes("sessions", "backup", "--json")) == (3, "not_found")
        assert not hermes.home.exists()

    def test_backup_reports_spooled_messages(self, stored: Hermes) -> None:
        assert stored("sessions", "backup").returncode == 0
        (page,) = rows(stored.database, "SELECT rootpage FROM sqlite_schema WHERE name = 'messages'")[0]
        whole = stored.database.read_bytes()
        with stored.database.open("r+b") as file:
            file.seek((page - 1) * 4096)
            file.write(b"\xff" * 4096)
        with SessionDB(stored.database) as db, pytest.raises(MessageSpooled):
            db.append_message("a", "user", "wait for me")
        assert error_of(stored("sessions", "backup", "--json")) == (1, "store_corrupt")
        assert len(find_backups(stored)) == 1
        stored.database.write_bytes(whole)
        done = stored("sessions", "backup")
        assert done.stderr == "Not included: 1 spooled message not stored yet\n"

    def test_backup_shows_progress_on_a_terminal_only(self, stored: Hermes) -> None:
        code, out, seen = at_terminal(stored, "", "sessions", "backup")
        assert code == 0
        assert "copying [" in seen
        assert "\x1b" not in out
        assert stored("sessions", "backup").stderr == ""

    def test_interrupted_backup_leaves_no_file(self, stored: Hermes) -> None:
        with SessionDB(stored.database) as db:
            db.append_messages("a", [{"role": "user", "content": "x" * 100_000} for _ in range(200)])
        directory = stored.home / "backups"
        process = stored.start("sessions", "backup", stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + TIMEOUT_S
        while not list(directory.glob("*.partial")):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 130
        assert list(directory.iterdir()) == []


class TestVerify:
    def test_verify_reports_a_good_store(self, stored: Hermes) -> None:
        done = stored("sessions", "verify")
        assert (done.returncode, done.stderr) == (0, "")
        first, second = done.stdout.splitlines()
        assert first == f"{stored.database}: ok"
        assert second.startswith("  2 sessions, 2 messages, newest message 30m ago, ")
        assert second.endswith(", schema 11")

    @pytest.mark.parametrize("options", [[], ["--quick"]])
    def test_verify_prints_json(self, stored: Hermes, options: list[str]) -> None:
        output = stored.json("sessions", "verify", *options)
        assert output["schema"] == "hermes.verified/1"
        assert output["item"].items() >= {"good": True, "quick": bool(options), "findings": [], "messages": 2}.items()

    def test_verify_shows_each_problem_with_a_hint(self, stored: Hermes) -> None:
        change(stored.database, "UPDATE sessions SET message_count = 7 WHERE id = 'a'")
        done = stored("sessions", "verify")
        assert done.returncode == 1
        heading, _, finding, hint = done.stdout.splitlines()
        assert heading == f"{stored.database}: problems found"
        assert finding.startswith("- the counts and previews of 1 session are wrong")
        (item,) = json.loads(stored("sessions", "verify", "--json").stdout)["item"]["findings"]
        assert (item["code"], item["kind"], f"  {item['hint']}") == ("counters", "drift", hint)
        assert item["hint"]

    def test_verify_detects_a_changed_backup(self, stored: Hermes) -> None:
        stored("sessions", "backup")
        (backup,) = find_backups(stored)
        assert stored("sessions", "verify", str(backup)).returncode == 0
        backup.write_bytes(backup.read_bytes().replace(b"hello", b"hallo"))
        done = stored("sessions", "verify", str(backup), "--quick")
        assert done.returncode == 1
        assert "- it has changed since it was made: its checksum is different\n" in done.stdout
        assert "`hermes sessions backup` makes a new one" in done.stdout

    def test_verify_says_why_it_compared_nothing(self, stored: Hermes) -> None:
        assert stored("sessions", "backup").returncode == 0
        (backup,) = find_backups(stored)
        change(backup, "CREATE TABLE another (one)")
        lines = stored("sessions", "verify", str(backup)).stdout.splitlines()
        assert lines[-1] == "  Not compared: the counts and the search index, because the file is not intact."
        backup.with_name(f"{backup.name}.sha256").unlink()
        done = stored("sessions", "verify", str(backup))
        assert (done.returncode, done.stdout.splitlines()[0]) == (0, f"{backup}: ok")
        assert "because an older version made the file, or another program has changed it." in done.stdout
        assert "Not compared" not in stored("sessions", "verify", str(backup), "--quick").stdout

    def test_verify_of_a_missing_file_is_not_found(self, stored: Hermes) -> None:
        assert error_of(stored("sessions", "verify", "nothing.db", "--json")) == (3, "not_found")

    def test_verify_of_a_missing_store_is_not_found(self, hermes: Hermes) -> None:
        assert error_of(hermes("sessions", "verify", "--json")) == (3, "not_found")
        assert not hermes.home.exists()


class TestListOfBackups:
    def test_backups_are_listed_newest_first(self, stored: Hermes) -> None:
        stored("sessions", "backup")
        stored.store(("c", "cli", None, "more"))
        stored("sessions", "backup")
        older, newer = find_backups(stored)
        done = stored("sessions", "restore", COLUMNS="200")
        header, _, first, second = done.stdout.splitlines()
        assert header.split() == ["Made", "Sessions", "Messages", "Newest", "Size", "Kind", "File"]
        assert first.split()[2:4] == ["3", "3"]
        assert first.endswith(f"backup  {newer}")
        assert second.endswith(f"backup  {older}")
        output = stored.json("sessions", "restore")
        assert (output["schema"], output["total"], output["next"]) == ("hermes.backups/1", 2, None)
        assert [(item["path"], item["sessions"]) for item in output["items"]] == [(str(newer), 3), (str(older), 2)]

    def test_unreadable_backup_is_listed_with_its_error(self, stored: Hermes) -> None:
        stored("sessions", "backup")
        find_backups(stored)[0].write_text("no database")
        (item,) = stored.json("sessions", "restore")["items"]
        assert item["sessions"] is None
        assert "is not an SQLite database" in item["trouble"]
        assert "?" in stored("sessions", "restore").stdout

    def test_missing_backups_are_reported(self, stored: Hermes) -> None:
        done = stored("sessions", "restore")
        assert (done.returncode, done.stdout) == (0, "")
        assert "Create one with `hermes sessions backup`" in done.stderr


class TestRestore:
    @pytest.fixture
    def changed(self, stored: Hermes) -> Hermes:
        """A store with a third session that the backup lacks, and without the first."""
        stored("sessions", "backup")
        with SessionDB(stored.database) as db:
            db.delete_session("a")
        stored.store(("c", "cli", None, "more"))
        return stored

    def test_restore_shows_the_losses_and_asks(self, changed: Hermes) -> None:
        (backup,) = find_backups(changed)
        code, out, seen = at_terminal(changed, "n", "sessions", "restore", backup.name)
        assert (code, out) == (0, "")
        assert "Not in the backup, so lost: 1 session and 1 message." in seen
        assert "Restore this backup? [y/N]" in seen
        assert sessions(changed) == {"b", "c"}
        code, out, seen = at_terminal(changed, "y", "sessions", "restore", backup.name)
        assert (code, out) == (0, f"{changed.database}: 2 sessions, 2 messages restored\n")
        assert sessions(changed) == {"a", "b"}

    def test_restore_without_a_terminal_needs_yes(self, changed: Hermes) -> None:
        (backup,) = find_backups(changed)
        assert error_of(changed("sessions", "restore", str(backup), "--json"))[0] == 2
        assert sessions(changed) == {"b", "c"}
        output = changed.json("sessions", "restore", str(backup), "--yes")
        assert output["schema"] == "hermes.restored/1"
        kept = Path(output["item"]["kept"])
        assert output["item"].items() >= {"sessions": 2, "lost_sessions": 1, "lost_messages": 1, "spooled": 0}.items()
        assert rows(kept, "SELECT id FROM sessions ORDER BY id") == [("b",), ("c",)]
        assert sessions(changed) == {"a", "b"}
        assert {item["kind"] for item in changed.json("sessions", "restore")["items"]} == {"backup", "replaced"}

    def test_damaged_backup_is_refused_before_the_question(self, changed: Hermes) -> None:
        (backup,) = find_backups(changed)
        backup.write_bytes(backup.read_bytes()[:-5_000])
        assert error_of(changed("sessions", "restore", str(backup), "--yes", "--json")) == (1, "store_corrupt")
        code, out, seen = at_terminal(changed, "y", "sessions", "restore", str(backup))
        assert (code, out) == (1, "")
        assert "Restore this backup?" not in seen
        assert sessions(changed) == {"b", "c"}

    def test_restore_of_a_foreign_file_is_refused(self, changed: Hermes, tmp_path: Path) -> None:
        foreign = tmp_path / "foreign.db"
        foreign.write_bytes(gzip.decompress(UPSTREAM.read_bytes()))
        done = changed("sessions", "restore", str(foreign), "--yes")
        assert done.returncode == 1
        assert "hermes sessions import" in done.stderr

    def test_restore_replaces_a_damaged_store(self, changed: Hermes) -> None:
        changed.database.write_bytes(b"\0" * 9_000)
        done = changed("sessions", "restore", str(find_backups(changed)[0]), "--yes")
        assert done.returncode == 0
        assert "The current database cannot be read: " in done.stderr
        assert sessions(changed) == {"a", "b"}

    def test_restore_recreates_a_missing_store(self, changed: Hermes) -> None:
        for each in changed.home.glob("state.db*"):
            each.unlink()
        done = changed("sessions", "restore", str(find_backups(changed)[0]), "--yes")
        assert (done.returncode, done.stdout) == (0, f"{changed.database}: 2 sessions, 2 messages restored\n")
        assert f"{changed.database} has no sessions now." in done.stderr
        assert sessions(changed) == {"a", "b"}

    def test_restore_of_a_missing_file_is_not_found(self, changed: Hermes) -> None:
        assert error_of(changed("sessions", "restore", "nothing.db", "--yes", "--json")) == (3, "not_found")
