"""`hermes sessions repair`."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_state import SessionDB
from tests.cli.conftest import COMMAND, TIMEOUT_S, Hermes
from tests.cli.test_backup import at_terminal
from tests.fault.use_as_guest import NOBODY
from tests.support.pagemap import overwrite, page_map
from tests.support.plainsql import rows

AS_GUEST = f"""
import os, sys
from hermes.cli.app import run
check = ["sessions", "repair", "--check"]
run(check)  # whatever is needed has to be loaded before nothing may be read any more
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
os.environ["HERMES_HOME"] = sys.argv[1]
sys.exit(run(check))
"""
KEYS = {"path", "condition", "damage", "problems", "salvaged", "kept_as", "spooled"}


@pytest.fixture
def damaged(hermes: Hermes) -> Hermes:
    """A store with a page of messages that cannot be read."""
    with SessionDB(hermes.database) as db:
        for name in ("a", "b\x1b[31m"):
            db.create_session(name, "cli")
            db.append_messages(name, [{"role": "user", "content": f"word{i} " + "x" * 300} for i in range(60)])
    pages = page_map(hermes.database, "messages")
    overwrite(hermes.database, pages.pages("leaf")[-2], bytes(4_096))
    return hermes


def beside(hermes: Hermes) -> list[str]:
    return sorted(each.name for each in hermes.home.iterdir() if each.suffix not in (".lock", ".gate"))


def test_healthy_store_is_unchanged(hermes: Hermes) -> None:
    hermes.store(("a", "cli", None, "hello"))
    before = hermes.database.read_bytes()
    for args in ((), ("--check",), ("--yes",)):
        done = hermes("sessions", "repair", *args)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{hermes.database} is healthy.\n", "")
    assert hermes.database.read_bytes() == before
    assert beside(hermes) == ["state.db"]


class TestCheck:
    def test_check_shows_the_damage_and_what_can_be_saved(self, damaged: Hermes) -> None:
        before = damaged.database.read_bytes()
        done = damaged("sessions", "repair", "--check")
        first, *rest = done.stdout.splitlines()
        assert done.returncode == 1
        assert first == f"{damaged.database} is damaged: data"
        lost = 120 - int(rest[1].split()[-2])
        assert rest[1] == f"Can be saved: 2 sessions, {120 - lost} messages"
        assert rest[2].startswith("Unreadable: 1 of ")
        assert rest[3:] == [
            f"Lost: at least {lost} messages",
            f"  {lost} of session b\\x1b[31m",
        ]
        assert done.stderr == "Run `hermes sessions repair` to repair it.\n"
        assert damaged.database.read_bytes() == before
        assert beside(damaged) == ["state.db"]

    def test_check_prints_json(self, damaged: Hermes) -> None:
        done = damaged("sessions", "repair", "--check", "--json")
        output = json.loads(done.stdout)
        assert (done.returncode, output["schema"]) == (1, "hermes.repair/1")
        item = output["item"]
        assert item.keys() == KEYS
        assert (item["condition"], item["damage"], item["kept_as"]) == ("damaged", ["data"], None)
        assert item["salvaged"]["messages"] + item["salvaged"]["messages_lost"] == 120
        assert item["salvaged"]["incomplete_sessions"] == [
            {"id": "b\x1b[31m", "lost": item["salvaged"]["messages_lost"]}
        ]

    def test_check_works_in_a_read_only_directory(self, damaged: Hermes, tmp_path: Path) -> None:
        for place in (tmp_path, *tmp_path.parents):
            if place.owner() == tmp_path.owner() and place != Path("/"):
                place.chmod(place.stat().st_mode | 0o011)
        closed = tmp_path / "closed"
        closed.mkdir()
        Path(shutil.copy(damaged.database, closed)).chmod(0o644)
        closed.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", AS_GUEST, str(closed)],
            env=damaged.environment(),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert (done.returncode, done.stdout.count("Can be saved: 2 sessions")) == (1, 2), done.stderr
        assert f"{closed}/state.db is damaged: data" in done.stdout
        assert os.listdir(closed) == ["state.db"]


class TestRepair:
    def test_repair_with_yes_does_not_ask(self, damaged: Hermes) -> None:
        before = damaged.database.read_bytes()
        done = damaged("sessions", "repair", "--yes")
        assert done.returncode == 0
        assert f"{damaged.database} was damaged: data" in done.stdout
        _, kept = beside(damaged)
        assert f"The damaged file is kept as {damaged.home / kept};" in done.stderr
        assert (damaged.home / kept).read_bytes() == before
        assert stat.S_IMODE(damaged.database.stat().st_mode) == 0o600
        assert damaged("sessions", "repair", "--check").returncode == 0
        assert damaged("sessions", "search", "word3").returncode == 0

    def test_repair_prints_json(self, damaged: Hermes) -> None:
        item = damaged.json("sessions", "repair", "--yes")["item"]
        assert item.keys() == KEYS
        assert item["condition"] == "repaired"
        assert Path(item["kept_as"]).exists()
        assert rows(damaged.database, "SELECT count(*) FROM messages") == [(item["salvaged"]["messages"],)]

    def test_repair_shows_the_losses_and_asks(self, damaged: Hermes) -> None:
        code, output, seen = at_terminal(damaged, "y", "sessions", "repair")
        assert (code, "Lost: " in output) == (0, True)
        assert seen.index("[y/N]") < seen.index("Repaired.")
        assert len(beside(damaged)) == 2

    def test_repair_denied_changes_nothing(self, damaged: Hermes) -> None:
        before = damaged.database.read_bytes()
        code, _, seen = at_terminal(damaged, "n", "sessions", "repair")
        assert (code, "Nothing was changed." in seen) == (1, True)
        assert damaged.database.read_bytes() == before
        assert beside(damaged) == ["state.db"]

    def test_repair_without_a_terminal_needs_yes(self, damaged: Hermes) -> None:
        done = subprocess.run(
            [*COMMAND, "sessions", "repair"],
            env=damaged.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert (done.returncode, "--yes" in done.stderr) == (2, True)
        assert beside(damaged) == ["state.db"]

    def test_repair_left_at_the_question_changes_nothing(self, damaged: Hermes) -> None:
        before = damaged.database.read_bytes()
        code, _, _ = at_terminal(damaged, "\x04", "sessions", "repair")
        assert code == 130
        assert damaged.database.read_bytes() == before
        assert beside(damaged) == ["state.db"]

    def test_repair_reports_spooled_messages(self, damaged: Hermes) -> None:
        (damaged.home / "state.db.spool").write_text(
            json.dumps({"session_id": "a", "draft": [{}, True, True, 0, [], None]}) + "\n"
        )
        done = damaged("sessions", "repair", "--yes")
        assert "1 spooled message will be stored" in done.stderr


@pytest.mark.parametrize(
    ("content", "code", "error"),
    [
        (None, 3, "not_found"),
        (b"\xff\xd8\xff" * 9_999, 1, "not_a_database"),
        (bytes(99_999), 1, "store_corrupt"),
    ],
)
def test_unrepairable_file_is_an_error_and_unchanged(
    hermes: Hermes, content: bytes | None, code: int, error: str
) -> None:
    hermes.home.mkdir()
    if content is not None:
        hermes.database.write_bytes(content)
    for args in (("--check",), ("--yes",)):
        done = hermes("sessions", "repair", "--json", *args)
        assert (done.returncode, done.stdout) == (code, "")
        assert json.loads(done.stderr)["error"]["code"] == error
    assert content is None or hermes.database.read_bytes() == content


def test_empty_file_is_reported_as_empty(hermes: Hermes) -> None:
    hermes.home.mkdir()
    hermes.database.touch()
    done = hermes("sessions", "repair")
    assert (done.returncode, done.stdout) == (0, f"{hermes.database} is empty: it has no sessions.\n")
