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
from hermes_state import SessionDB
from tests.cli.conftest import COMMAND, TIMEOUT_S, Hermes
from tests.support.plainsql import change, rows

UPSTREAM = Path(__file__).parents[1] / "upgrade" / "files" / "v22.db.gz"


@pytest.fixture
def stored(hermes: Hermes) -> Hermes:
    """A store with two sessions."""
    hermes.store(("a", "cli", "A title", "hello"), ("b", "cli", None, "hello"))
    return hermes


def made(hermes: Hermes) -> list[Path]:
    """The backups there are, the oldest first."""
    return sorted((hermes.home / "backups").glob("*.db"), key=lambda each: each.stat().st_mtime_ns)


def sessions(hermes: Hermes) -> set[str]:
    return {item["id"] for item in hermes.json("sessions", "list")["items"]}


def error_of(done: subprocess.CompletedProcess[str]) -> tuple[int, str]:
    """The exit code and the code of the error."""
    assert done.stdout == ""
    return done.returncode, json.loads(done.stderr)["error"]["code"]


def at_terminal(hermes: Hermes, answer: str, *args: str) -> tuple[int, str, str]:
    """Run a command for a person who answers: the exit code, what it wrote to stdout, and what the person saw."""
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
    except OSError:  # Linux says so when the other side is closed
        pass
    finally:
        os.close(ours)
    return done.returncode, done.stdout, seen.decode()


