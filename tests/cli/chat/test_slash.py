"""The slash commands and their effects on the store."""

from __future__ import annotations

import json
import re
import stat

import pytest

from hermes.cli.chat.slash.registry import COMMANDS, find_command
from hermes.cli.chat.slash.sessions import strip_brackets
from hermes.cli.chat.slash.turns import history_lines, parse_compress_argument
from hermes.errors import InvalidValue
from hermes.state.rows import Row
from hermes_state import SessionDB
from tests.cli.chat.conftest import Remember
from tests.cli.chat.stored import sessions, transcript
from tests.cli.chat.terminal import ENTER, Terminal
from tests.cli.chat.test_pipes import piped
from tests.cli.conftest import Hermes
from tests.support.modelserver import ModelServer, Say

ID = "20261101_101010_aaaaaaaa"
OTHER = "20261102_101010_bbbbbbbb"


def talk(hermes: Hermes, *lines: str, args: tuple[str, ...] = ()) -> str:
    """Send lines to a chat and return its stderr."""
    return piped(hermes, "".join(f"{line}\n" for line in lines), "--lines", *args).stderr.decode()


class TestTitle:
    def test_title_set_early_is_stored_with_the_first_message(self, hermes: Hermes) -> None:
        output = talk(hermes, "/title  my  \x07 project ", "/title", "!say hi", "/title")
        assert "Title: my project (stored with the first message)" in output
        assert "Title: my project\n" in output
        assert [each["title"] for each in sessions(hermes)] == ["my project"]

    def test_taken_title_is_refused_with_the_id_of_its_session(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "hello"), title="taken")
        for lines in (["/title taken"], ["!say hi", "/title taken"]):
            output = talk(hermes, *lines)
            assert f"already in use by session {ID}" in output
            assert "by session" not in output.split(f"already in use by session {ID}", 1)[1].split("\n", 1)[0]

    @pytest.mark.parametrize("title", ["\u200b\u200b", "x" * 101])
    def test_invalid_title_is_refused(self, hermes: Hermes, title: str) -> None:
        output = talk(hermes, "!say hi", "/title good", f"/title {title}", "/title")
        assert "Error: " in output
        assert output.count("Title: good") >= 2

    def test_missing_title_is_reported(self, hermes: Hermes) -> None:
        assert "No title. Set one with /title TEXT." in talk(hermes, "/title")


class TestNew:
    @pytest.mark.parametrize("command", ["/new", "/reset"])
    def test_new_leaves_the_session_and_starts_another(self, hermes: Hermes, command: str) -> None:
        talk(hermes, "!say one", f"{command} second", "!say two")
        new, old = sessions(hermes)
        assert (new["title"], old["end_reason"]) == ("second", "new_session")
        assert (transcript(hermes, old["id"])[1], transcript(hermes, new["id"])[1]) == (
            ("assistant", "one"),
            ("assistant", "two"),
        )

    def test_new_with_a_title_stores_it_with_the_first_message(self, hermes: Hermes) -> None:
        talk(hermes, "/new early", "!say one")
        assert [each["title"] for each in sessions(hermes)] == ["early"]

    def test_new_with_a_taken_title_starts_without_one(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "hello"), title="taken")
        output = talk(hermes, "/new taken", "!say one")
        assert "already in use" in output
        assert "New session.\n" in output

    def test_new_from_an_empty_session_stores_nothing(self, hermes: Hermes) -> None:
        talk(hermes, "/title x", "/new", "/new y")
        assert sessions(hermes) == []


