"""`hermes doctor`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hermes.cli import doctor
from hermes.cli.display.findings import MARKS, TITLES
from hermes.state.maintenance.findings import Status
from hermes.state.sqlite.checks.checkup import CHECKS
from hermes_state import SessionDB
from tests.cli.conftest import SRC, Hermes
from tests.fault.processes import Child
from tests.fault.use_as_guest import NOBODY
from tests.support.checkups import do, fill
from tests.support.plainsql import change, flaws, rows

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "doctor.md"
AS_GUEST = """
import json, os, sys
import hermes.cli.doctor as doctor
doctor.examine_installation(is_deep=True)  # loads what it needs while it may
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
os.environ["HERMES_HOME"] = sys.argv[1]
print(json.dumps({each.name: each.status for each in doctor.examine_installation(is_deep=True)}))
"""


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store with all kinds of content."""
    path = tmp_path_factory.mktemp("used") / "state.db"
    fill(path)
    return path


@pytest.fixture
def healthy(hermes: Hermes, used: Path) -> Hermes:
    """A home with a copy of that store."""
    hermes.home.mkdir(mode=0o700)
    shutil.copy(used, hermes.database)
    return hermes


def items(hermes: Hermes, *options: str, exit_code: int = 0) -> dict[str, dict[str, Any]]:
    """Return the findings of `doctor --json` by name."""
    done = hermes("doctor", "--json", *options)
    assert (done.returncode, done.stderr) == (exit_code, ""), done.stdout
    report = json.loads(done.stdout)
    assert (report["schema"], report["next"], report["total"]) == ("hermes.doctor/1", None, len(report["items"]))
    return {each["name"]: each for each in report["items"]}


def as_guest(home: Path) -> dict[str, str]:
    """Return the status of every check for an unprivileged user."""
    for place in home.parents:
        if place.owner() == home.owner() and place != Path("/"):
            place.chmod(place.stat().st_mode | 0o011)
    command = [sys.executable, "-c", AS_GUEST, str(home), str(NOBODY)]
    environment = {**os.environ, "PYTHONPATH": str(SRC), "HERMES_HOME": str(home)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def state(directory: Path) -> dict[str, tuple[bytes, int, int]]:
    """Return the content, the change time and the mode of every file in a directory."""
    return {
        file.name: (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_mode)
        for file in directory.iterdir()
        if file.is_file()
    }


class TestReport:
    def test_doctor_reports_a_healthy_store(self, healthy: Hermes) -> None:
        done = healthy("doctor", "--deep", COLUMNS="300")
        lines = done.stdout.splitlines()
        assert done.returncode == 0
        assert done.stderr == "Nothing is wrong, 1 note\n"
        assert [line for line in lines if not line.startswith(" ")] == [
            title for group, title in TITLES.items() if group != "server"
        ]
        assert [line for line in lines if line.startswith(f"  {MARKS[Status.NOTE]}")] == [
            f"  • backups             there is no backup in {healthy.home / 'backups'}"
        ]
        assert lines[-1].strip() == "`hermes sessions backup` makes one"

    def test_doctor_reports_errors_and_warnings(self, healthy: Hermes) -> None:
        change(healthy.database, "DELETE FROM messages_fts WHERE rowid = 2", "UPDATE sessions SET preview = 'what?'")
        healthy.database.chmod(0o644)
        done = healthy("doctor", "--deep", COLUMNS="300")
        assert (done.returncode, done.stderr) == (1, "1 error, 2 warnings, 1 note\n")
        assert (
            "\n  ✗ index-parity        1 message missing from the search index, so searches do not find them\n"
            in done.stdout
        )
        assert f"\n  ! permissions         others may read or write state.db\n{'':26}chmod 600 " in done.stdout

    def test_warnings_exit_with_0(self, healthy: Hermes) -> None:
        healthy.database.chmod(0o644)
        assert healthy("doctor").returncode == 0

    def test_text_and_json_have_the_same_findings(self, healthy: Hermes) -> None:
        change(healthy.database, "UPDATE sessions SET message_count = 9 WHERE id = 'tip'")
        found = items(healthy, "--deep")
        report = " ".join(healthy("doctor", "--deep").stdout.split())
        at = 0
        for name, each in found.items():
            # The free space changes from moment to moment.
            summary = "" if name == "disk" else f" {each['summary']}"
            at = report.index(f"{MARKS[Status(each['status'])]} {name}{summary}", at)
            at = report.index(each["remedy"], at)
        assert report.count(MARKS[Status.OK]) == sum(each["status"] == "ok" for each in found.values())

    def test_parts_of_the_file_are_drawn_as_bars(self, healthy: Hermes) -> None:
        drawn = re.findall(r"^ +(\w+) +[\d.]+ \w+(?:  (█*))?$", healthy("doctor", "--deep").stdout, re.MULTILINE)
        assert [name for name, _ in drawn] == ["messages", "words", "trigrams", "indexes", "other", "free"]
        assert max(len(bar) for _, bar in drawn) == 24

    def test_report_fits_the_terminal(self, healthy: Hermes) -> None:
        lines = healthy("doctor", "--deep", COLUMNS="60").stdout.splitlines()
        assert [line for line in lines if len(line) > 60 and str(healthy.home) not in line] == []

    def test_terminal_without_unicode_gets_plain_marks(self, healthy: Hermes) -> None:
        report = healthy("doctor", "--deep", PYTHONIOENCODING="ascii").stdout
        assert report.isascii()
        assert "\n  + integrity " in report
        assert "\n  * backups " in report
        assert "\\u" not in report

    def test_only_a_terminal_gets_styles(self, healthy: Hermes) -> None:
        assert "\x1b[1mFile\x1b[0m" in healthy.on_terminal("doctor")
        assert "\x1b" not in "".join(healthy.on_terminal("doctor", NO_COLOR="1"))
        assert "\x1b" not in healthy("doctor").stdout

    def test_control_characters_in_names_are_escaped(self, tmp_path: Path) -> None:
        strange = Hermes(tmp_path / "a \x1b[31mhome")
        strange.home.mkdir(mode=0o755)
        assert "\x1b" not in strange("doctor").stdout

    def test_every_check_is_in_the_documents(self) -> None:
        named = re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text(), re.MULTILINE)
        assert named == [*doctor.PROGRAM_CHECKS, *(each.name for each in CHECKS)]


