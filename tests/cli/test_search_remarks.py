"""The notes and errors of `hermes sessions search`."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import click
import pytest

from hermes.cli.app import run
from hermes.cli.sessions.search import SearchPage, SearchRequest, search, search_notes
from hermes.state.search.results import SearchResults
from hermes_state import SessionDB
from tests.cli.conftest import HOUR, Hermes, store_session


class TestNothing:
    def test_search_without_hits_exits_with_0(self, talks: Hermes) -> None:
        done = talks("sessions", "search", "qq", "zz")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "No messages match: qq zz\n")

    def test_message_without_hits_names_the_narrowing_options(self, talks: Hermes) -> None:
        done = talks("sessions", "search", "qq", "--role", "usr", "--since", "7d")
        assert done.stderr == "No messages match: qq (within --role, --since)\n"

    def test_unknown_source_lists_the_known_ones(self, talks: Hermes) -> None:
        output = talks("sessions", "search", "qq", "--source", "telegrm").stderr.splitlines()
        assert output == [
            "No messages match: qq (within --source)",
            "Note: no sessions with source telegrm; sources with sessions: cli (1), discord (1), telegram (1)",
        ]

    def test_missing_database_has_no_sessions_and_is_not_created(self, hermes: Hermes) -> None:
        done = hermes("sessions", "search", "docker")
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.startswith(f"No sessions yet in {hermes.database}.")
        assert not hermes.home.exists()

    def test_an_empty_database_has_no_sessions(self, hermes: Hermes) -> None:
        SessionDB(hermes.database).close()
        assert hermes("sessions", "search", "docker").stderr.startswith("No sessions yet")

    def test_without_a_database_json_is_an_empty_page(self, hermes: Hermes) -> None:
        assert hermes.json("sessions", "search", "docker") == {
            "schema": "hermes.search/1",
            "items": [],
            "total": 0,
            "next": None,
            "search": {"path": "words", "degraded": False, "complete": True, "repairs": [], "hidden": {}},
        }

    def test_file_that_is_not_a_database_is_an_error(self, hermes: Hermes) -> None:
        hermes.home.mkdir()
        hermes.database.write_bytes(b"these are my notes, not a database\n" * 100)
        done = hermes("sessions", "search", "notes", "--json")
        assert (done.returncode, done.stdout) == (1, "")
        assert json.loads(done.stderr)["error"]["code"] == "not_a_database"


class TestMistakes:
    @pytest.mark.parametrize("option", ["--since", "--until"])
    def test_invalid_date_lists_the_valid_forms(self, hermes: Hermes, option: str) -> None:
        done = hermes("sessions", "search", "docker", option, "last week")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.splitlines() == [
            f"Error: {option}: invalid date or time 'last week'",
            "Hint: use 2026-01-31, 2026-01-31T10:00, today, yesterday, or an age such as 30m, 12h, 7d, 2w",
        ]

    def test_period_that_ends_before_it_starts_is_an_error(self, hermes: Hermes) -> None:
        done = hermes("sessions", "search", "docker", "--since", "today", "--until", "yesterday")
        assert (done.returncode, done.stdout) == (2, "")
        assert "--since today is later than --until yesterday" in done.stderr

    @pytest.mark.parametrize(
        "options", [["--limit", "0"], ["-n", "many"], ["--offset", "-1"], ["--sort", "best"], ["--limit", "9" * 30]]
    )
    def test_invalid_option_value_exits_with_2(self, talks: Hermes, options: list[str]) -> None:
        done = talks("sessions", "search", "docker", *options)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("Error: ")

    @pytest.mark.parametrize("name", ["nope", "2026111"])
    def test_unknown_or_ambiguous_session_exits_with_3(self, talks: Hermes, name: str) -> None:
        done = talks("sessions", "search", "docker", "--session", name)
        assert (done.returncode, done.stdout) == (3, "")
        assert name in done.stderr

    @pytest.mark.parametrize(
        ("args", "code"),
        [
            (["docker", "--since", "x"], "invalid_value"),
            (["docker", "--session", "nope"], "unknown_session"),
            ([], "usage"),
            (["-docker"], "usage"),
        ],
    )
    def test_json_error_is_an_object(self, talks: Hermes, args: list[str], code: str) -> None:
        done = talks("sessions", "search", "--json", *args)
        assert done.stdout == ""
        assert json.loads(done.stderr)["error"]["code"] == code


class TestNotes:
    def test_note_explains_how_the_query_was_read(self, talks: Hermes) -> None:
        done = talks("sessions", "search", "ocke", "--role", "assistant")
        assert "docker builder prune" in done.stdout
        assert done.stderr.splitlines() == [
            "1 message in 1 session",
            "Note: no message here has the word ocke; searched inside words",
        ]

    def test_note_reports_a_damaged_index(self, hermes: Hermes) -> None:
        store_session(hermes, "a", "cli", None, HOUR, *(("user", f"zebra {number}") for number in range(600)))
        connection = apsw.Connection(str(hermes.database))
        connection.execute("DELETE FROM messages_fts_data WHERE id > 10").fetchall()
        connection.close()
        done = hermes("sessions", "search", "zebra", "-n", "600")
        assert done.stderr.splitlines() == [
            "600 messages in 1 session",
            "Note: the search index is damaged or incomplete; the messages themselves were searched",
        ]

    def test_note_reports_a_stopped_search(
        self, talks: Hermes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("HERMES_HOME", str(talks.home))
        monkeypatch.setattr("hermes.cli.sessions.search.BUDGET_S", -1.0)
        assert run(["sessions", "search", "docker", "OR", "*prune*"]) == 0
        assert "Note: the search stopped after " in capsys.readouterr().err

    def test_note_suggests_how_to_narrow_a_stopped_search(self) -> None:
        context = click.Context(search, info_name="search")
        found = SearchPage(SearchResults(complete=False), sources={"cli": 1})
        assert search_notes(found, SearchRequest("docker"), context, Path("state.db")) == [
            "No messages match: docker",
            "Note: the search stopped after 5 s; there may be more. Narrow it with --since, --source or more words",
        ]

    def test_stopped_search_has_no_total(self) -> None:
        assert SearchPage(SearchResults(complete=False)).total(SearchRequest("docker")) is None
