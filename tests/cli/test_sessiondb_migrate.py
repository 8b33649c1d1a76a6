"""`hermes sessiondb migrate`."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes.cli.app import run
from hermes.cli.sessiondb import migrate
from hermes.cli.sessiondb.speed import SpeedReporter, format_speed
from hermes.state.import_export import message_pages
from hermes.state.transfer.migration import Migration
from hermes_state import SessionDB
from tests.cli.conftest import COMMAND, TIMEOUT_S, Hermes
from tests.support.plainsql import change
from tests.support.schemas import empty_schema
from tests.upgrade.checks import digest

SECRET = "hunter2-and-more"


@pytest.fixture
def full_home(hermes: Hermes) -> Hermes:
    """A home with three sessions."""
    hermes.store(("one", "cli", "First", "hello"), ("two", "telegram", None, "docker"), ("three", "cli", None, "words"))
    return hermes


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A file that does not exist yet."""
    return tmp_path / "target.db"


@pytest.fixture
def dsn(tmp_path: Path) -> Iterator[str]:
    """A DSN of a server without a store."""
    with empty_schema(tmp_path) as dsn:
        yield dsn


def begin(origin: Path, target: Path) -> None:
    """Start a migration and leave it unfinished."""
    with SessionDB(origin, read_only=True) as store, SessionDB(target) as receiver:
        Migration(store, receiver).begin(resume=False)


class TestMigrate:
    def test_migrate_prints_one_summary_line(self, full_home: Hermes, target: Path) -> None:
        done = full_home("sessiondb", "migrate", "--to", str(target))
        assert done.returncode == 0, done.stderr
        assert re.fullmatch(r"Migrated 3 sessions, 3 messages, 3 FTS entries in \d+\.\ds\n", done.stdout)
        assert re.search(r"The search index took \d+\.\ds\.", done.stderr)

    def test_migrate_does_not_change_the_origin(self, full_home: Hermes, target: Path) -> None:
        before = digest(full_home.database)
        full_home("sessiondb", "migrate", "--to", str(target), "--verify")
        assert digest(full_home.database) == before

    def test_migrate_to_the_configured_server_and_back(self, full_home: Hermes, dsn: str, target: Path) -> None:
        (full_home.home / "config.yaml").write_text(f"sessiondb:\n  provider: postgresql\n  dsn: {dsn}\n")
        (full_home.home / "config.yaml").chmod(0o600)
        there = full_home.json("sessiondb", "migrate", "--verify")
        assert there["schema"] == "hermes.migrated/1"
        assert (there["item"]["sessions"], there["item"]["messages"], there["item"]["fts_entries"]) == (3, 3, 3)
        assert (there["item"]["differences"], there["item"]["changing"]) == ([], [])
        assert there["item"]["from"] == str(full_home.database)
        assert len(full_home.json("sessions", "list")["items"]) == 3
        back = full_home("sessiondb", "migrate", "--from", dsn, "--to", str(target), "--verify")
        assert back.stdout.startswith("Migrated 3 sessions, 3 messages, 3 FTS entries in ")
        assert "Verified: every session has the same hash in both databases." in back.stderr

    def test_second_migration_copies_nothing(self, full_home: Hermes, target: Path) -> None:
        full_home("sessiondb", "migrate", "--to", str(target))
        done = full_home("sessiondb", "migrate", "--to", str(target), "--verify")
        assert done.stdout.startswith("Migrated 0 sessions, 0 messages, 0 FTS entries in ")
        assert done.returncode == 0

    def test_verify_lists_differing_sessions(self, full_home: Hermes, target: Path) -> None:
        full_home("sessiondb", "migrate", "--to", str(target))
        change(target, "UPDATE messages SET content = 'other' WHERE session_id = 'two'")
        done = full_home("sessiondb", "migrate", "--to", str(target), "--verify")
        assert done.returncode == 1
        assert "Mismatch: two differs in 1 message" in done.stderr
        assert "1 session in the target differs" in done.stderr

    def test_migrate_shows_progress_on_a_terminal(self, full_home: Hermes, target: Path) -> None:
        shown = on_stderr(full_home, "sessiondb", "migrate", "--to", str(target))
        assert "messages" in shown
        assert "100%" in shown


