"""Tools as the user sees them: what runs, the end of its output, how it ended, and its folded output."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.agent.models.model import ToolCall
from hermes.agent.tools.results import ToolResult, failure
from hermes.cli.chat.tool_display.calls import CallEnd, describe_call, describe_end, output_of
from hermes.cli.chat.tool_display.outputs import MAX_KEPT, FoldedOutputs
from hermes.errors import NotFound
from tests.cli.chat.terminal import Terminal
from tests.cli.conftest import Hermes
from tests.support.modelserver import Call, ModelServer, Say


@pytest.fixture
def server(hermes: Hermes) -> Iterator[ModelServer]:
    """A model server that the configuration names; its tools need no permission."""
    with ModelServer() as server:
        hermes.home.mkdir(mode=0o700)
        settings = "agent: {auto_title: false}\napprovals: {mode: allow}\n"
        (hermes.home / "config.yaml").write_text(server.config + settings)
        yield server


def run(server: ModelServer, command: str) -> None:
    """Let the model run a command and then say something."""
    server.then(Say("First.", calls=[Call("terminal", {"command": command})]), Say("Last."))


def test_end_of_the_output_is_shown_while_a_command_runs(hermes: Hermes, server: ModelServer, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    run(server, "for i in $(seq 30); do echo row $i; done; printf 'a\\033[2J 50%%\\r 60%%'; cat gate; exit 3")
    with Terminal(hermes, cwd=tmp_path) as terminal:
        terminal.enter("go").until("⠋ terminal").until("row 30").until("60%")
        running = terminal.text.rpartition("⠋ terminal")[2] or terminal.text
        assert "row 20" not in running
        assert "   60%" in running.splitlines()
        (tmp_path / "gate").write_text("opened\n")
        terminal.until("◆ Last.").until_prompt()
        rows = terminal.lines[terminal.lines.index("◆ First.") + 1 :]
        assert rows[0].startswith("→ terminal for i in $(seq 30)")
        assert [row.strip() for row in rows[1:6]] == ["row 27", "row 28", "row 29", "row 30", "60%opened"]
        assert rows[6].startswith("  ✗ exit code 3, ")
        assert rows[6].endswith(" s, 31 lines: /output 1")
        assert terminal.colour_of("✗") == "red"
        assert b"\x1b[2J" not in terminal.raw


def test_output_is_folded_and_can_be_opened(hermes: Hermes, server: ModelServer, tmp_path: Path) -> None:
    run(server, "echo one; echo two; printf '\\033[31mthree\\n'")
    with Terminal(hermes, cwd=tmp_path) as terminal:
        terminal.enter("/output").until("no tool has run in this chat yet")
        terminal.enter("go").until("3 lines: /output 1").until("◆ Last.").until_prompt()
        assert "\ntwo" not in terminal.text
        assert terminal.colour_of("✓") == "green"
        terminal.enter("/output").until("1. terminal echo one").until("\none\ntwo\n\\x1b[31mthree\n").until_prompt()
        terminal.enter("/output 7").until("there is no output 7").until_prompt()
        terminal.enter("/output x").until("/output needs a number, not 'x'").until_prompt()


def test_screen_of_a_turn_with_a_tool_is_as_expected(hermes: Hermes, server: ModelServer, tmp_path: Path) -> None:
    run(server, "true;")
    with Terminal(hermes, cwd=tmp_path, columns=60) as terminal:
        terminal.enter("go").until("◆ Last.").until_prompt()
        start = terminal.lines.index("> go")
        rows = terminal.lines[start:]
        assert rows[:3] == ["> go", "◆ First.", "→ terminal true;"]
        assert rows[3].startswith("  ✓ exit code 0, ")
        assert rows[4:] == ["◆ Last.", "", ">"]


def test_pipe_gets_no_colours_and_no_spinner(hermes: Hermes, server: ModelServer) -> None:
    run(server, "echo one; exit 2")
    done = hermes("-q", "go")
    lines = done.stderr.splitlines()
    assert lines[:2] == ["→ terminal echo one; exit 2", "  one"]
    assert lines[2].startswith("  ✗ exit code 2, ")
    assert done.stdout == "First.\nLast.\n"


@pytest.mark.parametrize(
    ("name", "arguments", "shown"),
    [
        ("terminal", '{"command": "ls -l", "background": true}', "terminal ls -l background=true"),
        ("session_search", '{"limit": 3, "query": "NAS"}', "session_search NAS limit=3"),
        ("memory", "{}", "memory"),
        (
            "edit_file",
            '{"path": "a.py", "old": "x", "new": "y", "replace_all": true}',
            "edit_file a.py replace_all=true",
        ),
        ("write_file", '{"content": "x\\ny", "path": "a.py"}', "write_file a.py"),
        ("memory", "", "memory"),
        ("read_file", '{"path": ["a"]}', 'read_file path=["a"]'),
        ("x", "[1]", "x [1]"),
        ("x", "{broken", "x {broken"),
        ("x", '{"query": ""}', "x query="),
    ],
)
def test_call_is_described_on_one_line(name: str, arguments: str, shown: str) -> None:
    assert describe_call(ToolCall("c1", name, arguments)) == shown


@pytest.mark.parametrize(
    ("result", "seconds", "end", "output"),
    [
        (ToolResult("a\nb\n[exit code 0]", exit_code=0), 0.04, CallEnd("exit code 0, 0.0 s, 2 lines"), "a\nb"),
        (ToolResult("[exit code 0]", exit_code=0), 12.4, CallEnd("exit code 0, 12 s"), ""),
        (
            ToolResult("a\n\n[ended by SIGKILL]", exit_code=-9),
            1.0,
            CallEnd("ended by SIGKILL, 1.0 s, 1 line", is_failure=True, lines=("a",)),
            "a\n",
        ),
        (
            ToolResult("a\n[ended with all its child processes, because it took more than 1 s]", is_error=True),
            1.0,
            CallEnd(
                "ended with all its child processes, because it took more than 1 s, 1.0 s",
                is_failure=True,
                lines=("a",),
            ),
            "a",
        ),
        (
            ToolResult("a\n[ended, because the user stopped this turn]", is_error=True, end="stopped"),
            1.0,
            CallEnd("stopped, 1.0 s", is_failure=True, lines=("a",)),
            "a",
        ),
        (
            ToolResult("[made a.py: 2 lines added; change 12]", end="made a.py: 2 lines added"),
            0.1,
            CallEnd("made a.py: 2 lines added"),
            "[made a.py: 2 lines added; change 12]",
        ),
        (
            failure("not run: the user stopped this turn"),
            0.0,
            CallEnd("not run: you stopped this turn", is_failure=True),
            "not run: you stopped this turn",
        ),
        (failure("no file\nx"), 0.0, CallEnd("no file x", is_failure=True), "no file\nx"),
        (ToolResult("long text", is_error=True), 0.0, CallEnd("long text", is_failure=True), "long text"),
        (ToolResult("[1, 2]"), 0.5, CallEnd(""), "[1, 2]"),
        (ToolResult("found"), 2.5, CallEnd("2.5 s, 1 line"), "found"),
        (ToolResult('{"error"', is_error=True), 0.0, CallEnd('{"error"', is_failure=True), '{"error"'),
    ],
)
def test_end_says_how_it_went_and_how_long_it_took(
    result: ToolResult, seconds: float, end: CallEnd, output: str
) -> None:
    assert describe_end(result, seconds) == end
    assert output_of(result) == output


def test_words_for_the_model_are_left_out_of_a_refusal() -> None:
    text = "This is not allowed here (approvals.mode is deny in config.yaml). Do not try it again in any form; continue"
    end = describe_end(failure(f"{text} without it, or tell the user what you need."), 0.0)
    assert end.text == "This is not allowed here (approvals.mode is deny in config.yaml)."


def test_user_is_not_told_what_the_model_must_not_try() -> None:
    end = describe_end(failure(".env cannot be read. No permission can change this; do not try another way."), 0.0)
    assert end.text == ".env cannot be read. No permission can change this."


def test_number_of_kept_outputs_is_limited() -> None:
    outputs = FoldedOutputs()
    for number in range(1, MAX_KEPT + 3):
        assert outputs.add("tool", str(number)) == number
    assert outputs.get().text == str(MAX_KEPT + 2)
    assert outputs.get(3).text == "3"
    with pytest.raises(NotFound):
        outputs.get(2)


def test_refusal_of_the_settings_says_so_to_the_user(hermes: Hermes, server: ModelServer) -> None:
    config = hermes.home / "config.yaml"
    config.write_text(config.read_text().replace("mode: allow", "mode: deny"))
    run(server, "touch made")
    lines = hermes("-q", "go").stderr.splitlines()
    assert lines[1] == "  ✗ This is not allowed here (approvals.mode is deny in config.yaml)."
    assert "Do not try it again" in json.loads(server.requests[-1].last_text)["error"]


def test_change_without_a_question_is_shown_afterwards(hermes: Hermes, server: ModelServer, tmp_path: Path) -> None:
    content = "".join(f"line {number}\n" for number in range(1, 41))
    server.then(Say(calls=[Call("write_file", {"path": "new.txt", "content": content})]), Say("Last."))
    with Terminal(hermes, cwd=tmp_path, lines=50) as terminal:
        terminal.enter("go").until("◆ Last.").until_prompt()
        assert "   20 + line 20" in terminal.lines
        assert "line 21\n" not in terminal.text
        assert "  … 20 more rows: /output 1" in terminal.lines
        assert "  ✓ made new.txt: 40 lines added" in terminal.lines
        terminal.enter("/output").until("+line 40")


@pytest.mark.parametrize("arguments", ['{"command":' + "[" * 100_000, '{"command":' + "[" * 990 + "]" * 990 + "}"])
def test_arguments_of_any_depth_are_described(arguments: str) -> None:
    assert describe_call(ToolCall("1", "terminal", arguments)).startswith("terminal ")


def test_output_of_any_depth_that_begins_like_an_error_is_an_output() -> None:
    text = '{"error":' + "[" * 40_000
    assert output_of(ToolResult(f"{text}\n[exit code 0]", exit_code=0)) == text


def test_turn_survives_arguments_of_any_depth(hermes: Hermes, server: ModelServer) -> None:
    server.then(Say(calls=[Call("terminal", '{"command":' + "[" * 100_000)]), Say("done"))
    done = hermes("-q", "go")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-2000:]
    assert "Traceback" not in done.stderr
