"""`hermes sessions search`: hits, options, order and pages."""

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
from tests.cli.conftest import HOUR, KYOTO, STAGING, WIKI, Hermes, search_ids, store_session
from tests.cli.test_command import NOT_FOR_A_LIST, imported_by
from tests.cli.test_docs import section

OLD_FILES = Path(__file__).parents[1] / "upgrade" / "files"


class TestPage:
    def test_hits_are_grouped_by_session(self, talks: Hermes) -> None:
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
        store_session(hermes, "many", "cli", None, HOUR, ("user", "zebra"), ("user", "zebra"), ("user", "zebra"))
        store_session(hermes, "one", "cli", None, 2 * HOUR, ("user", "zebra"))
        items = hermes.json("sessions", "search", "zebra", "--sort", "oldest")["items"]
        assert [item["session_id"] for item in items] == ["one", "many", "many", "many"]
        lines = hermes("sessions", "search", "zebra", "--sort", "oldest").stdout.splitlines()
        assert [line.split()[1] for line in lines if line.startswith("Untitled")] == ["one", "many"]

    def test_distant_messages_of_a_session_share_one_heading(self, hermes: Hermes) -> None:
        store_session(hermes, "outer", "cli", None, 3 * HOUR, ("user", "zebra"))
        store_session(hermes, "inner", "cli", None, 2 * HOUR, ("user", "zebra"))
        with SessionDB(hermes.database) as db:
            db.append_message("outer", "user", "zebra")
        done = hermes("sessions", "search", "zebra", "--sort", "newest")
        assert [line.split()[1] for line in done.stdout.splitlines() if line[:1] == "U"] == ["outer", "inner"]
        assert done.stderr == "3 messages in 2 sessions\n"

    def test_cjk_text_is_found_without_spaces(self, talks: Hermes) -> None:
        lines = talks("sessions", "search", "京都").stdout.splitlines()
        assert lines[0] == f"京都旅行の計画  {KYOTO}  discord  started 3d ago"
        assert sorted(lines[1:]) == [
            "  assistant  3d ago  京都なら嵐山と伏見稲荷がおすすめです。🍁",
            "  user       3d ago  来月の京都旅行の計画を立てるのを手伝ってください",
        ]

    def test_hit_shows_the_tool_name(self, talks: Hermes) -> None:
        assert "  tool terminal  7h ago  Error response" in talks("sessions", "search", "daemon").stdout

    def test_archived_sessions_and_those_of_agents_are_searched(self, hermes: Hermes) -> None:
        store_session(hermes, "put-away", "cli", None, HOUR, ("user", "zebra"))
        store_session(hermes, "helper", "subagent", None, HOUR, ("user", "zebra"))
        with SessionDB(hermes.database) as db:
            db.set_session_archived("put-away", True)
        assert len(search_ids(hermes, "zebra")) == 2


class TestQuery:
    def test_query_words_need_no_quotes(self, talks: Hermes) -> None:
        assert search_ids(talks, "docker", "compose", "wiki") == search_ids(talks, "docker compose wiki") == [3]

    def test_phrase_matches_adjacent_words(self, talks: Hermes) -> None:
        assert search_ids(talks, '"docker deploy"') == [4]

    @pytest.mark.parametrize("query", [("docker", "-wiki"), ("-wiki", "docker")])
    def test_words_with_a_minus_sign_follow_two_dashes(self, talks: Hermes, query: tuple[str, ...]) -> None:
        done = talks("sessions", "search", "--json", "--role", "user", "--", *query)
        assert [item["id"] for item in json.loads(done.stdout)["items"]] == [4]

    def test_error_explains_words_with_a_minus_sign(self, talks: Hermes) -> None:
        done = talks("sessions", "search", "deploy", "-docker")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("Error: No such option '-d'.")
        assert "hermes sessions search -- -docker deploy" in done.stderr

    @pytest.mark.parametrize("query", [(), ("",), ("  ", "\t")])
    def test_empty_query_gets_an_example(self, hermes: Hermes, query: tuple[str, ...]) -> None:
        done = hermes("sessions", "search", *query)
        assert (done.returncode, done.stdout) == (2, "")
        assert "`hermes sessions search docker deploy`" in done.stderr

    @pytest.mark.parametrize("query", ['"', "(", "*", "AND", "'; DROP TABLE messages --", "🍁", "\udcff", "a" * 10_000])
    def test_no_query_is_a_syntax_error(self, talks: Hermes, query: str) -> None:
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
            (["--session", "staging deploy"], [4, 6]),
            (["--session", "Staging Deploy"], [4, 6]),
            (["--since", "12h"], [4, 6]),
            (["--until", "12h"], [3]),
            (["--since", "2d", "--until", "1d"], [3]),
            (["--since", "2w", "--until", "today"], [3, 4, 6]),
        ],
    )
    def test_options_narrow_the_search(self, talks: Hermes, options: list[str], expected: list[int]) -> None:
        assert sorted(search_ids(talks, "docker", *options)) == expected

    def test_day_counts_from_its_start_to_its_end(self, hermes: Hermes) -> None:
        with SessionDB(hermes.database) as db:
            db.create_session("s", "cli")
            for moment in ("2026-01-30T23:59:59", "2026-01-31T00:00:00", "2026-01-31T23:59:59", "2026-02-01T00:00:00"):
                at = time.mktime(time.strptime(moment, "%Y-%m-%dT%H:%M:%S"))
                db.append_messages("s", [{"role": "user", "content": "zebra", "timestamp": at}])
        assert sorted(search_ids(hermes, "zebra", "--since", "2026-01-31", "--until", "2026-01-31")) == [2, 3]
        assert search_ids(hermes, "zebra", "--since", "2026-01-31T12:00", "--until", "2026-01-31T23:59:59.5") == [3]

    @pytest.mark.parametrize(("sort", "expected"), [("newest", [6, 4, 3]), ("oldest", [3, 4, 6])])
    def test_sort_option_sets_the_order(self, talks: Hermes, sort: str, expected: list[int]) -> None:
        assert search_ids(talks, "docker", "--sort", sort) == expected

    def test_undone_messages_are_counted_and_can_be_shown(self, talks: Hermes) -> None:
        with SessionDB(talks.database) as db:
            db.rewind_to_message(STAGING, 4)
        done = talks("sessions", "search", "docker")
        assert done.stderr.splitlines() == [
            "1 message in 1 session",
            "Note: 2 more with --include-undone",
        ]
        assert talks.json("sessions", "search", "docker")["search"]["hidden"] == {"rewound": 2}
        assert sorted(search_ids(talks, "docker", "--include-undone")) == [3, 4, 6]
        assert sorted(search_ids(talks, "docker", "--include-rewound")) == [3, 4, 6]


