"""Typing at the prompt: the menu, the status line, the editor, vi keys and escape sequences."""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path
from threading import Event

import pexpect  # type: ignore[import-untyped]
import pytest

from hermes.cli.chat.prompt.command_menu import ROWS, match_words, menu_rows
from hermes.cli.chat.prompt.editor import editor_commands
from hermes.cli.chat.prompt.status_line import Status, read_branch
from tests.cli.chat.stored import sessions, transcript
from tests.cli.chat.terminal import CTRL_C, CTRL_D, ENTER, LIMIT_S, TAB, UP, Terminal
from tests.cli.conftest import Hermes
from tests.support.modelserver import ModelServer, Received, Say

ESC, CTRL_X_E = "\x1b", "\x18\x05"
MARK_PASTES = b"\x1b[?2004h"
BLOCK = b"\x1b[2 q"
"""The shape of the cursor in the normal mode of vi."""


def configure(hermes: Hermes, text: str) -> None:
    hermes.home.mkdir(mode=0o700, exist_ok=True)
    (hermes.home / "config.yaml").write_text(text)


class TestMenu:
    def test_slash_opens_a_menu_with_descriptions_below_the_input(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.until_prompt().type("/").until("/new").until("Start a new session.")
            lines = terminal.lines
            assert lines[lines.index("> /") + 1].split()[:3] == ["/new", "Start", "a"]
            assert len(lines[lines.index("> /") + 1 :]) == ROWS

    def test_letters_in_order_find_a_command_and_enter_runs_it(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.until_prompt().type("/stts").until("/status").type(TAB).until("> /status")
            terminal.type(ENTER).until("not stored yet").until_prompt()
            assert "Show details of this session." not in terminal.text

    def test_tab_and_up_choose_an_entry_and_esc_closes_the_menu(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.until_prompt().type("/co").until("/compress").type(TAB).until("> /compress").type(TAB)
            terminal.until("> /cost").type(UP).until("> /compress").type(ESC).until_gone("Copy the last answer")
            assert "> /co" in terminal.text

    def test_menu_stays_below_the_input_when_it_gets_shorter(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.until_prompt().type("/").until("/fork").type("sta").until_gone("/fork")
            lines = terminal.all_lines
            assert lines[lines.index("> /sta") + 1].split()[0] == "/status"
            assert lines[-1].startswith("  offline · ")

    def test_menu_is_gone_when_the_name_has_an_argument(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.until_prompt().type("/tit").until("/title").type("le a").until("> /title a")
            terminal.until_gone("Show or set the title")

    @pytest.mark.parametrize(
        ("typed", "expected"),
        [("/re", ["/reset", "/retry", "/compress"]), ("/RT", ["/reset", "/retry"]), ("/x", []), ("/", None)],
    )
    def test_words_are_ranked_by_how_they_fit(self, typed: str, expected: list[str] | None) -> None:
        words = ["/compress", "/reset", "/new", "/retry"]
        assert match_words(typed, words) == (words if expected is None else expected)

    def test_selected_row_is_always_visible(self) -> None:
        from prompt_toolkit.completion import Completion

        entries = [Completion(f"/c{number:02}", display_meta="does something") for number in range(30)]
        for selected in range(30):
            rows = menu_rows(entries, selected, 40)
            assert len(rows) == ROWS
            assert [text.split()[0] for text, is_selected in rows if is_selected] == [f"/c{selected:02}"]


class TestStatusLine:
    def test_it_names_model_directory_and_branch(self, hermes: Hermes, tmp_path: Path) -> None:
        work = tmp_path / "work"
        (work / ".git").mkdir(parents=True)
        (work / ".git" / "HEAD").write_text("ref: refs/heads/topic/one\n")
        with Terminal(hermes, columns=160, cwd=work, HOME=str(tmp_path)) as terminal:
            terminal.until_prompt()
            assert terminal.status == "offline · ~/work (topic/one)"

    def test_it_shows_context_and_cost_of_the_session(self, hermes: Hermes) -> None:
        with ModelServer(Say("Hello.", usage={"prompt_tokens": 2_000, "completion_tokens": 1_000})) as server:
            prices = "context_tokens: 10000, prices: {test-model: {input: 100, output: 100}}, "
            configure(hermes, server.config.replace("{", "{" + prices, 1) + "agent: {auto_title: false}\n")
            with Terminal(hermes, columns=200) as terminal:
                terminal.until_prompt()
                assert "%" not in terminal.status
                terminal.enter("hi").until("◆ Hello.").until_prompt()
                assert terminal.status.startswith("test-model · ")
                assert terminal.status.endswith(" · 20% of context · $0.30")

    def test_long_directory_is_shortened_before_other_facts(self) -> None:
        status = Status("model", ("~/projects/wiki (main)", "…/wiki (main)", "…/wiki", ""), "7% of context", "$0.03")
        assert status.fit(80) == "  model · ~/projects/wiki (main) · 7% of context · $0.03"
        assert status.fit(48) == "  model · …/wiki (main) · 7% of context · $0.03"
        assert status.fit(40) == "  model · …/wiki · 7% of context · $0.03"
        assert status.fit(36) == "  model · 7% of context · $0.03"
        assert status.fit(20) == "  model · 7% of con…"
        assert Status().fit(20) == ""

    def test_few_tokens_are_not_rounded_to_nothing(self, hermes: Hermes) -> None:
        with ModelServer(Say("Hello.")) as server:
            configure(hermes, server.config)
            with Terminal(hermes, columns=160) as terminal:
                terminal.enter("hi").until("◆ Hello.").until_prompt()
                assert terminal.status.endswith(" · 20 tokens")

    def test_it_leaves_no_trace_and_can_be_turned_off(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.enter("!say one").until("◆ one").until_prompt().type(CTRL_D)
            terminal.until_over()
            assert "offline · " not in terminal.text
        configure(hermes, "display: {status_line: false}\n")
        with Terminal(hermes) as terminal:
            assert terminal.until_prompt().status == ""

    @pytest.mark.parametrize(
        ("head", "branch"),
        [("ref: refs/heads/main\n", "main"), ("0123456789abcdef\n", "0123456"), ("x" * 5_000, ""), ("", "")],
    )
    def test_branch_is_read_from_head(self, tmp_path: Path, head: str, branch: str) -> None:
        (tmp_path / ".git").mkdir()
        (tmp_path / ".git" / "HEAD").write_text(head)
        (tmp_path / "below").mkdir()
        assert read_branch(tmp_path / "below") == branch

    def test_branch_of_a_worktree_is_read_from_its_own_head(self, tmp_path: Path) -> None:
        (tmp_path / "main" / ".git" / "worktrees" / "w").mkdir(parents=True)
        (tmp_path / "main" / ".git" / "worktrees" / "w" / "HEAD").write_text("ref: refs/heads/other\n")
        (tmp_path / "w").mkdir()
        (tmp_path / "w" / ".git").write_text(f"gitdir: {tmp_path}/main/.git/worktrees/w\n")
        assert read_branch(tmp_path / "w") == "other"

    def test_head_that_is_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        (tmp_path / ".git").mkdir()
        os.mkfifo(tmp_path / ".git" / "HEAD")
        assert read_branch(tmp_path) == ""


class TestEditor:
    def script(self, tmp_path: Path, body: str) -> str:
        program = tmp_path / "my editor"
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o700)
        return f"'{program}' --wait"

    def test_edited_text_returns_to_the_prompt_and_is_not_sent(self, hermes: Hermes, tmp_path: Path) -> None:
        editor = self.script(tmp_path, 'echo "and more" >> "$2"')
        with Terminal(hermes, EDITOR=editor) as terminal:
            terminal.until_prompt().type("!say first").until("> !say first").type(CTRL_X_E).until(". and more")
            assert not hermes.database.exists() or sessions(hermes) == []
            terminal.type(ENTER).until("◆ first").until_prompt()
        (row,) = sessions(hermes)
        assert transcript(hermes, row["id"])[0] == ("user", "!say first\nand more")

    @pytest.mark.parametrize(
        ("body", "said"), [("exit 3", "exit code 3"), ('printf "\\377" > "$2"; exit 0', "\ufffd"), (None, "Set EDITOR")]
    )
    def test_editor_that_fails_leaves_the_prompt_usable(
        self, hermes: Hermes, tmp_path: Path, body: str | None, said: str
    ) -> None:
        editor = "/nowhere/to-be-found" if body is None else self.script(tmp_path, body)
        with Terminal(hermes, EDITOR=editor) as terminal:
            terminal.until_prompt().type("!say kept").until("> !say kept").type(CTRL_X_E).until(said)
            terminal.type(CTRL_C).until_prompt().enter("!say fine").until("◆ fine")
            assert "Traceback" not in terminal.text

    @pytest.mark.parametrize(
        ("environ", "first"),
        [
            ({"EDITOR": "code --wait"}, ["code", "--wait"]),
            ({"EDITOR": "ed", "VISUAL": "vim"}, ["vim"]),
            ({"EDITOR": "it's"}, ["it's"]),
            ({}, ["editor"]),
        ],
    )
    def test_own_editor_comes_first(self, environ: dict[str, str], first: list[str]) -> None:
        assert editor_commands(environ)[0] == first


class TestViMode:
    def test_vi_keys_edit_the_line(self, hermes: Hermes) -> None:
        configure(hermes, "display: {editing_mode: vi}\n")
        with Terminal(hermes) as terminal:
            terminal.until_prompt().type("!say two words").until("> !say two words").type(ESC)
            terminal.type("bcw").type("vi").until("> !say two vi").type(ENTER).until("◆ two vi")

    def test_cursor_shows_the_mode(self, hermes: Hermes) -> None:
        configure(hermes, "display: {editing_mode: vi}\n")
        with Terminal(hermes) as terminal:
            terminal.until_prompt().type("x").until("> x")
            assert BLOCK not in terminal.raw
            terminal.type(ESC).until_written(BLOCK).type("0iy").until("> yx")


class TestTypeahead:
    def test_keys_before_a_prompt_are_shown_once_it_is_there(self, hermes: Hermes) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
            configure(hermes, f"model: {{base_url: '{address}', default: any}}\n")
            with Terminal(hermes) as terminal:
                terminal.enter("/model").until("Model: any").type("typed ahead")
                terminal.until("does not list its models").until("> typed ahead")
                assert terminal.raw.count(b"typed ahead") == 1
            with Terminal(hermes) as terminal:
                assert terminal.enter("/model").until("Model: any").type(CTRL_D).until_over() == 0

    @pytest.mark.parametrize("lines", [3, 2_000])
    def test_lines_pasted_during_an_answer_are_one_message(self, hermes: Hermes, lines: int) -> None:
        pasted = "\n".join(f"line {number} of a long text that was pasted" for number in range(lines))
        is_pasted = Event()

        def answer(_: Received) -> Say:
            is_pasted.wait(LIMIT_S)
            return Say("Yes?")

        with ModelServer(answer, Say("I see.")) as server:
            configure(hermes, server.config + "agent: {auto_title: false}\n")
            with Terminal(hermes) as terminal:
                terminal.enter("go").until("thinking")
                assert terminal.raw.count(MARK_PASTES) == 2
                terminal.type(f"\x1b[200~{pasted}\x1b[201~")
                is_pasted.set()
                terminal.until(f"line {lines - 1} of").type(ENTER).until("◆ I see.")
            assert [request.last_text for request in server.requests] == ["go", pasted]

    def test_beginning_of_a_paste_waits_for_its_end(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.enter("!long 600 0.05").until("word5").type("\x1b[200~!say one\ntwo").rest(0.2).type(ESC).rest(0.4)
            terminal.until("Interrupted").type(" three\x1b[201~").until("two three").type(ENTER).until("◆ one")
        (row,) = sessions(hermes)
        assert transcript(hermes, row["id"])[-2] == ("user", "!say one\ntwo three")

    def test_own_command_may_read_the_keyboard(self, hermes: Hermes) -> None:
        with Terminal(hermes, SHELL="/bin/sh") as terminal:
            terminal.enter("!stty -a | tr ' ' '\\n' | grep -x -e echo -e -echo").until("next message")
            assert "-echo" not in terminal.lines
            assert "echo" in terminal.lines


def test_pasted_tab_is_shown_as_blanks_and_sent_as_it_is(hermes: Hermes) -> None:
    with Terminal(hermes) as terminal:
        terminal.until_prompt().type("\x1b[200~!say a\tb\x1b[201~").until("> !say a  b").type(ENTER).until("◆ a")
        terminal.until_prompt()
    (row,) = sessions(hermes)
    assert transcript(hermes, row["id"])[0] == ("user", "!say a\tb")


class TestEscapeSequences:
    @pytest.mark.parametrize(
        "keys",
        [
            "\x1b[<1M",  # a mouse event without a place
            "\x1b[<0;1;1M\x1b[M !!\x1b[32M",
            "\x1b[999;999R\x1b[0;0R",  # positions of the cursor that were never asked for
            "\x1b]11;rgb:0000/0000/0000\x07",
            "\x1b[?1;2c\x1b[200~\x1b[31mred\x1b[0m\x1b[201~",
            "\x1bOP\x1b[1;99Q\x1b[24;8~\x1bP+r\x1b\\",
        ],
    )
    def test_sequences_typed_or_pasted_never_show_a_traceback(self, hermes: Hermes, keys: str) -> None:
        with Terminal(hermes) as terminal:
            terminal.until_prompt().type(f"{keys}x").until("x").type(CTRL_C).until_prompt()
            terminal.enter("!say well").until("◆ well")
            assert "Traceback" not in terminal.text
            assert "xception" not in terminal.text

    def test_ctrl_c_ends_a_paste_whose_end_never_came(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.until_prompt().type("\x1b[200~pasted").type("x").until_prompt()
            terminal.process.expect(pexpect.TIMEOUT, timeout=0.2)
            terminal.type(CTRL_C).until("Line dropped").until_prompt().type(UP).until("> pastedx")

    def test_bytes_that_are_not_utf8_are_sent_and_kept_as_replacements(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.until_prompt().process.send(b"!say a\xffb\r")
            terminal.until("◆ a\ufffdb").until_prompt().type(UP).until("> !say a\ufffdb")

    def test_random_keys_never_show_a_traceback(self, hermes: Hermes) -> None:
        choose = random.Random(7)
        pieces = ["\x1b", "[", "<", "0", "9", ";", "M", "m", "R", "~", "O", "a", "?", "\x7f", "/", "@", "é", "\x18"]
        with Terminal(hermes) as terminal:
            terminal.until_prompt()
            for _ in range(20):
                terminal.type("".join(choose.choices(pieces, k=40)))
            terminal.type(f"\x1b[201~{CTRL_C}").until("Line dropped").until_prompt()
            terminal.enter("!say well").until("◆ well")
            assert "Traceback" not in terminal.text
            assert "xception" not in terminal.text