class TestResume:
    def test_resume_switches_to_another_session(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "hello"), ("assistant", "yes?"), title="other one")
        output = talk(hermes, "!say here", '/resume "other one"', "!say there")
        assert f'↻ Resumed {ID} "other one" (1 user message, 2 total messages)' in output
        assert "● You: hello" in output
        assert transcript(hermes, ID)[-1] == ("assistant", "there")
        left = next(each for each in sessions(hermes) if each["id"] != ID)
        assert left["end_reason"] == "resumed_other"

    def test_resume_lists_sessions_and_takes_a_number(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "hello"), title="長い題名")
        remember(OTHER, ("user", "hello"), title="second")
        for answer in ("1", "/resume 1"):
            output = talk(hermes, "/resume", answer)
            header = output.splitlines()[1]
            assert re.match(r"#  Title +Preview +Last Active +ID", header)
            first = next(line for line in output.splitlines() if line.startswith("1"))
            assert f"↻ Resumed {first.split()[-1]}" in output

    def test_number_chooses_only_directly_after_the_list(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "hello"), title="first")
        output = talk(hermes, "/resume", "!say between", "1")
        assert "Resumed" not in output

    def test_number_outside_the_list_is_an_error(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "hello"), title="first")
        assert "there is no number 7 in the list" in talk(hermes, "/resume", "7")

    def test_title_of_digits_can_be_resumed(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "hello"), title="2")
        remember(OTHER, ("user", "hello"), title="other")
        assert f'Resumed {ID} "2"' in talk(hermes, "/resume", "/resume 2")
        assert f'Resumed {ID} "2"' in talk(hermes, "/resume 2")

    def test_resume_of_an_unknown_name_changes_nothing(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "hello"), title="first")
        output = talk(hermes, "!say one", "/resume frist", "!say two")
        assert 'did you mean "first"?' in output
        left = next(each for each in sessions(hermes) if each["id"] != ID)
        assert left["message_count"] == 4

    def test_resume_of_the_current_session_changes_nothing(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "hello"), title="first")
        assert f"Already in session {ID}." in talk(hermes, "/resume first", args=("-c",))

    @pytest.mark.parametrize(
        ("typed", "name"),
        [("<a b>", "a b"), ("[a]", "a"), ('"a"', "a"), ("'a'", "a"), ("<a", "<a"), ('a"', 'a"'), ('"', '"')],
    )
    def test_one_pair_of_brackets_or_quotes_is_removed(self, typed: str, name: str) -> None:
        assert strip_brackets(typed) == name

    def test_sessions_command_lists_and_resumes(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "hello"), title="first")
        assert "Last Active" in talk(hermes, "/sessions")
        assert "Last Active" in talk(hermes, "/sessions list")
        assert f"Resumed {ID}" in talk(hermes, "/sessions first")
        assert f"Resumed {ID}" in talk(hermes, "/sessions", "1")


