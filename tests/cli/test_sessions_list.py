"""`hermes sessions list`."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from hermes.cli.display.terminal import display_width
from hermes_state import SessionDB
from tests.cli.conftest import Hermes

OLD_FILES = Path(__file__).parents[1] / "upgrade" / "files"
STYLES = re.compile(r"\x1b\[\d+m")
AUTH = ("20250305_091523_a1b2c3d4", "cli", "refactoring auth", "Help me refactor the auth module please")
WEATHER = ("20250303_101500_f00dfeed", "telegram", None, "What's the weather in Las Vegas?")
WIDE = (
    (
        "20250305_091523_00000001",
        "cli",
        "日本語のとても長いタイトルです、もっと長い",
        "認証モジュールをリファクタリングしてください",
    ),
    (
        "20250305_091523_00000002",
        "cli",
        "👨\u200d👩\u200d👧 family 🎉🎉🎉 plans for the summer",
        "👍🏽 thumbs ❤️ hearts 🇩🇪 and flags all over",
    ),
    ("20250305_091523_00000003", "cli", "plain", "Help me refactor the auth module, and then all the others please"),
)


class TestTables:
    def test_table_shows_titles_if_a_session_has_one(self, hermes: Hermes) -> None:
        hermes.store(AUTH, WEATHER)
        header, rule, *rows = hermes("sessions", "list").stdout.splitlines()
        assert header.split() == ["Title", "Preview", "Last", "Active", "ID"]
        assert set(rule) == {"─"}
        assert [re.split(r" {2,}", row) for row in rows] == [
            ["refactoring auth", "Help me refactor the auth module please", "30m ago", "20250305_091523_a1b2c3d4"],
            ["—", "What's the weather in Las Vegas?", "1h ago", "20250303_101500_f00dfeed"],
        ]

    def test_table_shows_sources_if_no_session_has_a_title(self, hermes: Hermes) -> None:
        hermes.store(WEATHER)
        header, _, row = hermes("sessions", "list").stdout.splitlines()
        assert header.split() == ["Preview", "Last", "Active", "Src", "ID"]
        assert re.split(r" {2,}", row) == [
            "What's the weather in Las Vegas?",
            "30m ago",
            "telegram",
            "20250303_101500_f00dfeed",
        ]

    def test_session_without_messages_has_a_row(self, hermes: Hermes) -> None:
        with SessionDB(hermes.database) as db:
            db.create_session("silent", "cli")
        assert hermes("sessions", "list").stdout.splitlines()[-1].split() == ["just", "now", "cli", "silent"]


class TestWidths:
    @pytest.mark.parametrize("columns", [70, 80, 100, 200])
    def test_a_table_fits_the_terminal(self, hermes: Hermes, columns: int) -> None:
        hermes.store(*WIDE)
        lines = hermes.on_terminal("sessions", "list", columns=columns, NO_COLOR="1")
        assert max(display_width(line) for line in lines) <= columns

    @pytest.mark.parametrize("columns", [70, 80, 100, 200])
    def test_wide_characters_keep_columns_aligned(self, hermes: Hermes, columns: int) -> None:
        hermes.store(*WIDE)
        _, _, *rows = hermes.on_terminal("sessions", "list", columns=columns, NO_COLOR="1")
        assert len({display_width(row[: row.index("20250305")]) for row in rows}) == 1

    @pytest.mark.parametrize("columns", [20, 40, 60])
    def test_id_is_not_cut_on_a_tiny_terminal(self, hermes: Hermes, columns: int) -> None:
        hermes.store(*WIDE)
        _, _, *rows = hermes.on_terminal("sessions", "list", columns=columns, NO_COLOR="1")
        assert [row.split()[-1] for row in rows] == [session_id for session_id, *_ in WIDE]

    def test_long_id_does_not_narrow_the_other_columns(self, hermes: Hermes) -> None:
        hermes.store(("x" * 200, "cli", None, "Can you check the test failures?"))
        assert "Can you check the test failures?  30m ago" in hermes.on_terminal("sessions", "list", columns=100)[-1]

    def test_a_pipe_has_120_columns(self, hermes: Hermes) -> None:
        hermes.store((AUTH[0], "cli", "t" * 90, "w" * 60))
        assert {len(line) for line in hermes("sessions", "list").stdout.splitlines()[1:]} == {120}

    def test_columns_variable_overrides_the_terminal_width(self, hermes: Hermes) -> None:
        hermes.store((AUTH[0], "cli", "t" * 90, "w" * 60))
        assert "t" * 90 + "  " + "w" * 60 in hermes("sessions", "list", COLUMNS="300").stdout


class TestSafety:
    HOSTILE = ("id\x1b[2J", "te\x1b[31mle", "ti\u202etle", "\x1b]0;owned\x07 \x9b31m words \x08\x08\x7f")

    @pytest.mark.parametrize("title", [None, "a title"])
    def test_no_control_character_reaches_the_terminal(self, hermes: Hermes, title: str | None) -> None:
        session_id, source, _, words = self.HOSTILE
        hermes.store((session_id, source, title, words))
        text = "\n".join(hermes.on_terminal("sessions", "list", columns=200, NO_COLOR="1"))
        assert all(char.isprintable() or char == "\n" for char in text)
        assert r"\x1b]0;owned\x07 \x9b31m words" in text
        assert r"id\x1b[2J" in text

    def test_no_control_character_reaches_json_stats_or_stderr(self, hermes: Hermes) -> None:
        hermes.store(self.HOSTILE)
        for done in (
            hermes("sessions", "list", "--json"),
            hermes("sessions", "stats"),
            hermes("sessions", "list", "--source", "te\x1b[31mle"),
            hermes("sessions", "list", "--source", "other\x1b[31m"),
        ):
            assert all(char.isprintable() or char == "\n" for char in done.stdout + done.stderr)

    def test_json_has_the_stored_text(self, hermes: Hermes) -> None:
        hermes.store(self.HOSTILE)
        (item,) = hermes.json("sessions", "list")["items"]
        assert (item["id"], item["source"]) == self.HOSTILE[:2]

    def test_locale_without_unicode_gets_plain_lines(self, hermes: Hermes) -> None:
        hermes.store(AUTH, (WEATHER[0], "cli", None, "日本"))
        done = hermes("sessions", "list", PYTHONIOENCODING="ascii")
        assert done.returncode == 0
        _, rule, _, row = done.stdout.splitlines()
        assert set(rule) == {"-"}
        assert row.startswith("- ")
        assert r"\u65e5\u672c" in row


class TestStyle:
    def test_terminal_gets_a_bold_heading_only(self, hermes: Hermes) -> None:
        hermes.store(AUTH)
        header, *rest = hermes.on_terminal("sessions", "list")
        assert STYLES.findall(header) == ["\x1b[1m", "\x1b[0m"]
        assert STYLES.findall("".join(rest)) == []

    def test_no_color_removes_styles(self, hermes: Hermes) -> None:
        hermes.store(AUTH)
        assert "\x1b" not in "".join(hermes.on_terminal("sessions", "list", NO_COLOR="1"))

    def test_dumb_terminal_gets_no_styles(self, hermes: Hermes) -> None:
        hermes.store(AUTH)
        assert "\x1b" not in "".join(hermes.on_terminal("sessions", "list", TERM="dumb"))

    def test_pipe_gets_no_styles(self, hermes: Hermes) -> None:
        hermes.store(AUTH)
        assert "\x1b" not in hermes("sessions", "list").stdout


class TestOrder:
    @pytest.fixture(autouse=True)
    def old_one_spoken_in_again(self, hermes: Hermes) -> None:
        hermes.store(("newer", "cli", None, "hello"), ("older", "cli", None, "hello"))
        with SessionDB(hermes.database) as db:
            db.append_message("older", "user", "I am back")

    def test_list_is_sorted_by_activity(self, hermes: Hermes) -> None:
        assert [item["id"] for item in hermes.json("sessions", "list")["items"]] == ["older", "newer"]
        assert "Last Active" in hermes("sessions", "list", "--sort", "active").stdout

    def test_sort_by_start_shows_the_start(self, hermes: Hermes) -> None:
        assert [item["id"] for item in hermes.json("sessions", "list", "--sort", "started")["items"]] == [
            "newer",
            "older",
        ]
        header, _, *rows = hermes("sessions", "list", "--sort", "started").stdout.splitlines()
        assert "Started" in header
        assert "1h ago" in rows[-1]


class TestPages:
    @pytest.fixture(autouse=True)
    def twenty_five(self, hermes: Hermes) -> None:
        hermes.store(*((f"s{number:02}", "cli", None, "hello") for number in range(25)))

    def test_twenty_sessions_are_shown_and_all_counted(self, hermes: Hermes) -> None:
        done = hermes("sessions", "list")
        assert len(done.stdout.splitlines()) == 2 + 20
        assert done.stderr == "20 of 25 sessions (--limit for more)\n"

    def test_limit_above_the_total_shows_all(self, hermes: Hermes) -> None:
        assert hermes("sessions", "list", "--limit", "25").stderr == "25 of 25 sessions\n"

    @pytest.mark.parametrize("order", ["started", "active"])
    def test_following_next_shows_each_session_once(self, hermes: Hermes, order: str) -> None:
        found: list[str] = []
        page = hermes.json("sessions", "list", "--limit", "10", "--sort", order)
        while page["next"] is not None:
            found += [item["id"] for item in page["items"]]
            page = hermes.json("sessions", "list", "--limit", "10", "--sort", order, "--after", page["next"])
        found += [item["id"] for item in page["items"]]
        assert found == [f"s{number:02}" for number in range(25)]
        assert page["total"] == 25

    def test_page_after_the_last_is_empty(self, hermes: Hermes) -> None:
        last = hermes.json("sessions", "list", "--limit", "25")["items"][-1]["cursor"]
        done = hermes("sessions", "list", "--after", last)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr == "No sessions after this cursor, of 25 sessions.\n"

    def test_invalid_cursor_exits_with_2(self, hermes: Hermes) -> None:
        done = hermes("sessions", "list", "--after", "s07", "--json")
        assert (done.returncode, done.stdout) == (2, "")
        assert json.loads(done.stderr)["error"]["code"] == "invalid_value"


class TestChoice:
    @pytest.fixture(autouse=True)
    def of_every_kind(self, hermes: Hermes) -> None:
        hermes.store(
            AUTH, WEATHER, ("t", "tool", None, "x"), ("u", "subagent", None, "x"), ("put-away", "cli", None, "x")
        )
        with SessionDB(hermes.database) as db:
            db.set_session_archived("put-away", True)

    def test_agent_and_archived_sessions_are_only_counted(self, hermes: Hermes) -> None:
        assert [item["id"] for item in hermes.json("sessions", "list")["items"]] == [AUTH[0], WEATHER[0]]
        assert hermes("sessions", "list").stderr == (
            "2 of 2 sessions (1 more with --source tool; 1 more with --source subagent; 1 more with --archived)\n"
        )

    @pytest.mark.parametrize("source", ["tool", "subagent", "telegram"])
    def test_source_option_shows_only_that_source(self, hermes: Hermes, source: str) -> None:
        found = hermes.json("sessions", "list", "--source", source)
        assert [item["source"] for item in found["items"]] == [source]
        assert found["total"] == 1
        assert hermes("sessions", "list", "--source", source).stderr == f"1 of 1 session (source={source})\n"

    def test_source_of_agents_shows_sessions_that_belong_to_others(self, hermes: Hermes) -> None:
        with SessionDB(hermes.database) as db:
            db.create_session("delegate", "subagent", parent_session_id=AUTH[0], child_kind="delegate")
        found = hermes.json("sessions", "list", "--source", "subagent")
        assert {item["id"] for item in found["items"]} == {"u", "delegate"}
        assert found["total"] == 2
        assert "2 of 2 sessions (1 more with --source tool; 2 more with --source subagent;" in (
            hermes("sessions", "list").stderr
        )

    @pytest.mark.parametrize("option", ["--all", "-a"])
    def test_all_option_shows_every_session(self, hermes: Hermes, option: str) -> None:
        found = hermes.json("sessions", "list", option)
        assert {item["id"] for item in found["items"]} == {AUTH[0], WEATHER[0], "t", "u", "put-away"}
        assert found["total"] == 5
        assert hermes("sessions", "list", option).stderr == "5 of 5 sessions\n"

    def test_archived_option_reports_no_archived_sessions(self, hermes: Hermes) -> None:
        with SessionDB(hermes.database) as db:
            db.set_session_archived("put-away", False)
        result = hermes("sessions", "list", "--archived")
        assert (result.stdout, result.stderr) == ("", "No archived sessions.\n")

    def test_archived_option_shows_only_archived_sessions(self, hermes: Hermes) -> None:
        found = hermes.json("sessions", "list", "--archived")
        assert [(item["id"], item["archived"]) for item in found["items"]] == [("put-away", True)]
        assert found["total"] == 1

    def test_since_option_shows_only_recent_sessions(self, hermes: Hermes) -> None:
        found = hermes.json("sessions", "list", "--since", "1h")
        assert ([item["id"] for item in found["items"]], found["total"]) == ([AUTH[0]], 1)
        assert hermes("sessions", "list", "--since", "2099-01-01").stdout == ""
        assert hermes("sessions", "list", "--since", "soon").returncode == 2

    def test_unknown_source_lists_the_known_ones(self, hermes: Hermes) -> None:
        done = hermes("sessions", "list", "--source", "telegrm")
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.startswith("No sessions with source=telegrm. Sources with sessions: cli (2), ")

    def test_list_names_the_options_that_show_hidden_sessions(self, hermes: Hermes) -> None:
        with SessionDB(hermes.database) as db:
            db.delete_sessions([AUTH[0], WEATHER[0]])
        assert hermes("sessions", "list").stderr == (
            "No sessions to show, but 1 with --source tool, 1 with --source subagent, 1 with --archived.\n"
        )


class TestJson:
    def test_json_is_one_object(self, hermes: Hermes) -> None:
        hermes.store(AUTH)
        done = hermes("sessions", "list", "--json")
        found = json.loads(done.stdout)
        assert (list(found), done.stderr) == (["schema", "items", "total", "next"], "")
        assert (found["schema"], found["total"], found["next"]) == ("hermes.sessions/1", 1, None)
        (item,) = found["items"]
        assert (item["id"], item["source"], item["title"], item["preview"]) == AUTH
        assert (item["message_count"], item["archived"], item["root_id"]) == (1, False, AUTH[0])

    def test_json_leaves_out_prompts_and_configurations(self, hermes: Hermes) -> None:
        with SessionDB(hermes.database) as db:
            db.create_session("a", "cli", system_prompt="long prompt", model_config={"key": "secret"})
        done = hermes("sessions", "list", "--json")
        assert "long prompt" not in done.stdout
        assert "secret" not in done.stdout

    def test_a_compressed_conversation_is_one_item_that_names_its_root(self, hermes: Hermes) -> None:
        hermes.store(("root", "cli", None, "hello"))
        with SessionDB(hermes.database) as db:
            db.end_session("root", "compression")
            db.create_session("tip", "cli", parent_session_id="root", child_kind="compression")
        (item,) = hermes.json("sessions", "list")["items"]
        assert (item["id"], item["root_id"]) == ("tip", "root")


class TestNothing:
    @pytest.mark.parametrize("command", ["list", "stats"])
    def test_missing_database_has_no_sessions_and_is_not_created(self, hermes: Hermes, command: str) -> None:
        done = hermes("sessions", command)
        assert done.returncode == 0
        assert done.stderr.startswith(f"No sessions yet in {hermes.database}.")
        assert "HERMES_HOME" in done.stderr
        assert not hermes.home.exists()

    def test_without_a_database_json_is_an_empty_list(self, hermes: Hermes) -> None:
        assert hermes.json("sessions", "list") == {"schema": "hermes.sessions/1", "items": [], "total": 0, "next": None}

    def test_an_empty_database_has_no_sessions(self, hermes: Hermes) -> None:
        SessionDB(hermes.database).close()
        done = hermes("sessions", "list")
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.startswith("No sessions yet")


class TestFailure:
    @pytest.mark.parametrize("command", ["list", "stats"])
    def test_file_that_is_not_a_database_is_an_error_and_unchanged(self, hermes: Hermes, command: str) -> None:
        hermes.home.mkdir()
        hermes.database.write_bytes(b"these are my notes, not a database\n" * 100)
        done = hermes("sessions", command, "--json")
        assert (done.returncode, done.stdout) == (1, "")
        assert json.loads(done.stderr)["error"]["code"] == "not_a_database"
        assert hermes.database.read_bytes() == b"these are my notes, not a database\n" * 100

    @pytest.mark.parametrize("command", ["list", "stats"])
    def test_directory_as_database_is_an_error(self, hermes: Hermes, command: str) -> None:
        hermes.database.mkdir(parents=True)
        done = hermes("sessions", command)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"Error: {hermes.database} is a directory\nHint: ")

    def test_broken_link_as_database_is_an_error(self, hermes: Hermes) -> None:
        hermes.home.mkdir()
        hermes.database.symlink_to("missing.db")
        done = hermes("sessions", "list")
        assert (done.returncode, done.stdout) == (1, "")
        assert str(hermes.database) in done.stderr

    def test_file_as_home_is_an_error(self, hermes: Hermes) -> None:
        hermes.home.write_text("not a directory")
        assert hermes("sessions", "list").returncode == 1


class TestNeighbours:
    def test_list_works_while_another_program_writes(self, hermes: Hermes) -> None:
        hermes.store(AUTH)
        with SessionDB(hermes.database) as db:
            db.append_message(AUTH[0], "user", "and the tests")
            (item,) = hermes.json("sessions", "list")["items"]
        assert item["message_count"] == 2

    @pytest.mark.parametrize("version", ["v11", "v22"])
    def test_database_of_another_version_is_listed_and_unchanged(self, hermes: Hermes, version: str) -> None:
        content = gzip.decompress((OLD_FILES / f"{version}.db.gz").read_bytes())
        hermes.home.mkdir()
        hermes.database.write_bytes(content)
        found = hermes.json("sessions", "list")
        assert found["total"] == len(found["items"]) > 0
        assert hermes.database.read_bytes() == content
