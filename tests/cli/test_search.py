"""`hermes sessions search`: what it finds, and how that is narrowed, ordered and paged."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hermes.cli.sessions.group import COMMANDS
from hermes_state import SessionDB
from tests.cli.conftest import HOUR, KYOTO, STAGING, WIKI, Hermes, found_by, keep
from tests.cli.test_command import NOT_FOR_A_LIST, imported_by
from tests.cli.test_docs import section

OLD_FILES = Path(__file__).parents[1] / "upgrade" / "files"


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


class TestStart:
    def test_search_loads_what_it_needs_and_nothing_else(self, talks: Hermes) -> None:
        assert imported_by(talks, "sessions", "search", "docker") & NOT_FOR_A_LIST == set()

    def test_a_list_does_not_load_search(self, talks: Hermes) -> None:
        loaded = imported_by(talks, "sessions", "list")
        assert {each for each in loaded if each.startswith(("hermes.cli.sessions.search", "hermes.query"))} == set()

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