class TestTurns:
    def test_retry_replaces_the_answer(self, hermes: Hermes) -> None:
        with ModelServer(Say("first answer"), Say("second answer")) as server:
            hermes.home.mkdir()
            (hermes.home / "config.yaml").write_text(server.config + "agent: {auto_title: false}\n")
            output = talk(hermes, "what is it?", "/retry")
            assert [each["content"] for each in server.requests[1].messages[1:]] == ["what is it?"]
        assert "Retrying: what is it?" in output
        (row,) = sessions(hermes)
        assert transcript(hermes, row["id"]) == [("user", "what is it?"), ("assistant", "second answer")]
        with Terminal(hermes, "-c") as terminal:
            terminal.until_prompt()
            assert "first answer" not in terminal.text

    def test_undo_removes_the_last_turn_and_offers_its_text(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.enter("!say one").until("◆ one").enter("!say two").until("◆ two")
            terminal.enter("/undo").until("Undid 1 turn (2 messages), from: !say two").until("2 messages left.")
            terminal.until("\n> !say two").type(f" again{ENTER}").until("◆ two again").until_prompt()
        (row,) = sessions(hermes)
        assert transcript(hermes, row["id"]) == [
            ("user", "!say one"),
            ("assistant", "one"),
            ("user", "!say two again"),
            ("assistant", "two again"),
        ]

    def test_undo_removes_several_turns_at_most_all(self, hermes: Hermes) -> None:
        output = talk(hermes, "!say one", "!say two", "!say three", "/undo 2", "/undo 9", "/undo")
        assert "Undid 2 turns (4 messages), from: !say two" in output
        assert "Undid 1 turn (2 messages), from: !say one" in output
        assert "there is nothing to undo" in output

    @pytest.mark.parametrize("number", ["0", "-1", "two", "²"])
    def test_undo_accepts_only_numbers(self, hermes: Hermes, number: str) -> None:
        assert f"/undo needs a number of turns, not '{number}'" in talk(hermes, "!say one", f"/undo {number}")
        assert sessions(hermes)[0]["message_count"] == 2

    @pytest.mark.parametrize("command", ["/retry", "/undo", "/branch"])
    def test_command_without_messages_is_an_error(self, hermes: Hermes, command: str) -> None:
        assert "Error: " in talk(hermes, command)
        assert sessions(hermes) == []

    def test_history_shows_the_messages(self, hermes: Hermes) -> None:
        output = talk(hermes, "/history", "!tool session_search {}", "/history")
        assert "No messages yet." in output
        assert "  1. You: !tool session_search {}\n  2. Hermes: (asked for 1 tool call)" in output
        assert "     [1 tool result not shown]\n  3. Hermes: session_search returned" in output

    def test_history_breaks_lines_between_words(self, hermes: Hermes) -> None:
        with Terminal(hermes, columns=40) as terminal:
            terminal.enter("!say the quick brown fox jumps over the lazy dog").until("◆ the quick").until_prompt()
            terminal.enter("/history").until("  2. Hermes: ").until_prompt()
            assert "  2. Hermes: the quick brown fox jumps\n     over the lazy dog\n" in f"{terminal.text}\n"

    def test_history_cuts_long_texts_and_shows_empty_ones(self) -> None:
        rows: list[Row] = [{"role": "user", "content": "x" * 401}, {"role": "assistant", "content": None}]
        assert list(history_lines(rows)) == [f"  1. You: {'x' * 400}...", "  2. Hermes: (no text)"]

    def test_compress_continues_in_a_child(self, hermes: Hermes) -> None:
        turns = [f"!say answer {number} {'and more ' * 40}" for number in range(8)]
        output = talk(hermes, "/title long one", *turns, "/compress the answers", "!say after")
        assert re.search(r"Compressed: 16 → \d+ messages, about [\d,]+ → [\d,]+ tokens\.", output)
        (row,) = sessions(hermes)
        assert row["title"] == "long one #2"
        assert row["id"] != row["_lineage_root_id"]
        assert transcript(hermes, row["id"])[-1] == ("assistant", "after")

    def test_compress_reports_too_few_messages(self, hermes: Hermes) -> None:
        output = talk(hermes, "/compress", "!say hi", "/compress")
        assert "No messages yet, so nothing to compress." in output
        assert "Not compressed: there is too little to compress." in output

    @pytest.mark.parametrize(
        ("argument", "parsed"),
        [
            ("", (None, None)),
            ("the schema", ("the schema", None)),
            ("here", (None, 2)),
            ("here 5", (None, 5)),
            ("up to here", (None, 2)),
            ("--keep 4", (None, 4)),
            ("--keep=4 the schema", ("the schema", 4)),
            ("-k 3", (None, 3)),
            ("where it is kept", ("where it is kept", None)),
        ],
    )
    def test_compress_parses_focus_and_count(self, argument: str, parsed: tuple[str | None, int | None]) -> None:
        assert parse_compress_argument(argument) == parsed

    @pytest.mark.parametrize(
        "argument", ["here x", "here 0", "here -1", "here 2 3", "-k nonsense", "--keep=101", "--keep"]
    )
    def test_invalid_compress_argument_compresses_nothing(self, hermes: Hermes, argument: str) -> None:
        lines = [f"!say {number}" for number in range(6)]
        output = talk(hermes, *lines, f"/compress {argument}")
        assert "is not a number of exchanges; nothing was compressed" in output
        assert [row["end_reason"] for row in sessions(hermes)] == ["user_exit"]


class TestBranch:
    @pytest.mark.parametrize(("command", "title"), [("/branch", "mine #2"), ("/fork other way", "other way")])
    def test_branch_continues_in_a_copy(self, hermes: Hermes, command: str, title: str) -> None:
        output = talk(hermes, "/title mine", "!say one", command, "!say two")
        assert f'Branch "{title}" with 1 user message.' in output
        rows = {each["title"]: each for each in sessions(hermes)}
        assert rows[title]["child_kind"] == "branch"
        assert rows["mine"]["end_reason"] == "branched"
        assert (rows["mine"]["message_count"], rows[title]["message_count"]) == (2, 4)

    def test_branch_numbers_a_taken_title(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "hello"), title="taken")
        assert 'Branch "taken (2)"' in talk(hermes, "!say one", "/branch taken")


