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
    """A store with an old session that has ended, an old one that has not, and a fresh one."""
    long_ago = time.time() - 200 * DAY_S
    with SessionDB(hermes.database, clock=lambda: long_ago) as db:
        for session_id, source in ((OLD, "telegram"), ("open", "cli")):
            db.create_session(session_id, source)
            db.append_message(session_id, "user", f"hello from {session_id}")
        db.end_session(OLD, "user_exit")
    hermes.store(("fresh", "cli", "Fresh ideas", "hello"))
    return hermes


def left(hermes: Hermes) -> set[str]:
    """The ids of the sessions there are."""
    return {item["id"] for item in hermes.json("sessions", "list")["items"]}


def answered(hermes: Hermes, answer: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose question a person answers at a terminal."""
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
    """Three sessions of which the titles are numbered, each with another number of messages."""
    hermes.store(("first", "cli", "p", "one"), ("second", "cli", "p #2", "two"), ("third", "cli", "p #3", "three"))
    return hermes


class TestDeleteByTitle:
    @pytest.mark.parametrize(("title", "gone"), [("p", "first"), ("p #2", "second"), ("p #3", "third")])
    def test_takes_the_session_of_exactly_this_title(self, lineage: Hermes, title: str, gone: str) -> None:
        assert lineage("sessions", "delete", title, "--yes").returncode == 0
        assert left(lineage) == {"first", "second", "third"} - {gone}

    def test_follows_no_numbers_once_the_title_is_gone(self, lineage: Hermes) -> None:
        assert lineage("sessions", "delete", "p", "--yes").returncode == 0
        done = lineage("sessions", "delete", "p", "--yes")
        assert done.returncode == 3
        assert '"p #2"' in done.stderr
        assert left(lineage) == {"second", "third"}

    def test_of_other_capitals_deletes_nothing(self, old: Hermes) -> None:
        done = old("sessions", "delete", "FRESH IDEAS", "--yes")
        assert (done.returncode, done.stderr.splitlines()[1]) == (3, 'Hint: did you mean "Fresh ideas"?')
        assert "fresh" in left(old)

    @pytest.mark.parametrize("words", [("my", "project"), ("p", "my", "project"), ("my", "project", "p")])
    def test_of_several_words_without_quotes_deletes_nothing(self, lineage: Hermes, words: tuple[str, ...]) -> None:
        lineage.store(("a", "cli", "my", "1"), ("b", "cli", "project", "2"), ("c", "cli", "my project", "3"))
        done = lineage("sessions", "delete", *words, "--yes")
        assert done.returncode == 3
        assert "'my project' is the title of one session" in done.stderr
        assert left(lineage) == {"first", "second", "third", "a", "b", "c"}

    def test_of_several_sessions_deletes_all_of_them(self, lineage: Hermes) -> None:
        lineage.store(("a", "cli", "p p #2", "1"))
        assert lineage("sessions", "delete", "p", "p #2", "p p #2", "--yes").returncode == 0
        assert left(lineage) == {"third"}

    def test_that_is_the_id_of_another_session_deletes_neither(self, lineage: Hermes) -> None:
        with SessionDB(lineage.database) as db:
            db.set_session_title("second", "third")
        done = lineage("sessions", "delete", "third", "--yes")
        assert done.returncode == 3
        assert left(lineage) == {"first", "second", "third"}

    def test_shows_what_goes_before_the_question(self, lineage: Hermes) -> None:
        with SessionDB(lineage.database) as db:
            db.create_session("helper", "subagent", parent_session_id="first", child_kind="delegate")
            db.append_message("helper", "user", "look")
        shown = answered(lineage, "n", "sessions", "delete", "p").stderr
        assert shown.splitlines()[0] == "first  p  (cli, 1 message)"
        assert "Delete 1 session, 1 session of agents with 2 messages? [y/N]" in shown


class TestDelete:
    @pytest.mark.parametrize("name", ["fresh", "Fresh ideas"])
    def test_takes_a_session_by_any_name(self, old: Hermes, name: str) -> None:
        done = old("sessions", "delete", name, "--yes")
        assert (done.returncode, done.stdout) == (0, "Deleted 1 session, 1 message.\n")
        assert left(old) == {OLD, "open"}

    def test_shows_what_is_meant_and_asks(self, old: Hermes) -> None:
        done = answered(old, "n", "sessions", "delete", OLD[:8])
        assert done.returncode == 0
        assert (
            f"{OLD}  hello from {OLD}  (telegram, 1 message)\nDelete 1 session with 1 message? [y/N]: " in done.stderr
        )
        assert done.stderr.endswith("Nothing was deleted.\n")
        assert OLD in left(old)

    def test_takes_it_after_a_yes(self, old: Hermes) -> None:
        assert answered(old, "y", "sessions", "delete", OLD).returncode == 0
        assert OLD not in left(old)

    def test_takes_all_or_none_of_those_that_are_named(self, old: Hermes) -> None:
        done = old("sessions", "delete", "fresh", "nothing like it", "--yes")
        assert (done.returncode, done.stdout) == (3, "")
        assert "there is no session 'nothing like it'" in done.stderr
        assert left(old) == {OLD, "open", "fresh"}

    def test_takes_its_files_too(self, old: Hermes) -> None:
        transcripts = old.home / "sessions"
        transcripts.mkdir()
        for name in ("fresh.jsonl", "request_dump_fresh_1.json", "other.jsonl"):
            (transcripts / name).write_text("{}")
        assert old("sessions", "delete", "fresh", "-y").stdout == "Deleted 1 session, 1 message, 2 files.\n"
        assert [path.name for path in transcripts.iterdir()] == ["other.jsonl"]

    def test_without_anybody_to_ask_is_refused(self, old: Hermes) -> None:
        done = old("sessions", "delete", "fresh")
        assert done.returncode == 2
        assert "say --yes" in done.stderr
        assert "fresh" in left(old)

    def test_of_a_store_that_is_not_there_is_not_found(self, hermes: Hermes) -> None:
        assert hermes("sessions", "delete", "x", "--yes").returncode == 3
        assert not hermes.database.exists()

    def test_for_a_script(self, old: Hermes) -> None:
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
    def test_erases_when_told_to(self, old: Hermes, setting: str) -> None:
        if setting == "configuration":
            (old.home / "config.yaml").write_text("sessions: {secure_delete: true}")
        options = ["--secure"] if setting == "option" else []
        done = old("sessions", "delete", OLD, "--yes", *options)
        assert "Nothing of it is left" in done.stdout
        assert f"hello from {OLD}".encode() not in bytes_of(old.home)

    def test_does_not_erase_otherwise(self, old: Hermes) -> None:
        (old.home / "config.yaml").write_text("sessions: {secure_delete: true}")
        assert "Nothing of it" not in old("sessions", "delete", OLD, "--yes", "--no-secure").stdout
        assert f"hello from {OLD}".encode() in bytes_of(old.home)


def bytes_of(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.iterdir() if path.is_file())


class TestPrune:
    def test_shows_what_would_go(self, old: Hermes) -> None:
        done = old("sessions", "prune", "--dry-run")
        date = time.strftime("%Y-%m-%d", time.localtime(time.time() - 200 * DAY_S))
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.splitlines() == [
            "1 session with 1 message (telegram: 1)",
            f"last used between {date} and {date}",
            "Nothing was deleted.",
        ]
        assert len(left(old)) == 3

    def test_takes_what_is_old_and_ended(self, old: Hermes) -> None:
        done = old("sessions", "prune", "--yes")
        assert (done.returncode, done.stdout) == (0, "Deleted 1 session, 1 message.\n")
        assert left(old) == {"open", "fresh"}

    def test_takes_open_ones_when_told_to(self, old: Hermes) -> None:
        old("sessions", "prune", "--yes", "--include-open")
        assert left(old) == {"fresh"}

    def test_keeps_to_a_source_and_an_age(self, old: Hermes) -> None:
        assert "No session is old enough." in old("sessions", "prune", "--yes", "--source", "discord").stderr
        assert "No session is old enough." in old("sessions", "prune", "--yes", "--older-than", "300").stderr
        assert old("sessions", "prune", "--yes", "--source", "telegram", "--older-than", "30").stdout
        assert left(old) == {"open", "fresh"}

    def test_asks(self, old: Hermes) -> None:
        assert "Delete 1 session? [y/N]" in answered(old, "n", "sessions", "prune").stderr
        assert len(left(old)) == 3
        assert old("sessions", "prune").returncode == 2

    @pytest.mark.parametrize("days", ["-1", "many", "nan"])
    def test_of_a_strange_age_is_refused(self, old: Hermes, days: str) -> None:
        done = old("sessions", "prune", "--older-than", days, "--yes")
        assert done.returncode == 2
        assert len(left(old)) == 3

    def test_of_nothing_is_no_failure(self, hermes: Hermes) -> None:
        assert hermes("sessions", "prune", "--yes").returncode == 0
        assert not hermes.database.exists()

    def test_for_a_script(self, old: Hermes) -> None:
        item = old.json("sessions", "prune", "--yes")["item"]
        assert item["doomed"]["by_source"] == {"telegram": 1}
        assert (item["deleted"]["sessions"], item["dry_run"]) == (1, False)

    def test_is_not_left_half_done_by_ctrl_c(self, hermes: Hermes) -> None:
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
    def test_says_what_it_brought(self, old: Hermes, options: list[str]) -> None:
        done = old("sessions", "optimize", *options)
        assert done.returncode == 0
        assert " MB before, " in done.stdout
        assert len(left(old)) == 3

    def test_for_a_script(self, old: Hermes) -> None:
        before = old.database.stat().st_size
        found = old.json("sessions", "optimize")
        assert found["schema"] == "hermes.optimized/1"
        assert found["item"] == {
            "bytes_before": before,
            "bytes_after": old.database.stat().st_size,
            "vacuumed": True,
        }

    def test_of_nothing_creates_nothing(self, hermes: Hermes) -> None:
        assert hermes("sessions", "optimize").returncode == 0
        assert not hermes.database.exists()