class TestBackup:
    def test_goes_into_the_directory_of_backups(self, stored: Hermes) -> None:
        done = stored("sessions", "backup")
        (backup,) = made(stored)
        size = backup.stat().st_size / 1024 / 1024
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"{backup}: 2 sessions, 2 messages, {size:.1f} MB\n"
        assert time.strftime("state-%Y%m%d_") in backup.name
        assert (backup.parent.stat().st_mode & 0o777, backup.stat().st_mode & 0o777) == (0o700, 0o600)

    def test_for_a_script(self, stored: Hermes) -> None:
        told = stored.json("sessions", "backup")
        (backup,) = made(stored)
        assert told["schema"] == "hermes.backup/1"
        assert told["item"].pop("newest_message") < time.time()
        assert told["item"] == {
            "path": str(backup),
            "size_bytes": backup.stat().st_size,
            "standing": "current",
            "schema_version": 11,
            "sessions": 2,
            "messages": 2,
            "findings": [],
            "removed": [],
            "spooled": 0,
        }

    def test_keeps_the_newest_and_touches_nothing_else(self, stored: Hermes) -> None:
        directory = stored.home / "backups"
        directory.mkdir()
        old = [directory / f"state-2020010{day}_120000.db" for day in range(1, 6)]
        others = ["state-mine.db", "state.db", "state-20200101_120000.db.old", "other-20200101_120000.db"]
        for name in [*(each.name for each in old), *others]:
            (directory / name).write_text("a backup, or something like it")
        (directory / "state-20190101_120000.db").mkdir()
        (directory / "state-20190102_120000.db").symlink_to(directory / "state-mine.db")
        done = stored("sessions", "backup", "--keep", "3")
        assert done.stderr.splitlines() == [f"Removed the older {each}" for each in (old[2], old[1], old[0])]
        assert [each for each in made(stored) if each in old] == old[3:]
        assert all((directory / name).exists() for name in others)
        assert (directory / "state-20190101_120000.db").is_dir()
        assert (directory / "state-20190102_120000.db").is_symlink()

    def test_the_configuration_says_where_and_how_many(self, stored: Hermes) -> None:
        (stored.home / "config.yaml").write_text("backup: {directory: elsewhere, keep: 2}")
        for _ in range(3):
            assert stored("sessions", "backup").returncode == 0
        assert len(list((stored.home / "elsewhere").glob("*.db"))) == 2
        assert not made(stored)

    def test_goes_exactly_where_it_is_told_to(self, stored: Hermes, tmp_path: Path) -> None:
        target = tmp_path / "50% of what?.db"
        assert stored("sessions", "backup", str(target)).returncode == 0
        assert rows(target, "SELECT count(*) FROM messages") == [(2,)]
        assert not made(stored)
        before = target.read_bytes()
        assert error_of(stored("sessions", "backup", str(target), "--json")) == (4, "conflict")
        assert target.read_bytes() == before
        stored.store(("c", "cli", None, "more"))
        assert stored("sessions", "backup", str(target), "--force").returncode == 0
        assert rows(target, "SELECT count(*) FROM messages") == [(3,)]
        assert stored("sessions", "verify", str(target)).returncode == 0

    @pytest.mark.parametrize("args", [["x.db", "--keep", "3"], ["--force"], ["--keep", "0"], ["a", "b"]])
    def test_options_that_do_not_go_together_are_not_understood(self, stored: Hermes, args: list[str]) -> None:
        assert error_of(stored("sessions", "backup", *args, "--json")) == (2, "usage")

    def test_the_database_itself_is_no_place_for_it(self, stored: Hermes) -> None:
        done = stored("sessions", "backup", str(stored.database), "--force", "--json")
        assert error_of(done) == (2, "invalid_value")
        assert sessions(stored) == {"a", "b"}

    def test_without_a_database_there_is_nothing_to_back_up(self, hermes: Hermes) -> None:
        assert error_of(hermes("sessions", "backup", "--json")) == (3, "not_found")
        assert not hermes.home.exists()

    def test_messages_that_wait_to_be_stored_are_mentioned(self, stored: Hermes) -> None:
        assert stored("sessions", "backup").returncode == 0
        (page,) = rows(stored.database, "SELECT rootpage FROM sqlite_schema WHERE name = 'messages'")[0]
        whole = stored.database.read_bytes()
        with stored.database.open("r+b") as file:
            file.seek((page - 1) * 4096)
            file.write(b"\xff" * 4096)
        with SessionDB(stored.database) as db, pytest.raises(MessageSpooled):
            db.append_message("a", "user", "wait for me")
        assert error_of(stored("sessions", "backup", "--json")) == (1, "store_corrupt")
        assert len(made(stored)) == 1
        stored.database.write_bytes(whole)
        done = stored("sessions", "backup")
        assert done.stderr == "1 message could not be stored yet and so cannot be in it\n"

    def test_a_person_sees_how_far_it_is_and_a_pipe_does_not(self, stored: Hermes) -> None:
        code, out, seen = at_terminal(stored, "", "sessions", "backup")
        assert code == 0
        assert "copying [" in seen
        assert "\x1b" not in out
        assert stored("sessions", "backup").stderr == ""

    def test_it_can_be_interrupted(self, stored: Hermes) -> None:
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
    def test_a_store_that_is_good(self, stored: Hermes) -> None:
        done = stored("sessions", "verify")
        assert (done.returncode, done.stderr) == (0, "")
        first, second = done.stdout.splitlines()
        assert first == f"{stored.database}: good"
        assert second.startswith("  2 sessions, 2 messages, the newest 30m ago, ")
        assert second.endswith(", schema 11")

    @pytest.mark.parametrize("options", [[], ["--quick"]])
    def test_for_a_script(self, stored: Hermes, options: list[str]) -> None:
        told = stored.json("sessions", "verify", *options)
        assert told["schema"] == "hermes.verified/1"
        assert told["item"].items() >= {"good": True, "quick": bool(options), "findings": [], "messages": 2}.items()

    def test_what_is_wrong_stands_on_a_line_with_what_to_do(self, stored: Hermes) -> None:
        change(stored.database, "UPDATE sessions SET message_count = 7 WHERE id = 'a'")
        done = stored("sessions", "verify")
        assert done.returncode == 1
        heading, _, finding, hint = done.stdout.splitlines()
        assert heading == f"{stored.database}: not good"
        assert finding.startswith("- the counts and previews of 1 session are not right")
        (item,) = json.loads(stored("sessions", "verify", "--json").stdout)["item"]["findings"]
        assert (item["code"], item["kind"], f"  {item['hint']}") == ("counters", "drift", hint)
        assert item["hint"]

    def test_a_backup(self, stored: Hermes) -> None:
        stored("sessions", "backup")
        (backup,) = made(stored)
        assert stored("sessions", "verify", str(backup)).returncode == 0
        backup.write_bytes(backup.read_bytes().replace(b"hello", b"hallo"))
        done = stored("sessions", "verify", str(backup), "--quick")
        assert done.returncode == 1
        assert "- it is not what it was when it was made: its checksum is another\n" in done.stdout
        assert "`hermes sessions backup` makes a new one" in done.stdout

    def test_a_file_that_is_not_there(self, stored: Hermes) -> None:
        assert error_of(stored("sessions", "verify", "nothing.db", "--json")) == (3, "not_found")

    def test_a_store_that_is_not_there(self, hermes: Hermes) -> None:
        assert error_of(hermes("sessions", "verify", "--json")) == (3, "not_found")
        assert not hermes.home.exists()