class TestDryRun:
    def test_dry_run_creates_no_target(self, full_home: Hermes, target: Path) -> None:
        done = full_home("sessiondb", "migrate", "--to", str(target), "--dry-run")
        assert (done.returncode, done.stdout) == (0, "Would migrate 3 sessions, 3 messages.\n")
        assert not target.exists()

    def test_dry_run_counts_the_target(self, full_home: Hermes, target: Path) -> None:
        with SessionDB(target) as store:
            store.create_session("mine", "cli")
        found = full_home.json("sessiondb", "migrate", "--to", str(target), "--dry-run")["item"]
        assert found == {"dry_run": True, "sessions": 3, "messages": 3, "target": {"sessions": 1, "messages": 0}}


class TestUnfinished:
    def test_unfinished_migration_is_refused_without_resume(self, full_home: Hermes, target: Path) -> None:
        begin(full_home.database, target)
        done = full_home("sessiondb", "migrate", "--to", str(target))
        assert done.returncode == 4
        assert "--resume" in done.stderr

    def test_unfinished_migration_continues_with_resume(self, full_home: Hermes, target: Path) -> None:
        begin(full_home.database, target)
        done = full_home("sessiondb", "migrate", "--to", str(target), "--resume")
        assert done.stdout.startswith("Migrated 3 sessions, 3 messages, 3 FTS entries in ")

    def test_interrupted_migration_shows_how_to_resume(
        self, full_home: Hermes, target: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("HERMES_HOME", str(full_home.home))
        monkeypatch.setattr(message_pages, "PAGE_MESSAGES", 1)
        monkeypatch.setattr(migrate, "progress", lambda: interrupt_after(after=3))
        assert run(["sessiondb", "migrate", "--to", str(target)]) == 130
        notice = capfd.readouterr().err
        assert "Interrupted after 3 sessions and 2 messages." in notice
        assert f"hermes sessiondb migrate --to {target} --resume" in notice
        done = full_home("sessiondb", "migrate", "--to", str(target), "--resume", "--verify")
        assert done.stdout.startswith("Migrated 3 sessions, 3 messages, 3 FTS entries in ")

    def test_sessions_that_keep_changing_are_listed(
        self, full_home: Hermes, target: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("HERMES_HOME", str(full_home.home))
        with SessionDB(full_home.database) as live:

            @contextmanager
            def writing() -> Iterator[Callable[[str, int, int], None]]:
                yield lambda what, done, total: None if what != "messages" else write()

            def write() -> None:
                live.append_message("two", "user", "and on")

            monkeypatch.setattr(migrate, "progress", writing)
            assert run(["sessiondb", "migrate", "--to", str(target)]) == 0
        assert "1 session kept changing: two." in (notice := capfd.readouterr().err)
        assert f"hermes sessiondb migrate --to {target} --resume" in notice


@contextmanager
def interrupt_after(after: int) -> Iterator[Callable[[str, int, int], None]]:
    """Raise KeyboardInterrupt after a number of steps."""
    reports = []

    def count_reports(*report: object) -> None:
        reports.append(report)
        if len(reports) == after:
            raise KeyboardInterrupt

    yield count_reports


class TestPlaces:
    def test_migrate_without_a_target_is_a_usage_error(self, full_home: Hermes) -> None:
        done = full_home("sessiondb", "migrate")
        assert done.returncode == 2
        assert "--to" in done.stderr

    def test_migrate_from_a_missing_file_is_not_found(self, full_home: Hermes, target: Path) -> None:
        done = full_home("sessiondb", "migrate", "--from", str(target), "--to", str(full_home.database))
        assert done.returncode == 3

    def test_migrate_to_the_same_database_is_refused(self, full_home: Hermes, tmp_path: Path) -> None:
        (tmp_path / "link.db").symlink_to(full_home.database)
        done = full_home("sessiondb", "migrate", "--to", str(tmp_path / "link.db"))
        assert done.returncode == 2
        assert "the same database" in done.stderr

    @pytest.mark.parametrize(
        "address",
        [
            f"redis://u:{SECRET}@host/0",
            f"postgresql://u:{SECRET}@/db?host=/nowhere",
            f"host=/nowhere user=u password={SECRET}",
        ],
    )
    def test_a_password_is_never_shown(self, full_home: Hermes, address: str) -> None:
        done = full_home("sessiondb", "migrate", "--to", address)
        assert done.returncode in (1, 2)
        assert SECRET not in done.stdout + done.stderr

    @pytest.mark.parametrize(
        "address",
        [
            f"mysql://u:{SECRET}@127.0.0.1:1/d",
            f"mysql://u:${{NAME}}{SECRET}@127.0.0.1:1/d",
            f"mysql://u:${{NAME:-{SECRET}}}@127.0.0.1:1/d",
            f"postgresql://u:p/{SECRET}@127.0.0.1:1/d",
            f"postgresql://127.0.0.1:1/d?user=u&password={SECRET}",
            f"postgresql://127.0.0.1:1/d?sslpassword={SECRET}",
            f"mysql://u@127.0.0.1:1/d?ssl_key_password={SECRET}",
            f"host=127.0.0.1 port=1 user=u password = {SECRET}",
            f"password={SECRET} host=127.0.0.1 port=1",
        ],
    )
    @pytest.mark.parametrize("option", ["--from", "--to"])
    def test_password_in_the_command_is_refused(self, full_home: Hermes, option: str, address: str) -> None:
        done = full_home("sessiondb", "migrate", option, address)
        assert done.returncode != 0
        assert "the DSN contains a password" in done.stderr
        assert SECRET not in done.stdout + done.stderr

    def test_password_is_read_from_the_env_file(self, full_home: Hermes, tmp_path: Path, target: Path) -> None:
        (full_home.home / ".env").write_text(f"DB_PASSWORD={SECRET}\n")
        (full_home.home / ".env").chmod(0o600)
        with empty_schema(tmp_path) as dsn:
            joiner = "&" if "?" in dsn else "?"
            address = f"{dsn}{joiner}password=${{DB_PASSWORD}}" if "://" in dsn else f"{dsn} password=${{DB_PASSWORD}}"
            done = full_home("sessiondb", "migrate", "--to", address)
            assert done.returncode == 0, done.stderr
            assert full_home("sessiondb", "migrate", "--from", address, "--to", str(target)).returncode == 0
        assert SECRET not in done.stdout + done.stderr

    def test_unset_variable_is_named(self, full_home: Hermes) -> None:
        done = full_home("sessiondb", "migrate", "--to", "mysql://u:${NO_SUCH_NAME}@127.0.0.1:1/d")
        assert done.returncode != 0
        assert "NO_SUCH_NAME" in done.stderr

    def test_migrate_between_schemas_of_one_database(self, full_home: Hermes, tmp_path: Path) -> None:
        with empty_schema(tmp_path / "one") as one, empty_schema(tmp_path / "two") as two:
            assert full_home("sessiondb", "migrate", "--to", one).returncode == 0
            done = full_home("sessiondb", "migrate", "--from", one, "--to", two, "--verify")
        assert done.stdout.startswith("Migrated 3 sessions, 3 messages, 3 FTS entries in "), done.stderr

    def test_migrate_json_error_is_an_object(self, full_home: Hermes) -> None:
        done = full_home("sessiondb", "migrate", "--to", "redis://x", "--json")
        assert json.loads(done.stderr)["error"]["code"] == "invalid_value"


class TestPace:
    def test_speed_shows_rate_and_remaining_time(self) -> None:
        now = [10.0]
        reports: list[tuple[str, int, int]] = []
        pace = SpeedReporter(lambda *report: reports.append(report), lambda: now[0])
        pace("messages", 5_000, 50_000)
        now[0] += 2
        pace("messages", 25_000, 50_000)
        assert reports == [("messages", 5_000, 50_000), ("messages 10,000/s, 2 s left", 25_000, 50_000)]

    def test_speed_restarts_with_other_work(self) -> None:
        now = [0.0]
        reports: list[str] = []
        pace = SpeedReporter(lambda what, *_: reports.append(what), lambda: now[0])
        pace("messages", 0, 10)
        now[0] = 5
        pace("indexing", 0, 10)
        assert reports == ["messages", "indexing"]

    @pytest.mark.parametrize(("done", "left", "seconds"), [(0, 10, 5), (10, 10, 0.1)])
    def test_speed_is_not_shown_too_early(self, done: int, left: int, seconds: float) -> None:
        assert format_speed(done, left, seconds) == ""


def on_stderr(hermes: Hermes, *args: str) -> str:
    """Run a command with a terminal as stderr and return what it wrote there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*COMMAND, *args], env=hermes.environment(), stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    written = b""
    try:
        while chunk := _read(ours):
            written += chunk
        assert process.wait(TIMEOUT_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return written.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux raises this when the other side is closed
        return b""