class TestProgram:
    def test_missing_home_is_fine_and_not_created(self, hermes: Hermes) -> None:
        done = hermes("doctor", COLUMNS="300")
        assert (done.returncode, done.stderr) == (0, "Nothing is wrong\n")
        assert "nothing is stored yet" in done.stdout
        assert not hermes.home.exists()

    def test_remedy_closes_an_open_home(self, healthy: Hermes) -> None:
        healthy.home.chmod(0o755)
        found = items(healthy)["home"]
        assert found["status"] == "warning"
        do(found["remedy"], healthy.home)
        assert items(healthy)["home"]["status"] == "ok"

    def test_shared_home_is_only_a_note(self, healthy: Hermes) -> None:
        healthy.home.chmod(0o1777)
        found = items(healthy)["home"]
        assert (found["status"], "chmod" in found["remedy"]) == ("note", False)

    def test_file_as_home_is_an_error(self, hermes: Hermes) -> None:
        hermes.home.write_text("x")
        found = items(hermes, exit_code=1)
        assert (found["home"]["status"], found["config"]["status"]) == ("error", "error")

    def test_unresolvable_home_is_an_error(self, hermes: Hermes) -> None:
        done = hermes("doctor", HERMES_HOME="~no-such-user/x")
        assert done.returncode == 1
        assert "set HERMES_HOME to an absolute path" in done.stdout

    def test_invalid_config_does_not_stop_the_other_checks(self, healthy: Hermes) -> None:
        (healthy.home / "config.yaml").write_text("sessions: {retention_days: soon}")
        found = items(healthy, "--deep", exit_code=1)
        assert (found["config"]["status"], found["counters"]["status"]) == ("error", "ok")
        assert "config.yaml, line 1" in found["config"]["summary"]

    def test_config_warnings_are_findings(self, healthy: Hermes) -> None:
        (healthy.home / "config.yaml").write_text("sesions: {}\n")
        found = items(healthy)["config"]
        assert found["status"] == "warning"
        assert "unknown key sesions" in found["summary"]

    @pytest.mark.parametrize(
        ("settings", "summary", "remedy"),
        [
            (
                "{default: gpt-5}",
                "no provider is configured for the model gpt-5 (model.default in config.yaml)",
                "model.base_url",
            ),
            (
                "{provider: openai}",
                "there is no key for api.openai.com (model.provider in config.yaml)",
                "OPENAI_API_KEY",
            ),
            (
                "{default: offline, auxiliary: {provider: openai}}",
                "there is no key for api.openai.com (model.auxiliary.provider in config.yaml)",
                "model.auxiliary.api_key",
            ),
        ],
    )
    def test_model_without_provider_or_key_is_a_warning(
        self, healthy: Hermes, settings: str, summary: str, remedy: str
    ) -> None:
        (healthy.home / "config.yaml").write_text(f"model: {settings}\n")
        found = items(healthy)["config"]
        assert (found["status"], found["summary"]) == ("warning", f"no chat can start: {summary}")
        assert remedy in found["remedy"]
        assert healthy("chat", "-q", "hello").returncode == 1

    def test_key_over_http_is_an_error_that_hides_the_key(self, healthy: Hermes) -> None:
        (healthy.home / "config.yaml").write_text(
            "model: {base_url: 'http://models.example/v1', default: m, api_key: sk-secret-1}"
        )
        found = items(healthy, exit_code=1)["config"]
        assert (found["status"], "over http" in found["summary"]) == ("error", True)
        assert "model.allow_http" in found["remedy"]
        assert "sk-secret-1" not in str(found)

    def test_remedy_closes_a_readable_config(self, healthy: Hermes) -> None:
        for name in ("config.yaml", ".env"):
            (healthy.home / name).touch()
            (healthy.home / name).chmod(0o644)
        found = items(healthy)["config-permissions"]
        assert found["status"] == "warning"
        do(found["remedy"], healthy.home)
        assert items(healthy)["config-permissions"]["status"] == "ok"

    def test_doctor_checks_the_configured_database(self, healthy: Hermes) -> None:
        (healthy.home / "config.yaml").write_text("sessiondb: {path: elsewhere.db}")
        assert "elsewhere.db: nothing is stored yet" in items(healthy)["file"]["summary"]

    def test_unreachable_server_is_an_error(self, healthy: Hermes) -> None:
        (healthy.home / "config.yaml").write_text("sessiondb: {provider: mysql, dsn: mysql://127.0.0.1:1/x}")
        found = items(healthy, exit_code=1)
        assert (found["server"]["status"], "integrity" in found) == ("error", False)


