"""What a model server sends, drawn by the real program in a real terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tests.cli.chat.pane import lines_of
from tests.cli.chat.terminal import Terminal
from tests.cli.chat.test_live_answer import ANSWERS, whole
from tests.cli.conftest import Hermes
from tests.support.modelserver import ModelServer, Raw, Say

TEXT = f"# Plan\n\n{ANSWERS['lists']}\n\n{ANSWERS['table']}\n\n{ANSWERS['code']}\n\n{ANSWERS['cjk']}"


@pytest.fixture
def server(hermes: Hermes) -> Iterator[ModelServer]:
    """A model server that the configuration names."""
    with ModelServer() as server:
        hermes.home.mkdir(mode=0o700)
        settings = "agent: {auto_title: false}\ndisplay: {status_line: false}\n"
        (hermes.home / "config.yaml").write_text(server.config + settings)
        yield server


def pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def drawn(terminal: Terminal) -> list[str]:
    """Return the lines of the answer to `go`."""
    lines = terminal.until_prompt().lines
    return lines[lines.index("> go") + 1 : -2]


@pytest.mark.parametrize("columns", [40, 80, 120, 200])
def test_answer_looks_the_same_however_it_arrives(hermes: Hermes, server: ModelServer, columns: int) -> None:
    server.then(Say(pieces=pieces(TEXT, 2), between_s=0.001))
    with Terminal(hermes, columns=columns, lines=20) as terminal:
        terminal.enter("go").until("よろしく")
        assert drawn(terminal) == lines_of(whole(TEXT, columns), columns)


def test_bytes_may_be_split_inside_of_a_character(hermes: Hermes, server: ModelServer) -> None:
    text = "京都 **旅行** 🎉\n\n- é\n"
    chunks = [{"choices": [{"index": 0, "delta": {"content": each}}]} for each in pieces(text, 1)]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    data = "".join(f"data: {json.dumps(each, ensure_ascii=False)}\n\n" for each in chunks) + "data: [DONE]\n\n"
    raw = data.encode()
    server.then(Raw([raw[at : at + 5] for at in range(0, len(raw), 5)]))
    with Terminal(hermes) as terminal:
        terminal.enter("go").until("• é")
        assert drawn(terminal) == ["◆ 京都 旅行 🎉", "", " • é"]


def test_window_may_change_while_an_answer_arrives(hermes: Hermes, server: ModelServer) -> None:
    text = "\n".join(f"- item {number} and some words that go on to the edge of the window" for number in range(12))
    server.then(Say(pieces=pieces(f"Begin\n\n{text}\n\nEnd", 4), between_s=0.005))
    with Terminal(hermes, columns=90, lines=30, XTERM_VERSION="without reflow") as terminal:
        terminal.enter("go").until("item 4").resize(50, 30).until("item 8").resize(70, 30).until("End")
        lines = drawn(terminal)
    assert lines[0] == "◆ Begin"
    shown = " ".join(" ".join(lines).split())
    assert all(f"• item {number} and some words that go on" in shown for number in range(12))
    assert lines[-1] == "End"
    assert sum("item 11 " in line for line in lines) == 1


def test_pipe_gets_the_text_as_it_is_and_imports_nothing_that_draws(hermes: Hermes, server: ModelServer) -> None:
    for options in (["-Q", "-q"], ["-q"]):
        server.then(Say(pieces=pieces(TEXT, 7)))
        done = hermes(*options, "go", PYTHONPROFILEIMPORTTIME="1")
        assert done.stdout == f"{TEXT}\n"
        assert "hermes.cli.chat.terminal.screen" in done.stderr
        assert not re.search(r"\|\s+(rich|pygments|markdown_it|prompt_toolkit)\b", done.stderr)


def test_quiet_answer_on_a_terminal_is_not_drawn(hermes: Hermes, server: ModelServer) -> None:
    server.then(Say("**bold**"))
    with Terminal(hermes, "-Q", "-q", "go") as terminal:
        terminal.until_over()
        assert terminal.lines[0] == "**bold**"


def test_no_color_leaves_bold_text(hermes: Hermes, server: ModelServer) -> None:
    server.then(Say("**bold** `code`\n\n```python\ndef f(): pass\n```\n"))
    with Terminal(hermes, NO_COLOR="1") as terminal:
        terminal.enter("go").until("def f(): pass").until_prompt()
        assert b"\x1b[1mbold" in terminal.raw
        assert not re.search(rb"\x1b\[[0-9;]*3[0-7]m", terminal.raw)


def test_dumb_terminal_gets_markdown_as_it_is(hermes: Hermes, server: ModelServer) -> None:
    server.then(Say("**bold**\n\n- item"))
    with Terminal(hermes, TERM="dumb") as terminal:
        terminal.enter("go").until("◆ **bold**").until("- item").until_prompt()
        assert b"\x1b[?2026h" not in terminal.raw