class TestPages:
    @pytest.fixture(autouse=True)
    def twenty_five(self, hermes: Hermes) -> None:
        store_session(hermes, "s", "cli", None, HOUR, *(("user", f"zebra {number}") for number in range(25)))

    def test_twenty_hits_are_shown_with_the_next_command(self, hermes: Hermes) -> None:
        done = hermes("sessions", "search", "zebra")
        assert len(done.stdout.splitlines()) == 1 + 20
        assert done.stderr.splitlines() == [
            "20 messages in 1 session",
            "More: hermes sessions search --offset 20 zebra",
        ]

    def test_next_commands_show_each_message_once(self, hermes: Hermes) -> None:
        args = ["sessions", "search", "-n", "10", "--source", "cli", "--since", "7d", "--include-undone"]
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

    def test_limit_above_the_total_names_no_next_command(self, hermes: Hermes) -> None:
        done = hermes("sessions", "search", "zebra", "--limit", "25")
        assert done.stderr == "25 messages in 1 session\n"

    def test_page_after_the_last_is_empty(self, hermes: Hermes) -> None:
        done = hermes("sessions", "search", "zebra", "--offset", "25")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "No messages after the first 25.\n")


class TestJson:
    def test_json_is_one_object(self, talks: Hermes) -> None:
        done = talks("sessions", "search", "daemon", "--json")
        found = json.loads(done.stdout)
        assert (list(found), done.stderr) == (["schema", "items", "total", "next", "search"], "")
        assert (found["schema"], found["total"], found["next"]) == ("hermes.search/1", 1, None)
        assert found["search"] == {"path": "words", "degraded": False, "complete": True, "repairs": [], "hidden": {}}

    def test_json_item_has_every_field_of_a_hit(self, talks: Hermes) -> None:
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
    def test_search_imports_only_what_it_needs(self, talks: Hermes) -> None:
        needed = {"hermes.query", "hermes.state.search.finder"}
        assert imported_by(talks, "sessions", "search", "docker") & NOT_FOR_A_LIST == needed

    def test_list_does_not_import_search(self, talks: Hermes) -> None:
        loaded = imported_by(talks, "sessions", "list")
        assert {each for each in loaded if each.startswith(("hermes.cli.sessions.search", "hermes.query"))} == set()

    def test_group_summary_equals_the_command_summary(self) -> None:
        summaries = {name: lazy.load().get_short_help_str(limit=200) for name, lazy in COMMANDS.items()}
        assert summaries == {name: lazy.summary for name, lazy in COMMANDS.items()}

    def test_help_lists_search_and_shows_the_query_syntax(self, hermes: Hermes) -> None:
        assert re.search(r"search +Search the messages of all sessions\.", hermes("sessions").stdout)
        assert "'\"exact phrase\"'" in hermes("sessions", "search", "--help").stdout


class TestNeighbours:
    def test_message_just_written_by_another_program_is_found(self, talks: Hermes) -> None:
        with SessionDB(talks.database) as db:
            added = db.append_message(WIKI, "user", "zebra")
            assert search_ids(talks, "zebra") == [added]

    @pytest.mark.parametrize("version", ["v11", "v22"])
    def test_database_of_another_version_is_searched_and_unchanged(self, hermes: Hermes, version: str) -> None:
        content = gzip.decompress((OLD_FILES / f"{version}.db.gz").read_bytes())
        hermes.home.mkdir()
        hermes.database.write_bytes(content)
        assert "getUserById" in hermes("sessions", "search", "parser", "OR", "getUserById").stdout
        assert hermes.database.read_bytes() == content

    def test_closed_pipe_is_not_an_error(self, talks: Hermes) -> None:
        command = f"{shlex.join([sys.executable, '-m', 'hermes.cli.main'])} sessions search docker | true"
        done = subprocess.run(["sh", "-c", command], env=talks.environment(), capture_output=True, text=True)
        assert "Traceback" not in done.stderr
