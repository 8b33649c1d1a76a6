"""`hermes sessions delete`, `prune` and `optimize`."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import pytest

from hermes_state import SessionDB
from tests.cli.conftest import COMMAND, TIMEOUT_S, Hermes

OLD = "20260101_120000_aaaaaaaa"
DAY_S = 86_400


@pytest.fixture
def old(hermes: Hermes) -> Hermes:
    """A store with an old ended session, an old open one and a new one."""
    long_ago = time.time() - 200 * DAY_S
    with SessionDB(hermes.database, clock=lambda: long_ago) as db:
        for session_id, source in ((OLD, "telegram"), ("open", "cli")):
            db.create_session(session_id, source)
            db.append_message(session_id, "user", f"hello from {session_id}")
        db.end_session(OLD, "user_exit")
    hermes.store(("fresh", "cli", "Fresh ideas", "hello"))
    return hermes


def session_ids(hermes: Hermes) -> set[str]:
    """Return the ids of all sessions."""
    return {item["id"] for item in hermes.json("sessions", "list")["items"]}


def run_with_reply(hermes: Hermes, answer: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a command at a terminal and type a reply to its question."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, f"{answer}\n".encode())
        return subprocess.run(
            [*COMMAND, *args],
            env=hermes.environment(),
            stdin=theirs,
            capture_output=True,
            encoding="utf-8",
            timeout=TIMEOUT_S,
        )
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.fixture
def lineage(hermes: Hermes) -> Hermes:
    """Three sessions with numbered titles."""
    hermes.store(("first", "cli", "p", "one"), ("second", "cli", "p #2", "two"), ("third", "cli", "p #3", "three"))
    return hermes


class TestDeleteByTitle:
    @pytest.mark.parametrize(("title", "gone"), [("p", "first"), ("p #2", "second"), ("p #3", "third")])
    def test_delete_by_title_deletes_the_exact_title(self, lineage: Hermes, title: str, gone: str) -> None:
        assert lineage("sessions", "delete", title, "--yes").returncode == 0
        assert session_ids(lineage) == {"first", "second", "third"} - {gone}

    def test_delete_by_title_does_not_follow_numbers(self, lineage: Hermes) -> None:
        assert lineage("sessions", "delete", "p", "--yes").returncode == 0
        done = lineage("sessions", "delete", "p", "--yes")
        assert done.returncode == 3
        assert '"p #2"' in done.stderr
        assert session_ids(lineage) == {"second", "third"}

    def test_delete_by_title_in_other_case_deletes_nothing(self, old: Hermes) -> None:
        done = old("sessions", "delete", "FRESH IDEAS", "--yes")
        assert (done.returncode, done.stderr.splitlines()[1]) == (3, 'Hint: did you mean "Fresh ideas"?')
        assert "fresh" in session_ids(old)

    @pytest.mark.parametrize("words", [("my", "project"), ("p", "my", "project"), ("my", "project", "p")])
    def test_delete_of_an_unquoted_title_deletes_nothing(self, lineage: Hermes, words: tuple[str, ...]) -> None:
        lineage.store(("a", "cli", "my", "1"), ("b", "cli", "project", "2"), ("c", "cli", "my project", "3"))
        done = lineage("sessions", "delete", *words, "--yes")
        assert done.returncode == 3
        assert "'my project' is the title of one session" in done.stderr
        assert session_ids(lineage) == {"first", "second", "third", "a", "b", "c"}

    def test_delete_by_several_titles_deletes_all(self, lineage: Hermes) -> None:
        lineage.store(("a", "cli", "p p #2", "1"))
        assert lineage("sessions", "delete", "p", "p #2", "p p #2", "--yes").returncode == 0
        assert session_ids(lineage) == {"third"}

    def test_delete_by_an_id_that_is_also_a_title_deletes_neither(self, lineage: Hermes) -> None:
        with SessionDB(lineage.database) as db:
            db.set_session_title("second", "third")
        done = lineage("sessions", "delete", "third", "--yes")
        assert done.returncode == 3
        assert session_ids(lineage) == {"first", "second", "third"}

    def test_delete_shows_the_sessions_before_the_question(self, lineage: Hermes) -> None:
        with SessionDB(lineage.database) as db:
            db.create_session("helper", "subagent", parent_session_id="first", child_kind="delegate")
            db.append_message("helper", "user", "look")
        shown = run_with_reply(lineage, "n", "sessions", "delete", "p").stderr
        assert shown.splitlines()[0] == "first  p  (cli, 1 message)"
        assert "Delete 1 session and 1 subagent session with 2 messages? [y/N]" in shown


class TestDelete:
    @pytest.mark.parametrize("name", ["fresh", "Fresh ideas"])
    def test_delete_by_id_and_title(self, old: Hermes, name: str) -> None:
        done = old("sessions", "delete", name, "--yes")
        assert (done.returncode, done.stdout) == (0, "Deleted 1 session, 1 message.\n")
        assert session_ids(old) == {OLD, "open"}

    def test_delete_shows_the_session_and_asks(self, old: Hermes) -> None:
        done = run_with_reply(old, "n", "sessions", "delete", OLD[:8])
        assert done.returncode == 0
        assert (
            f"{OLD}  hello from {OLD}  (telegram, 1 message)\nDelete 1 session with 1 message? [y/N]: " in done.stderr
        )
        assert done.stderr.endswith("Nothing was deleted.\n")
        assert OLD in session_ids(old)

    def test_delete_after_yes_deletes(self, old: Hermes) -> None:
        assert run_with_reply(old, "y", "sessions", "delete", OLD).returncode == 0
        assert OLD not in session_ids(old)

    def test_delete_with_an_unknown_name_deletes_nothing(self, old: Hermes) -> None:
        done = old("sessions", "delete", "fresh", "nothing like it", "--yes")
        assert (done.returncode, done.stdout) == (3, "")
        assert "there is no session 'nothing like it'" in done.stderr
        assert session_ids(old) == {OLD, "open", "fresh"}

    def test_delete_removes_transcript_files(self, old: Hermes) -> None:
        transcripts = old.home / "sessions"
        transcripts.mkdir()
        for name in ("fresh.jsonl", "request_dump_fresh_1.json", "other.jsonl"):
            (transcripts / name).write_text("{}")
        assert old("sessions", "delete", "fresh", "-y").stdout == "Deleted 1 session, 1 message, 2 files.\n"
        assert [path.name for path in transcripts.iterdir()] == ["other.jsonl"]

    def test_delete_without_a_terminal_needs_yes(self, old: Hermes) -> None:
        done = old("sessions", "delete", "fresh")
        assert done.returncode == 2
        assert "pass --yes" in done.stderr
        assert "fresh" in session_ids(old)

    def test_delete_without_a_database_is_not_found(self, hermes: Hermes) -> None:
        assert hermes("sessions", "delete", "x", "--yes").returncode == 3
        assert not hermes.database.exists()

    def test_delete_prints_json(self, old: Hermes) -> None:
        assert old.json("sessions", "delete", "fresh", "open", "--yes") == {
            "schema": "hermes.deleted/1",
            "item": {
                "sessions": 2,
                "delegates": 0,
                "messages": 2,
                "files": 0,
                "erased": False,
                "ids": ["fresh", "open"],
            },
        }

    @pytest.mark.parametrize("setting", ["option", "configuration"])
    def test_secure_delete_erases_the_files(self, old: Hermes, setting: str) -> None:
        if setting == "configuration":
            (old.home / "config.yaml").write_text("sessions: {secure_delete: true}")
        options = ["--secure"] if setting == "option" else []
        done = old("sessions", "delete", OLD, "--yes", *options)
        assert "Erased from the database file" in done.stdout
        assert f"hello from {OLD}".encode() not in bytes_of(old.home)

    def test_no_secure_option_does_not_erase(self, old: Hermes) -> None:
        (old.home / "config.yaml").write_text("sessions: {secure_delete: true}")
        assert "Erased" not in old("sessions", "delete", OLD, "--yes", "--no-secure").stdout
        assert f"hello from {OLD}".encode() in bytes_of(old.home)


def bytes_of(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.iterdir() if path.is_file())


class TestPrune:
    def test_prune_dry_run_shows_the_sessions(self, old: Hermes) -> None:
        done = old("sessions", "prune", "--dry-run")
        date = time.strftime("%Y-%m-%d", time.localtime(time.time() - 200 * DAY_S))
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.splitlines() == [
            "1 session with 1 message (telegram: 1)",
            f"last active between {date} and {date}",
            "Nothing was deleted.",
        ]
        assert len(session_ids(old)) == 3

    def test_prune_deletes_old_ended_sessions(self, old: Hermes) -> None:
        done = old("sessions", "prune", "--yes")
        assert (done.returncode, done.stdout) == (0, "Deleted 1 session, 1 message.\n")
        assert session_ids(old) == {"open", "fresh"}

    def test_prune_include_open_deletes_open_sessions(self, old: Hermes) -> None:
        old("sessions", "prune", "--yes", "--include-open")
        assert session_ids(old) == {"fresh"}

    def test_prune_respects_source_and_age(self, old: Hermes) -> None:
        assert "No session is old enough to prune." in old("sessions", "prune", "--yes", "--source", "discord").stderr
        assert "No session is old enough to prune." in old("sessions", "prune", "--yes", "--older-than", "300").stderr
        assert old("sessions", "prune", "--yes", "--source", "telegram", "--older-than", "30").stdout
        assert session_ids(old) == {"open", "fresh"}

    def test_prune_asks_before_deleting(self, old: Hermes) -> None:
        assert "Delete 1 session? [y/N]" in run_with_reply(old, "n", "sessions", "prune").stderr
        assert len(session_ids(old)) == 3
        assert old("sessions", "prune").returncode == 2

    @pytest.mark.parametrize("days", ["-1", "many", "nan"])
    def test_prune_refuses_an_invalid_age(self, old: Hermes, days: str) -> None:
        done = old("sessions", "prune", "--older-than", days, "--yes")
        assert done.returncode == 2
        assert len(session_ids(old)) == 3

    def test_prune_without_a_database_is_not_an_error(self, hermes: Hermes) -> None:
        assert hermes("sessions", "prune", "--yes").returncode == 0
        assert not hermes.database.exists()

    def test_prune_prints_json(self, old: Hermes) -> None:
        item = old.json("sessions", "prune", "--yes")["item"]
        assert item["doomed"]["by_source"] == {"telegram": 1}
        assert (item["deleted"]["sessions"], item["dry_run"]) == (1, False)

    def test_ctrl_c_does_not_stop_prune_halfway(self, hermes: Hermes) -> None:
        long_ago = time.time() - 200 * DAY_S
        with SessionDB(hermes.database, clock=lambda: long_ago) as db:
            for number in range(3000):
                db.create_session(f"s{number}", "cli")
                db.end_session(f"s{number}", "user_exit")
        process = hermes.start("sessions", "prune", "--yes", stdout=subprocess.PIPE)
        assert process.stderr is not None
        process.stderr.readline()  # what would go: from here on it deletes
        process.send_signal(signal.SIGINT)
        _, _ = process.communicate(timeout=TIMEOUT_S)
        with SessionDB(hermes.database) as db:
            assert db.session_count() in (0, 3000)
        assert process.returncode in (0, 130)


class TestOptimize:
    @pytest.mark.parametrize("options", [[], ["--no-vacuum"]])
    def test_optimize_prints_the_sizes(self, old: Hermes, options: list[str]) -> None:
        done = old("sessions", "optimize", *options)
        assert done.returncode == 0
        assert " MB before, " in done.stdout
        assert len(session_ids(old)) == 3

    def test_optimize_prints_json(self, old: Hermes) -> None:
        before = old.database.stat().st_size
        found = old.json("sessions", "optimize")
        assert found["schema"] == "hermes.optimized/1"
        assert found["item"] == {
            "bytes_before": before,
            "bytes_after": old.database.stat().st_size,
            "vacuumed": True,
        }

    def test_optimize_without_a_database_creates_nothing(self, hermes: Hermes) -> None:
        assert hermes("sessions", "optimize").returncode == 0
        assert not hermes.database.exists()
