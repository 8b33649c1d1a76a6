"""`hermes sessions search`."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import apsw
import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.cli.app import run
from hermes.cli.excerpt import excerpt
from hermes.cli.search import Found, Request, remarks, search
from hermes.cli.sessions import COMMANDS
from hermes.cli.terminal import width_of
from hermes.state.results import SearchResults
from hermes_state import SessionDB
from tests.cli.conftest import Hermes
from tests.cli.test_command import NOT_FOR_A_LIST, imported_by
from tests.cli.test_docs import section

OLD_FILES = Path(__file__).parents[1] / "upgrade" / "files"
STYLES = re.compile(r"\x1b\[\d+m")
HIT, PLAIN = "\x1b[31m\x1b[1m", "\x1b[0m"
HOUR, DAY = 3600, 86_400

STAGING = "20261115_141500_5be01f77"
WIKI = "20261114_143022_e5f60718"
KYOTO = "20261112_101500_f9a8b7c6"


def keep(hermes: Hermes, session_id: str, source: str, title: str | None, age_s: float, *said: tuple[str, Any]) -> None:
    """Store a session that began so long ago; its messages are a minute apart. A tool is named as `tool:name`."""
    at = time.time() - age_s
    with SessionDB(hermes.database) as db:
        db.create_session(session_id, source, started_at=at)
        messages = []
        for number, (speaker, content) in enumerate(said):
            role, _, tool = speaker.partition(":")
            messages.append(
                {"role": role, "content": content, "timestamp": at + 60 * number, "tool_name": tool or None}
            )
        db.append_messages(session_id, messages)
        if title:
            db.set_session_title(session_id, title)


@pytest.fixture
def talks(hermes: Hermes) -> Hermes:
    """Three sessions of three days."""
    keep(
        hermes,
        KYOTO,
        "discord",
        "京都旅行の計画",
        3.5 * DAY,
        ("user", "来月の京都旅行の計画を立てるのを手伝ってください"),
        ("assistant", "京都なら嵐山と伏見稲荷がおすすめです。🍁"),
    )
    keep(hermes, WIKI, "cli", None, 30 * HOUR, ("user", "Write a docker compose file for the deploy of the wiki"))
    keep(
        hermes,
        STAGING,
        "telegram",
        "staging deploy",
        7.5 * HOUR,
        ("user", "The docker deploy to staging\n\n   fails again"),
        ("tool:terminal", "Error response from daemon: no space left on device"),
        ("assistant", "The disk is full. docker builder prune frees 38 GB; the deploy runs through then."),
    )
    return hermes


def found_by(hermes: Hermes, *args: str) -> list[int]:
    """The ids of the messages that a search answers."""
    return [item["id"] for item in hermes.json("sessions", "search", *args)["items"]]


class TestPage:
    def test_shows_messages_by_session(self, talks: Hermes) -> None:
        done = talks("sessions", "search", "deploy", "docker")
        assert done.returncode == 0
        assert done.stdout.splitlines() == [
            f"staging deploy  {STAGING}  telegram  started 7h ago",
            "  user       7h ago     The docker deploy to staging fails again",
            "  assistant  7h ago     The disk is full. docker builder prune frees 38 GB; the deploy runs through then.",
            "",
            f"Untitled  {WIKI}  cli  started yesterday",
            "  user       yesterday  Write a docker compose file for the deploy of the wiki",
        ]
        assert done.stderr == "3 messages in 2 sessions\n"

    def test_sessions_come_in_the_order_of_their_best_message(self, hermes: Hermes) -> None:
        keep(hermes, "many", "cli", None, HOUR, ("user", "zebra"), ("user", "zebra"), ("user", "zebra"))
        keep(hermes, "one", "cli", None, 2 * HOUR, ("user", "zebra"))
        items = hermes.json("sessions", "search", "zebra", "--sort", "oldest")["items"]
        assert [item["session_id"] for item in items] == ["one", "many", "many", "many"]
        lines = hermes("sessions", "search", "zebra", "--sort", "oldest").stdout.splitlines()
        assert [line.split()[1] for line in lines if line.startswith("Untitled")] == ["one", "many"]

    def test_messages_that_lie_apart_are_shown_under_one_heading(self, hermes: Hermes) -> None:
        keep(hermes, "outer", "cli", None, 3 * HOUR, ("user", "zebra"))
        keep(hermes, "inner", "cli", None, 2 * HOUR, ("user", "zebra"))
        with SessionDB(hermes.database) as db:
            db.append_message("outer", "user", "zebra")
        done = hermes("sessions", "search", "zebra", "--sort", "newest")
        assert [line.split()[1] for line in done.stdout.splitlines() if line[:1] == "U"] == ["outer", "inner"]
        assert done.stderr == "3 messages in 2 sessions\n"

    def test_chinese_japanese_and_korean_are_found_without_blanks(self, talks: Hermes) -> None:
        lines = talks("sessions", "search", "京都").stdout.splitlines()
        assert lines[0] == f"京都旅行の計画  {KYOTO}  discord  started 3d ago"
        assert sorted(lines[1:]) == [
            "  assistant  3d ago  京都なら嵐山と伏見稲荷がおすすめです。🍁",
            "  user       3d ago  来月の京都旅行の計画を立てるのを手伝ってください",
        ]

    def test_a_tool_is_named(self, talks: Hermes) -> None:
        assert "  tool terminal  7h ago  Error response" in talks("sessions", "search", "daemon").stdout

    def test_archived_sessions_and_those_of_agents_are_searched(self, hermes: Hermes) -> None:
        keep(hermes, "put-away", "cli", None, HOUR, ("user", "zebra"))
        keep(hermes, "helper", "subagent", None, HOUR, ("user", "zebra"))
        with SessionDB(hermes.database) as db:
            db.set_session_archived("put-away", True)
        assert len(found_by(hermes, "zebra")) == 2


class TestQuery:
    def test_words_need_no_quotes(self, talks: Hermes) -> None:
        assert found_by(talks, "docker", "compose", "wiki") == found_by(talks, "docker compose wiki") == [3]

    def test_a_phrase_is_words_side_by_side(self, talks: Hermes) -> None:
        assert found_by(talks, '"docker deploy"') == [4]

    @pytest.mark.parametrize("query", [("docker", "-wiki"), ("-wiki", "docker")])
    def test_words_that_begin_with_a_minus_go_behind_two(self, talks: Hermes, query: tuple[str, ...]) -> None:
        done = talks("sessions", "search", "--json", "--role", "user", "--", *query)
        assert [item["id"] for item in json.loads(done.stdout)["items"]] == [4]

    def test_a_minus_where_an_option_may_be_is_explained(self, talks: Hermes) -> None:
        done = talks("sessions", "search", "deploy", "-docker")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("Error: No such option '-d'.")
        assert "hermes sessions search -- -docker deploy" in done.stderr

    @pytest.mark.parametrize("query", [(), ("",), ("  ", "\t")])
    def test_an_empty_one_is_answered_with_an_example(self, hermes: Hermes, query: tuple[str, ...]) -> None:
        done = hermes("sessions", "search", *query)
        assert (done.returncode, done.stdout) == (2, "")
        assert "`hermes sessions search docker deploy`" in done.stderr

    @pytest.mark.parametrize("query", ['"', "(", "*", "AND", "'; DROP TABLE messages --", "🍁", "\udcff", "a" * 10_000])
    def test_nothing_that_can_be_typed_is_an_error(self, talks: Hermes, query: str) -> None:
        done = talks("sessions", "search", query)
        assert done.returncode == 0
        assert "Traceback" not in done.stderr


class TestChoice:
    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            (["--source", "cli"], [3]),
            (["-s", "cli", "-s", "telegram"], [3, 4, 6]),
            (["--exclude-source", "cli"], [4, 6]),
            (["--exclude-source", "cli", "--exclude-source", "telegram"], []),
            (["--role", "assistant"], [6]),
            (["--role", "assistant", "--role", "user"], [3, 4, 6]),
            (["--session", STAGING], [4, 6]),
            (["--session", STAGING, "--session", WIKI], [3, 4, 6]),
            (["--session", STAGING[:10]], [4, 6]),
            (["--since", "12h"], [4, 6]),
            (["--until", "12h"], [3]),
            (["--since", "2d", "--until", "1d"], [3]),
            (["--since", "2w", "--until", "today"], [3, 4, 6]),
        ],
    )
    def test_an_option_narrows(self, talks: Hermes, options: list[str], expected: list[int]) -> None:
        assert sorted(found_by(talks, "docker", *options)) == expected

    def test_a_day_counts_from_its_first_moment_to_its_last(self, hermes: Hermes) -> None:
        with SessionDB(hermes.database) as db:
            db.create_session("s", "cli")
            for moment in ("2026-01-30T23:59:59", "2026-01-31T00:00:00", "2026-01-31T23:59:59", "2026-02-01T00:00:00"):
                at = time.mktime(time.strptime(moment, "%Y-%m-%dT%H:%M:%S"))
                db.append_messages("s", [{"role": "user", "content": "zebra", "timestamp": at}])
        assert sorted(found_by(hermes, "zebra", "--since", "2026-01-31", "--until", "2026-01-31")) == [2, 3]
        assert found_by(hermes, "zebra", "--since", "2026-01-31T12:00", "--until", "2026-01-31T23:59:59.5") == [3]

    @pytest.mark.parametrize(("sort", "expected"), [("newest", [6, 4, 3]), ("oldest", [3, 4, 6])])
    def test_the_order_can_be_chosen(self, talks: Hermes, sort: str, expected: list[int]) -> None:
        assert found_by(talks, "docker", "--sort", sort) == expected

    def test_what_was_rewound_is_counted_and_can_be_shown(self, talks: Hermes) -> None:
        with SessionDB(talks.database) as db:
            db.rewind_to_message(STAGING, 4)
        done = talks("sessions", "search", "docker")
        assert done.stderr.splitlines() == [
            "1 message in 1 session",
            "Note: 2 more with --include-rewound",
        ]
        assert talks.json("sessions", "search", "docker")["search"]["hidden"] == {"rewound": 2}
        assert sorted(found_by(talks, "docker", "--include-rewound")) == [3, 4, 6]


class TestMistakes:
    @pytest.mark.parametrize("option", ["--since", "--until"])
    def test_a_moment_that_is_none_is_answered_with_those_that_are(self, hermes: Hermes, option: str) -> None:
        done = hermes("sessions", "search", "docker", option, "last week")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.splitlines() == [
            f"Error: {option} does not understand 'last week'",
            "Hint: say 2026-01-31, 2026-01-31T10:00, today, yesterday, or so long ago: 30m, 12h, 7d, 2w",
        ]

    def test_a_period_without_a_moment_is_a_mistake(self, hermes: Hermes) -> None:
        done = hermes("sessions", "search", "docker", "--since", "today", "--until", "yesterday")
        assert (done.returncode, done.stdout) == (2, "")
        assert "--since today is later than --until yesterday" in done.stderr

    @pytest.mark.parametrize(
        "options", [["--limit", "0"], ["-n", "many"], ["--offset", "-1"], ["--sort", "best"], ["--limit", "9" * 30]]
    )
    def test_a_value_that_cannot_be_used_ends_with_2(self, talks: Hermes, options: list[str]) -> None:
        done = talks("sessions", "search", "docker", *options)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("Error: ")

    @pytest.mark.parametrize("session_id", ["nope", "2026111"])
    def test_a_session_that_is_not_there_or_not_the_only_one_ends_with_3(self, talks: Hermes, session_id: str) -> None:
        done = talks("sessions", "search", "docker", "--session", session_id)
        assert (done.returncode, done.stdout) == (3, "")
        assert session_id in done.stderr

    @pytest.mark.parametrize(
        ("args", "code"),
        [
            (["docker", "--since", "x"], "invalid_value"),
            (["docker", "--session", "nope"], "unknown_session"),
            ([], "usage"),
            (["-docker"], "usage"),
        ],
    )
    def test_is_an_object_where_json_was_asked_for(self, talks: Hermes, args: list[str], code: str) -> None:
        done = talks("sessions", "search", "--json", *args)
        assert done.stdout == ""
        assert json.loads(done.stderr)["error"]["code"] == code


class TestPages:
    @pytest.fixture(autouse=True)
    def twenty_five(self, hermes: Hermes) -> None:
        keep(hermes, "s", "cli", None, HOUR, *(("user", f"zebra {number}") for number in range(25)))

    def test_twenty_are_shown_and_the_next_command_is_named(self, hermes: Hermes) -> None:
        done = hermes("sessions", "search", "zebra")
        assert len(done.stdout.splitlines()) == 1 + 20
        assert done.stderr.splitlines() == [
            "20 messages in 1 session",
            "More: hermes sessions search --offset 20 zebra",
        ]

    def test_following_the_named_command_shows_each_message_once(self, hermes: Hermes) -> None:
        args = ["sessions", "search", "-n", "10", "--source", "cli", "--since", "7d", "--include-rewound"]
        args += ["--sort", "oldest", "--role", "user", "--role", "tool", "--", "zebra", "-it's"]
        shown: list[str] = []
        for _ in range(3):
            done = hermes(*args)
            shown += re.findall(r"zebra \d+", done.stdout)
            more = re.search(r"^More: hermes (.*)", done.stderr, flags=re.MULTILINE)
            args = shlex.split(more[1]) if more else []
        assert shown == [f"zebra {number}" for number in range(25)]
        assert args == []

    def test_json_has_the_offset_of_the_next_page(self, hermes: Hermes) -> None:
        pages = [hermes.json("sessions", "search", "zebra", "-n", "10", "--offset", f"{at}") for at in (0, 10, 20, 30)]
        assert [(len(page["items"]), page["total"], page["next"]) for page in pages] == [
            (10, None, 10),
            (10, None, 20),
            (5, 25, None),
            (0, None, None),
        ]

    def test_a_limit_that_takes_all_leaves_nothing_to_name(self, hermes: Hermes) -> None:
        done = hermes("sessions", "search", "zebra", "--limit", "25")
        assert done.stderr == "25 messages in 1 session\n"

    def test_behind_the_last_one_there_is_nothing(self, hermes: Hermes) -> None:
        done = hermes("sessions", "search", "zebra", "--offset", "25")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "No messages behind the first 25.\n")


class TestNothing:
    def test_is_an_answer(self, talks: Hermes) -> None:
        done = talks("sessions", "search", "qq", "zz")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "No messages match: qq zz\n")

    def test_names_what_left_messages_out(self, talks: Hermes) -> None:
        done = talks("sessions", "search", "qq", "--role", "usr", "--since", "7d")
        assert done.stderr == "No messages match: qq (within --role, --since)\n"

    def test_a_source_that_is_not_there_is_answered_with_those_that_are(self, talks: Hermes) -> None:
        told = talks("sessions", "search", "qq", "--source", "telegrm").stderr.splitlines()
        assert told == [
            "No messages match: qq (within --source)",
            "Note: no session is from telegrm; there are sessions of cli (1), discord (1), telegram (1)",
        ]

    def test_without_a_database_there_are_no_sessions_and_none_is_made(self, hermes: Hermes) -> None:
        done = hermes("sessions", "search", "docker")
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.startswith(f"No sessions yet: nothing is stored in {hermes.database}.")
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

    def test_a_file_that_is_no_database_is_an_error(self, hermes: Hermes) -> None:
        hermes.home.mkdir()
        hermes.database.write_bytes(b"these are my notes, not a database\n" * 100)
        done = hermes("sessions", "search", "notes", "--json")
        assert (done.returncode, done.stdout) == (1, "")
        assert json.loads(done.stderr)["error"]["code"] == "not_a_database"


class TestJson:
    def test_is_one_object(self, talks: Hermes) -> None:
        done = talks("sessions", "search", "daemon", "--json")
        found = json.loads(done.stdout)
        assert (list(found), done.stderr) == (["schema", "items", "total", "next", "search"], "")
        assert (found["schema"], found["total"], found["next"]) == ("hermes.search/1", 1, None)
        assert found["search"] == {"path": "words", "degraded": False, "complete": True, "repairs": [], "hidden": {}}

    def test_an_item_is_the_message_with_all_that_search_tells(self, talks: Hermes) -> None:
        with SessionDB(talks.database, read_only=True) as db:
            expected = db.search_messages("daemon")
        (item,) = talks.json("sessions", "search", "daemon")["items"]
        assert item == expected[0]
        assert (item["role"], item["tool_name"], item["title"]) == ("tool", "terminal", "staging deploy")
        assert ">>>daemon<<<" in item["snippet"]
        assert len(item["context"]) == 3

    def test_every_field_is_in_the_guide(self, talks: Hermes) -> None:
        found = talks.json("sessions", "search", "daemon")
        fields = [*found["search"], *found["items"][0]]
        assert [field for field in fields if f"`{field}`" not in section("hermes sessions search")] == []


class TestStyle:
    def test_a_terminal_shows_hits_and_headings(self, talks: Hermes) -> None:
        heading, first, _ = talks.on_terminal("sessions", "search", "京都", columns=100)
        assert STYLES.findall(heading) == ["\x1b[1m", "\x1b[0m"]
        assert f"{HIT}京都{PLAIN}" in first
        assert len(STYLES.findall(first)) == 3

    @pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
    def test_a_terminal_that_is_to_be_plain_shows_plain_text(self, talks: Hermes, variables: dict[str, str]) -> None:
        text = "\n".join(talks.on_terminal("sessions", "search", "docker", columns=100, **variables))
        assert "The docker deploy to staging fails again" in text
        assert re.search(r"\x1b|>>>|<<<", text) is None

    def test_a_pipe_carries_plain_text(self, talks: Hermes) -> None:
        assert re.search(r"\x1b|>>>|<<<", talks("sessions", "search", "docker").stdout) is None

    def test_marks_of_the_message_itself_stay(self, hermes: Hermes) -> None:
        keep(hermes, "a", "cli", None, HOUR, ("user", ">>> import zebra\n<<<<<<< HEAD\na>zebra<b >>> x <<<"))
        assert (
            hermes("sessions", "search", "zebra")
            .stdout.splitlines()[1]
            .endswith(">>> import zebra <<<<<<< HEAD a>zebra<b >>> x <<<")
        )
        (_, line) = hermes.on_terminal("sessions", "search", "zebra", columns=100)
        assert line.endswith(f">>> import {HIT}zebra{PLAIN} <<<<<<< HEAD a>{HIT}zebra{PLAIN}<b >>> x <<<")


class TestWidths:
    TEXTS = (
        "認証モジュールをリファクタリングしてください、そして京都旅行の計画も立ててください。" * 3,
        "👍🏽 thumbs ❤️ hearts 🇩🇪 flags 👨\u200d👩\u200d👧 families and 京都 all over the place " * 4,
        "plain words " * 12 + "京都" + " and more plain words" * 5,
        "https://example.org/" + "x" * 300 + "/京都",
        "京都",
    )

    @pytest.fixture(autouse=True)
    def wide(self, hermes: Hermes) -> None:
        keep(
            hermes,
            "20250305_091523_00000001",
            "a source with a long name",
            "日本語のとても長いタイトルです、もっと長い 👨\u200d👩\u200d👧",
            30 * DAY,
            *(("user", text) for text in self.TEXTS),
            ("tool:a_tool_with_a_very_long_name", "京都 " + "output " * 30),
            ("ein Sprecher 日本語日本語日本語日本語", "京都"),
        )

    @pytest.mark.parametrize("columns", [30, 40, 41, 60, 80, 100, 200])
    def test_no_line_is_wider_than_the_terminal(self, hermes: Hermes, columns: int) -> None:
        lines = hermes.on_terminal("sessions", "search", "京都", columns=columns)
        assert max(width_of(STYLES.sub("", line)) for line in lines) <= columns

    @pytest.mark.parametrize("columns", [30, 40, 80, 200])
    def test_every_message_shows_what_was_found(self, hermes: Hermes, columns: int) -> None:
        text = "\n".join(hermes.on_terminal("sessions", "search", "京都", columns=columns))
        assert text.count(f"{HIT}京") >= len(self.TEXTS) + 2

    @pytest.mark.parametrize("columns", [20, 40])
    def test_an_id_is_whole_on_the_smallest_terminal(self, hermes: Hermes, columns: int) -> None:
        lines = hermes.on_terminal("sessions", "search", "京都", columns=columns, NO_COLOR="1")
        assert "  20250305_091523_00000001" in lines

    def test_the_variable_columns_wins(self, hermes: Hermes) -> None:
        lines = hermes("sessions", "search", "京都", COLUMNS="40").stdout.splitlines()
        assert 30 < max(map(width_of, lines)) <= 40

    def test_a_terminal_of_one_column_is_no_failure(self, hermes: Hermes) -> None:
        assert hermes("sessions", "search", "京都", COLUMNS="1").returncode == 0


class TestSafety:
    def test_no_control_character_reaches_the_terminal(self, hermes: Hermes) -> None:
        hostile = "\x1b]0;owned\x07 \x9b31m zebra\x1b[2J \x08\x08\x7f ti\u202etle"
        keep(hermes, "id\x1b[2J", "te\x1b[31mle", None, HOUR, (f"tool:{hostile}", hostile), ("us\x1b[0mer", hostile))
        text = "\n".join(hermes.on_terminal("sessions", "search", "zebra", columns=200, NO_COLOR="1"))
        assert all(char.isprintable() or char == "\n" for char in text)
        assert r"\x1b]0;owned\x07 \x9b31m zebra\x1b[2J" in text
        assert r"id\x1b[2J" in text

    def test_nor_from_what_was_typed(self, talks: Hermes) -> None:
        for args in (["\x1b[31mqq"], ["qq", "-s", "\x1b[31m"], ["qq", "--since", "\x1b[31m"], ["--\x1b[31m"]):
            done = talks("sessions", "search", *args)
            assert all(char.isprintable() or char == "\n" for char in done.stdout + done.stderr)

    def test_json_gives_back_what_was_stored(self, hermes: Hermes) -> None:
        keep(hermes, "id\x1b[2J", "cli", None, HOUR, ("user", "zebra \x1b[31m"))
        done = hermes("sessions", "search", "zebra", "--json")
        assert done.stdout.isascii()
        assert "\x1b" not in done.stdout
        assert json.loads(done.stdout)["items"][0]["snippet"] == ">>>zebra<<< \x1b[31m"

    def test_a_locale_without_unicode_is_no_failure(self, talks: Hermes) -> None:
        done = talks("sessions", "search", "京都", PYTHONIOENCODING="ascii")
        assert done.returncode == 0
        assert r"\u4eac\u90fd" in done.stdout


class TestNotes:
    def test_tell_how_a_query_was_understood(self, talks: Hermes) -> None:
        done = talks("sessions", "search", "ocke", "--role", "assistant")
        assert "docker builder prune" in done.stdout
        assert done.stderr.splitlines() == [
            "1 message in 1 session",
            "Note: no message here has the word ocke: looked inside of words",
        ]

    def test_tell_of_an_index_that_cannot_be_read(self, hermes: Hermes) -> None:
        keep(hermes, "a", "cli", None, HOUR, *(("user", f"zebra {number}") for number in range(600)))
        connection = apsw.Connection(str(hermes.database))
        connection.execute("DELETE FROM messages_fts_data WHERE id > 10").fetchall()
        connection.close()
        done = hermes("sessions", "search", "zebra", "-n", "600")
        assert done.stderr.splitlines() == [
            "600 messages in 1 session",
            "Note: the search index is damaged or still being built; the messages themselves were read",
        ]

    def test_tell_of_a_search_that_was_stopped(
        self, talks: Hermes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("HERMES_HOME", str(talks.home))
        monkeypatch.setattr("hermes.cli.search.BUDGET_S", -1.0)
        assert run(["sessions", "search", "docker", "OR", "*prune*"]) == 0
        assert "Note: the search stopped after " in capsys.readouterr().err

    def test_say_what_to_do_about_a_search_that_was_stopped(self) -> None:
        context = click.Context(search, info_name="search")
        found = Found(SearchResults(complete=False), sources={"cli": 1})
        assert remarks(found, Request("docker"), context, Path("state.db")) == [
            "No messages match: docker",
            "Note: the search stopped after 5 s, there may be more; narrow it with --since, --source or more words",
        ]

    def test_a_search_that_was_stopped_does_not_know_the_total(self) -> None:
        assert Found(SearchResults(complete=False)).total(Request("docker")) is None


class TestExcerpts:
    @pytest.mark.parametrize(
        ("snippet", "width", "lines"),
        [
            ("", 20, []),
            ("short >>>hit<<<", 20, ["short hit"]),
            ("one two three four >>>five<<<", 12, ["…three four", "five"]),
            ("one\n\n two\t three", 40, ["one two three"]),
            ("a >>>b c<<< d", 4, ["a b", "c d"]),
            ("...cut at >>>both<<< ends...", 40, ["…cut at both ends…"]),
            ("日本語の>>>京都<<<です", 8, ["日本語の", "京都です"]),
            ("x" * 30 + ">>>hit<<<", 10, ["…xxxxxxxxx", "xxhit"]),
        ],
    )
    def test_are_wrapped_and_cut_around_the_first_hit(self, snippet: str, width: int, lines: list[str]) -> None:
        assert excerpt(snippet, width) == lines

    def test_a_hit_far_behind_is_shown_with_what_comes_before_and_after(self) -> None:
        lines = excerpt("words " * 20 + ">>>hit<<< and after " + "words " * 20, 30)
        assert lines == ["…words hit and after words", "words words words words words…"]

    GLYPHS = st.sampled_from([*"ab 日本\n\x1b<>", "e\u0301", "👨\u200d👩\u200d👧", "🇩🇪", "❤\ufe0f", "क्षि"])
    TEXTS = st.lists(GLYPHS, max_size=120).map("".join)

    @given(TEXTS, TEXTS, st.integers(min_value=8, max_value=50))
    def test_always_fit_and_show_the_first_hit(self, before: str, after: str, width: int) -> None:
        lines = excerpt(f"{before} >>>HIT<<< {after}", width)
        assert len(lines) <= 2
        assert max(map(width_of, lines)) <= width
        assert "HIT" in "".join(lines)


class TestStart:
    def test_search_loads_what_it_needs_and_nothing_else(self, talks: Hermes) -> None:
        assert imported_by(talks, "sessions", "search", "docker") & NOT_FOR_A_LIST == set()

    def test_a_list_does_not_load_search(self, talks: Hermes) -> None:
        loaded = imported_by(talks, "sessions", "list")
        assert {each for each in loaded if each.startswith(("hermes.cli.search", "hermes.query"))} == set()

    def test_its_group_says_of_it_what_it_says_of_itself(self) -> None:
        summaries = {name: lazy.load().get_short_help_str(limit=200) for name, lazy in COMMANDS.items()}
        assert summaries == {name: lazy.summary for name, lazy in COMMANDS.items()}

    def test_help_names_it_and_shows_the_syntax(self, hermes: Hermes) -> None:
        assert re.search(r"search +Find messages by their words\.", hermes("sessions").stdout)
        assert "'\"exact phrase\"'" in hermes("sessions", "search", "--help").stdout


class TestNeighbours:
    def test_what_a_program_has_just_written_is_found(self, talks: Hermes) -> None:
        with SessionDB(talks.database) as db:
            added = db.append_message(WIKI, "user", "zebra")
            assert found_by(talks, "zebra") == [added]

    @pytest.mark.parametrize("version", ["v11", "v22"])
    def test_a_file_of_another_version_is_searched_and_not_changed(self, hermes: Hermes, version: str) -> None:
        content = gzip.decompress((OLD_FILES / f"{version}.db.gz").read_bytes())
        hermes.home.mkdir()
        hermes.database.write_bytes(content)
        assert "getUserById" in hermes("sessions", "search", "parser", "OR", "getUserById").stdout
        assert hermes.database.read_bytes() == content

    def test_a_reader_that_leaves_is_no_failure(self, talks: Hermes) -> None:
        command = f"{shlex.join([sys.executable, '-m', 'hermes.cli.main'])} sessions search docker | true"
        done = subprocess.run(["sh", "-c", command], env=talks.environment(), capture_output=True, text=True)
        assert "Traceback" not in done.stderr