class TestHarm:
    @pytest.mark.parametrize("options", [(), ("--deep",)], ids=["briefly", "deeply"])
    def test_doctor_does_not_change_a_closed_store(self, healthy: Hermes, options: tuple[str, ...]) -> None:
        before = state(healthy.home)
        healthy("doctor", *options)
        assert state(healthy.home) == before

    @pytest.mark.parametrize("content", [b"", b"not a database", bytes(4096)], ids=["empty", "text", "zeros"])
    def test_doctor_does_not_change_a_foreign_file(self, healthy: Hermes, content: bytes) -> None:
        healthy.database.write_bytes(content)
        before = state(healthy.home)
        healthy("doctor")
        assert state(healthy.home) == before

    def test_doctor_does_not_disturb_a_writer(self, hermes: Hermes) -> None:
        hermes.home.mkdir(mode=0o700)
        with SessionDB(hermes.database) as db:
            db.create_session("s", "cli")
        with Child("append", hermes.database, "busy", "forever") as writer:
            assert writer.line() == "ready"
            writer.send()
            stored = [writer.line()]
            for options in ((), ("--deep",), ()):
                found = items(hermes, *options)
                assert {each["status"] for each in found.values()} <= {"ok", "note"}
                assert f"pid {writer.pid}" in found["holders"]["summary"]
                stored.append(writer.line())
            writer.kill()
            stored += writer.lines()
        assert set(stored) <= {uid for (uid,) in rows(hermes.database, "SELECT uid FROM messages")}
        assert flaws(hermes.database) == []

    def test_unreadable_file_is_an_error(self, healthy: Hermes) -> None:
        healthy.database.chmod(0)
        healthy.home.chmod(0o711)
        found = as_guest(healthy.home)
        assert (found["schema"], found["integrity"], found["disk"]) == ("error", "note", "ok")

    def test_unreachable_file_is_an_error(self, healthy: Hermes) -> None:
        locked = healthy.home / "locked"
        shutil.copytree(healthy.home, locked, ignore=shutil.ignore_patterns("locked"))
        locked.chmod(0)
        found = as_guest(locked)
        locked.chmod(0o700)
        assert (found["home"], found["file"], found["engine"]) == ("error", "error", "ok")

    def test_read_only_file_is_checked(self, healthy: Hermes) -> None:
        for file in healthy.home.iterdir():
            file.chmod(0o644)
        healthy.home.chmod(0o755)
        before = state(healthy.home)
        found = as_guest(healthy.home)
        assert (found["schema"], found["counters"]) == ("ok", "ok")
        assert state(healthy.home) == before