class TestListOfBackups:
    def test_the_newest_first(self, stored: Hermes) -> None:
        stored("sessions", "backup")
        stored.store(("c", "cli", None, "more"))
        stored("sessions", "backup")
        older, newer = made(stored)
        done = stored("sessions", "restore", COLUMNS="200")
        header, _, first, second = done.stdout.splitlines()
        assert header.split() == ["Made", "Sessions", "Messages", "Newest", "Size", "Kind", "File"]
        assert first.split()[2:4] == ["3", "3"]
        assert first.endswith(f"backup  {newer}")
        assert second.endswith(f"backup  {older}")
        told = stored.json("sessions", "restore")
        assert (told["schema"], told["total"], told["next"]) == ("hermes.backups/1", 2, None)
        assert [(item["path"], item["sessions"]) for item in told["items"]] == [(str(newer), 3), (str(older), 2)]

    def test_what_cannot_be_read_is_listed_as_that(self, stored: Hermes) -> None:
        stored("sessions", "backup")
        made(stored)[0].write_text("no database")
        (item,) = stored.json("sessions", "restore")["items"]
        assert item["sessions"] is None
        assert "is not an SQLite database" in item["trouble"]
        assert "?" in stored("sessions", "restore").stdout

    def test_none(self, stored: Hermes) -> None:
        done = stored("sessions", "restore")
        assert (done.returncode, done.stdout) == (0, "")
        assert "`hermes sessions backup` makes one" in done.stderr


class TestRestore:
    @pytest.fixture
    def changed(self, stored: Hermes) -> Hermes:
        """The store has a third session that the backup has not, and no first."""
        stored("sessions", "backup")
        with SessionDB(stored.database) as db:
            db.delete_session("a")
        stored.store(("c", "cli", None, "more"))
        return stored

    def test_shows_what_would_be_lost_and_asks(self, changed: Hermes) -> None:
        (backup,) = made(changed)
        code, out, seen = at_terminal(changed, "n", "sessions", "restore", backup.name)
        assert (code, out) == (0, "")
        assert "There now, but not in the backup: 1 session and 1 message." in seen
        assert "Restore it? [y/N]" in seen
        assert sessions(changed) == {"b", "c"}
        code, out, seen = at_terminal(changed, "y", "sessions", "restore", backup.name)
        assert (code, out) == (0, f"{changed.database}: 2 sessions, 2 messages restored\n")
        assert sessions(changed) == {"a", "b"}

    def test_with_nobody_to_ask_yes_has_to_be_said(self, changed: Hermes) -> None:
        (backup,) = made(changed)
        assert error_of(changed("sessions", "restore", str(backup), "--json"))[0] == 2
        assert sessions(changed) == {"b", "c"}
        told = changed.json("sessions", "restore", str(backup), "--yes")
        assert told["schema"] == "hermes.restored/1"
        kept = Path(told["item"]["kept"])
        assert told["item"].items() >= {"sessions": 2, "lost_sessions": 1, "lost_messages": 1, "spooled": 0}.items()
        assert rows(kept, "SELECT id FROM sessions ORDER BY id") == [("b",), ("c",)]
        assert sessions(changed) == {"a", "b"}
        assert {item["kind"] for item in changed.json("sessions", "restore")["items"]} == {"backup", "replaced"}

    def test_a_bad_backup_is_refused_before_anything_is_asked(self, changed: Hermes) -> None:
        (backup,) = made(changed)
        backup.write_bytes(backup.read_bytes()[:-5_000])
        assert error_of(changed("sessions", "restore", str(backup), "--yes", "--json")) == (1, "store_corrupt")
        code, out, seen = at_terminal(changed, "y", "sessions", "restore", str(backup))
        assert (code, out) == (1, "")
        assert "Restore it?" not in seen
        assert sessions(changed) == {"b", "c"}

    def test_a_file_of_another_program_is_refused(self, changed: Hermes, tmp_path: Path) -> None:
        foreign = tmp_path / "foreign.db"
        foreign.write_bytes(gzip.decompress(UPSTREAM.read_bytes()))
        done = changed("sessions", "restore", str(foreign), "--yes")
        assert done.returncode == 1
        assert "hermes sessions import" in done.stderr

    def test_a_damaged_store_is_put_right(self, changed: Hermes) -> None:
        changed.database.write_bytes(b"\0" * 9_000)
        done = changed("sessions", "restore", str(made(changed)[0]), "--yes")
        assert done.returncode == 0
        assert "What is there now cannot be read: " in done.stderr
        assert sessions(changed) == {"a", "b"}

    def test_a_store_that_is_gone_comes_back(self, changed: Hermes) -> None:
        for each in changed.home.glob("state.db*"):
            each.unlink()
        done = changed("sessions", "restore", str(made(changed)[0]), "--yes")
        assert (done.returncode, done.stdout) == (0, f"{changed.database}: 2 sessions, 2 messages restored\n")
        assert f"There is nothing in {changed.database} now." in done.stderr
        assert sessions(changed) == {"a", "b"}

    def test_a_file_that_is_not_there(self, changed: Hermes) -> None:
        assert error_of(changed("sessions", "restore", "nothing.db", "--yes", "--json")) == (3, "not_found")