class TestFacts:
    def test_status_shows_the_facts_of_the_session(self, hermes: Hermes) -> None:
        output = talk(hermes, "/status", "/title named", "!say hi", "/status")
        assert "(not stored yet)" in output
        (row,) = sessions(hermes)
        assert f"Session:        {row['id']}\nTitle:          named\nModel:          offline (offline)\n" in output
        assert "Messages:       2\n" in output

    def test_usage_shows_calls_and_tokens(self, hermes: Hermes) -> None:
        output = talk(hermes, "/usage", "!say hi", "/usage")
        assert "No messages yet, so no usage." in output
        assert "Model calls:    1\n" in output
        assert re.search(r"Input tokens:   [\d,]+\n", output)

    def test_unknown_cost_is_named_once(self, hermes: Hermes) -> None:
        assert "Cost:           unknown\n" in talk(hermes, "!say hi", "/branch", "/usage")

    def test_search_command_finds_messages_of_all_sessions(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "where is the teapot?"), title="kitchen")
        output = talk(hermes, "/search teapot", "/search nothinglikethis", "/search")
        assert "kitchen" in output
        assert "where is the teapot?" in output
        assert "No messages match 'nothinglikethis'." in output
        assert "/search needs words" in output

    def test_save_writes_a_private_file(self, hermes: Hermes) -> None:
        output = talk(hermes, "/save", "!say hi 日本", "/save")
        assert "No messages yet, so nothing to save." in output
        (path,) = (hermes.home / "sessions" / "saved").glob("hermes_conversation_*.json")
        assert f"Saved to {path}" in output
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        saved = json.loads(path.read_text())
        assert [each["content"] for each in saved["messages"]] == ["!say hi 日本", "hi 日本"]
        assert saved["session_id"] == sessions(hermes)[0]["id"]
        assert {"model", "session_start"} <= set(saved)

    def test_model_command_shows_and_changes_the_model(self, hermes: Hermes) -> None:
        with ModelServer(Say("one"), Say("two")) as server:
            hermes.home.mkdir()
            (hermes.home / "config.yaml").write_text(server.config + "agent: {auto_title: false}\n")
            output = talk(hermes, "hi", "/model", "/model big-model", "hi again", "/new", "/model")
            assert [each.body["model"] for each in server.requests] == ["test-model", "big-model"]
            prompts = {each.messages[0]["content"] for each in server.requests}
        assert "Model: test-model (custom)\n" in output
        assert output.count("Model: big-model (custom)") == 2
        assert len(prompts) == 1
        assert sessions(hermes)[0]["model"] == "big-model"

    def test_unknown_model_changes_nothing(self, hermes: Hermes) -> None:
        output = talk(hermes, "/model nowhere", "/model")
        assert "no provider is configured for the model nowhere" in output
        assert "Model: offline (offline)" in output
        assert "`hermes setup` chooses another model" in output

    def test_help_lists_every_command(self, hermes: Hermes) -> None:
        output = talk(hermes, "/help")
        assert all(f"/{name}" in output and command.summary in output for command in COMMANDS for name in command.names)

    def test_quit_with_an_argument_does_not_leave(self, hermes: Hermes) -> None:
        assert "/quit takes no argument, but got 'now'" in talk(hermes, "/quit now", "!say still here")
        assert len(sessions(hermes)) == 1


def test_unknown_command_suggests_similar_ones() -> None:
    with pytest.raises(InvalidValue) as raised:
        find_command("resum")
    assert "/resume" in raised.value.hint


def test_no_two_commands_share_a_name() -> None:
    names = [name for command in COMMANDS for name in command.names]
    assert len(names) == len(set(names))


def test_undone_answer_is_not_shown_on_resume(hermes: Hermes) -> None:
    talk(hermes, "!say kept", "!say undone", "/undo")
    with SessionDB(hermes.database) as db:
        assert len(db.get_messages(sessions(hermes)[0]["id"], True)) == 4
    output = talk(hermes, "/resume x", "/history", args=("-c",))
    assert "kept" in output
    assert "undone" not in output
