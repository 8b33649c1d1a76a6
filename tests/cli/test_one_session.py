"""Commands about one session: `show`, `rename`, `archive`, `pin` and `lineage`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes.state.sessions.lineage.forest import family_of
from hermes_state import SessionDB
from tests.cli.conftest import Hermes
from tests.sqlite.statements import recorded

FIRST = "20261115_190312_a1b2c3d4"
COMMANDS = [("show",), ("rename",), ("archive",), ("unarchive",), ("pin",), ("unpin",), ("lineage",)]


@pytest.fixture
def talk(hermes: Hermes) -> Hermes:
    """A conversation with a tool call, an undone exchange, a branch and a continuation."""
    hermes.store((FIRST, "cli", "Refactoring auth", "Help me refactor"))
    with SessionDB(hermes.database) as db:
        calls = [{"id": "c", "function": {"name": "terminal", "arguments": '{"command": "' + "x" * 500 + '"}'}}]
        db.append_message(FIRST, "assistant", "Let me\nlook.", tool_calls=calls)
        db.append_message(FIRST, "tool", "y" * 1000, tool_name="terminal", tool_call_id="c")
        undone = db.append_message(FIRST, "user", "never mind")
        db.rewind_to_message(FIRST, undone)
        db.create_session("branch-1", "cli", parent_session_id=FIRST, child_kind="branch")
        db.append_message("branch-1", "user", "another way")
        db.end_session(FIRST, "compression")
        db.create_session("next-1", "cli", parent_session_id=FIRST, child_kind="compression")
        db.append_message("next-1", "user", "summary")
    return hermes


class TestShow:
    def test_show_prints_facts_and_messages(self, talk: Hermes) -> None:
        done = talk("sessions", "show", "refactoring auth")
        lines = done.stdout.splitlines()
        assert lines[:5] == [
            "Refactoring auth",
            f"Session: {FIRST} (cli)",
            "Started: 30m ago, last active just now, ended just now (compression)",
            "Messages: 3",
            "Continued in: next-1",
        ]
        bodies = [line for line in lines[5:] if line and not line.startswith("──")]
        assert bodies[:3] == ["Help me refactor", "Let me", "look."]
        assert bodies[3].startswith('→ terminal({"command": "xxx')
        assert bodies[3].endswith("…)")
        assert bodies[4] == "y" * 400 + "…"
        assert "never mind" not in done.stdout

    def test_show_full_prints_whole_tool_results(self, talk: Hermes) -> None:
        assert "y" * 1000 in talk("sessions", "show", FIRST, "--full").stdout

    def test_show_all_prints_undone_messages(self, talk: Hermes) -> None:
        done = talk("sessions", "show", FIRST, "--all")
        assert "── user (undone) · " in done.stdout
        assert "never mind" in done.stdout

    def test_show_tail_prints_the_last_messages(self, talk: Hermes) -> None:
        done = talk("sessions", "show", FIRST, "--tail", "1")
        assert "Help me refactor" not in done.stdout
        assert done.stderr == "2 earlier messages not shown; raise --tail for more\n"

    def test_show_names_the_parent(self, talk: Hermes) -> None:
        assert f"Branch of: {FIRST}" in talk("sessions", "show", "branch-1").stdout

    def test_show_prints_json(self, talk: Hermes) -> None:
        found = talk.json("sessions", "show", FIRST)
        assert found["schema"] == "hermes.session/1"
        assert [each["role"] for each in found["item"]["messages"]] == ["user", "assistant", "tool"]
        assert found["item"]["title"] == "Refactoring auth"

    def test_no_control_character_reaches_the_terminal(self, hermes: Hermes) -> None:
        hermes.store(("s", "cli", None, "red \x1b[31m text\nsecond line\r\x07"))
        done = hermes("sessions", "show", "s")
        assert "\x1b" not in done.stdout
        assert "red \\x1b[31m text\nsecond line" in done.stdout


class TestRename:
    def test_rename_takes_words_without_quotes(self, talk: Hermes) -> None:
        done = talk("sessions", "rename", FIRST, "debugging", "auth", "flow")
        assert done.stdout == f"{FIRST}  debugging auth flow\n"
        assert talk.json("sessions", "show", "debugging auth flow")["item"]["id"] == FIRST

    def test_rename_of_an_unquoted_title_changes_nothing(self, hermes: Hermes) -> None:
        hermes.store(("a", "cli", "my", "1"), ("b", "cli", "my project", "2"))
        done = hermes("sessions", "rename", "my", "project", "plan")
        assert (done.returncode, "'my project' is the title of one session" in done.stderr) == (3, True)
        assert hermes("sessions", "rename", "my", "project plan").stdout == "a  project plan\n"

    def test_rename_accepts_a_longer_title_than_another(self, hermes: Hermes) -> None:
        hermes.store(("a", "cli", "my", "1"), ("b", "cli", "big plan", "2"))
        assert hermes("sessions", "rename", "my", "big", "plan", "too").stdout == "a  big plan too\n"

    def test_rename_with_an_empty_title_removes_it(self, talk: Hermes) -> None:
        assert talk("sessions", "rename", FIRST, "").stdout == f"{FIRST} has no title now.\n"

    def test_rename_to_a_taken_title_is_a_conflict(self, talk: Hermes) -> None:
        done = talk("sessions", "rename", "branch-1", "Refactoring auth")
        assert done.returncode == 4
        assert "already in use" in done.stderr

    def test_rename_to_a_too_long_title_is_refused(self, talk: Hermes) -> None:
        done = talk("sessions", "rename", FIRST, "x" * 101)
        assert (done.returncode, "too long" in done.stderr) == (2, True)
        assert talk.json("sessions", "show", FIRST)["item"]["title"] == "Refactoring auth"

    def test_rename_prints_json(self, talk: Hermes) -> None:
        assert talk.json("sessions", "rename", FIRST, "a\tb")["item"] == {"id": FIRST, "title": "a b"}


class TestFlags:
    @pytest.mark.parametrize(
        ("command", "flag", "value"),
        [("archive", "archived", 1), ("unarchive", "archived", 0), ("pin", "pinned", 1), ("unpin", "pinned", 0)],
    )
    def test_archive_and_pin_set_flags(self, hermes: Hermes, command: str, flag: str, value: int) -> None:
        hermes.store(("s", "cli", None, "hello"))
        with SessionDB(hermes.database) as db:
            db.set_session_archived("s", not value)
            db.set_session_pinned("s", not value)
        assert hermes.json("sessions", command, "s")["item"] == {"id": "s", flag: bool(value)}
        with SessionDB(hermes.database) as db:
            assert {**(db.get_session("s") or {})}[flag] == value

    def test_archive_and_pin_print_the_new_state(self, hermes: Hermes) -> None:
        hermes.store(("s", "cli", None, "hello"))
        assert hermes("sessions", "archive", "s").stdout == "s is archived.\n"
        assert hermes("sessions", "unarchive", "s").stdout == "s is no longer archived.\n"


class TestLineage:
    def test_lineage_is_a_tree_from_the_first_session(self, talk: Hermes) -> None:
        with SessionDB(talk.database) as db:
            db.create_session("helper", "subagent", parent_session_id="branch-1", child_kind="delegate")
        assert talk("sessions", "lineage", "next-1").stdout.splitlines() == [
            f"Refactoring auth  {FIRST}  3 messages, just now",
            "├─ branch: another way  branch-1  1 message, just now",
            "│  └─ delegate: (no messages)  helper  0 messages, just now",
            "└─ compression: summary  next-1  1 message, just now",
        ]

    def test_lineage_prints_json(self, talk: Hermes) -> None:
        item = talk.json("sessions", "lineage", "branch-1")["item"]
        assert item["id"] == FIRST
        assert [(child["id"], child["child_kind"]) for child in item["children"]] == [
            ("branch-1", "branch"),
            ("next-1", "compression"),
        ]

    def test_lineage_reads_a_large_family_with_few_statements(self, tmp_path: Path) -> None:
        with recorded() as record, SessionDB(tmp_path / "state.db") as db:
            db.create_session("first", "cli")
            for number in range(40):
                db.create_session(f"child-{number:02}", "cli", parent_session_id="first", child_kind="branch")
            with record.listening():
                family = family_of(db, "child-07")
        assert [row["id"] for row in family] == ["first", *(f"child-{number:02}" for number in range(40))]
        assert len(record.statements) < 10


@pytest.mark.parametrize("command", COMMANDS)
def test_unknown_session_suggests_similar_titles(talk: Hermes, command: tuple[str, ...]) -> None:
    title = ["x"] if command == ("rename",) else []
    done = talk("sessions", *command, "Refactorin auth", *title)
    assert done.returncode == 3
    assert 'did you mean "Refactoring auth"?' in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_create_no_database(hermes: Hermes, command: tuple[str, ...]) -> None:
    title = ["x"] if command == ("rename",) else []
    assert hermes("sessions", *command, "s", *title).returncode == 3
    assert not hermes.database.exists()


class TestExactTitle:
    """Only resuming follows the numbers of a title."""

    @pytest.fixture
    def numbered(self, hermes: Hermes) -> Hermes:
        hermes.store(("first", "cli", "p", "one"), ("second", "cli", "p #2", "two"), ("third", "cli", "p #3", "three"))
        return hermes

    @pytest.mark.parametrize(("title", "meant"), [("p", "first"), ("p #2", "second")])
    @pytest.mark.parametrize("command", ["show", "archive", "pin", "unarchive", "unpin", "lineage"])
    def test_exact_title_is_read(self, numbered: Hermes, command: str, title: str, meant: str) -> None:
        assert numbered.json("sessions", command, title)["item"]["id"] == meant

    def test_exact_title_is_renamed(self, numbered: Hermes) -> None:
        assert numbered.json("sessions", "rename", "p", "q")["item"] == {"id": "first", "title": "q"}

    def test_exact_title_is_exported(self, numbered: Hermes) -> None:
        done = numbered("sessions", "export", "-", "--session", "p")
        assert json.loads(done.stdout)["id"] == "first"

    def test_exact_title_selects_the_tree(self, numbered: Hermes) -> None:
        assert numbered.json("sessions", "tree", "p")["items"][0]["id"] == "first"

    def test_title_in_other_case_changes_nothing(self, numbered: Hermes) -> None:
        assert numbered("sessions", "rename", "P", "q").returncode == 3

    def test_ambiguous_title_lists_dates_and_titles(self, hermes: Hermes) -> None:
        hermes.store(("20261115_a", "cli", "tea", "one"), ("20261115_b", "cli", None, "two"))
        lines = hermes("sessions", "show", "20261115").stderr.splitlines()
        assert lines[1] == "Hint: use one of these ids:"
        assert [(line.split()[0], line.split("  ")[-1]) for line in lines[2:]] == [
            ("20261115_b", "(no title)"),
            ("20261115_a", "tea"),
        ]
