"""Live answers on a terminal: what is on the screen at the end is what the whole answer looks like."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

import pytest

from hermes.cli.chat.terminal import live_answer, live_rows
from hermes.cli.chat.terminal.live_answer import LiveAnswer
from hermes.cli.chat.terminal.live_rows import LiveRows
from hermes.cli.chat.terminal.screen import Screen
from hermes.cli.display.markdown.blocks import MarkdownBlocks
from hermes.cli.display.markdown.renderer import MarkdownRenderer
from tests.cli.chat.pane import Pane, lines_of
from tests.support.waiting import wait_until

LONG_LINE = "command --option=" + "x" * 250

ANSWERS = {
    "paragraphs": f"One **bold** `code` and *more* words that go on {'and on ' * 30}\nnext line\n\nLast ~~gone~~ one.",
    "headings": "# First\ntext\n\nSecond\n======\n\n### Third\n\n---\nend",
    "lists": "1. one\n   - inner **words** that go on and on and on and on and on and on until they are wrapped\n"
    "     - inmost\n2. two\n\n   ```python\n   def f():\n       return 1\n   ```\n\n   after the code\n3. three\n\nend",
    "table": "Before:\n\n| Name | 状态 | Text |\n|---|:-:|--:|\n"
    "| 京都旅行 | ✅ | some words that have to be wrapped here |\n| b | 完成 | x |\n\nafter",
    "wide table": "|" + "column|" * 9 + "\n|" + "---|" * 9 + "\n|" + "value|" * 9 + "\n\nafter",
    "quotes": "> quoted *words*\n> > deeper\n>\n> ```\n> code\n> ```\n\nend",
    "code": f"```sh\necho 'a' # b\n{LONG_LINE}\n\tindented by a tab\n```\ndone",
    "unterminated code": "Look:\n```python\ndef f():\n    '''a\n    b'''\n    return 2",
    "fences": "````md\n```\ninner\n```\n````\n~~~\nx ``` y\n~~~\nend",
    "cjk": "京都旅行の計画を立てるのを手伝ってください。" * 6
    + "\n\n- 東京へ行く 🎉 と大阪へ行く 🚄 の計画を手伝ってください、よろしく",
    "many rows": "\n".join(f"- item {number} with some words" for number in range(30)) + "\n\nend",
    "much code": "```python\n" + "\n".join(f"value_{number} = {number}" for number in range(60)) + "\n```\nend",
    "one word": "x" * 700,
    "links": "[text](https://example.org/a?b=c) https://example.org ![image](http://example.org/i.png)\n[a]: http://b.org",
}


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal without settings of the person who runs the tests, on which every piece is drawn."""
    for name in ("NO_COLOR", "COLUMNS", "LINES", "TMUX", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(live_answer, "REDRAW_S", 0.0)
    monkeypatch.setattr(live_answer, "DRAWING_SHARE", inf)


@contextmanager
def answer_in(pane: Pane, mark: str = "◆ ") -> Iterator[LiveAnswer]:
    with pane:
        live = LiveAnswer(mark)
        yield live
        live.finish()


def whole(text: str, columns: int, mark: str = "◆ ") -> str:
    """Return the rows of an answer that arrives at once."""
    blocks, renderer = MarkdownBlocks(), MarkdownRenderer(has_colour=True)
    rows: list[str] = []
    for block in blocks.add(text) + blocks.finish():
        rows += renderer.render(block, columns - 1, "" if rows else mark)
    return "\n".join(rows)


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize(("columns", "lines"), [(40, 12), (80, 24), (200, 50)])
def test_pieces_end_up_as_the_whole_answer(name: str, columns: int, lines: int) -> None:
    text = ANSWERS[name]
    expected = lines_of(whole(text, columns), columns, lines)
    for size in (1, 7, 120) if len(text) < 600 else (7, 120):
        with answer_in(pane := Pane(columns, lines)) as live:
            for at in range(0, len(text), size):
                live.add(text[at : at + size])
        assert pane.lines == expected, f"in pieces of {size}"


@pytest.mark.parametrize("name", ["paragraphs", "lists", "table", "code", "cjk"])
@pytest.mark.parametrize("to", [30, 55, 130])
def test_window_that_changes_its_size_loses_no_text(monkeypatch: pytest.MonkeyPatch, name: str, to: int) -> None:
    monkeypatch.setenv("XTERM_VERSION", "a terminal without reflow, as the one of this test")
    text = ANSWERS[name]
    with answer_in(pane := Pane(80, 24)) as live:
        for at in range(0, len(text), 3):
            if at // 3 == len(text) // 6:
                pane.settle()
                pane.resize(to, 24)
            live.add(text[at : at + 3])
    end = lines_of(whole(text, to), to)
    last = end[-3:]
    assert pane.lines[-len(last) :] == last
    assert "".join(pane.lines).count("◆") == 1


def test_terminal_with_reflow_gets_back_over_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = LiveRows()
    monkeypatch.setenv("COLUMNS", "80")
    rows.draw([], ["x" * 70, "y" * 30])
    monkeypatch.setenv("COLUMNS", "40")
    assert "\r\x1b[2A\x1b[J" in rows.draw([], ["x" * 39])


def test_rows_before_ctrl_z_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_rows, "_times_left", 0)
    rows = LiveRows()
    rows.draw([], ["a", "b"])
    live_rows.leave_rows()
    assert rows.draw([], ["a", "c"]) == "a\nc"
    assert "\x1b[J" in rows.draw([], ["a", "d"])


def test_text_that_only_grows_is_not_drawn_again() -> None:
    with answer_in(pane := Pane(80)) as live:
        for word in ["one ", "two ", "three"]:
            live.add(word)
    assert b"\x1b[J" not in pane.raw
    assert pane.raw.count(b"one") == 1


def test_text_that_came_too_soon_is_drawn_without_a_next_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_answer, "REDRAW_S", 0.05)
    with answer_in(pane := Pane(80)) as live:
        live.add("first ")
        live.add("second")
        wait_until(lambda: "◆ first second" in pane.lines, "the second piece")


def test_seconds_are_counted_while_nothing_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_answer, "STALL_S", 0.0)
    with answer_in(pane := Pane(80)) as live:
        live.add("first\n\n- item")
        wait_until(lambda: bool(pane.lines) and pane.lines[-1].endswith(" 0 s"), "the seconds")
        assert pane.lines[:-1] == ["◆ first", "", " • item"]
        monkeypatch.setattr(live_answer, "STALL_S", inf)
        live.add("s\nend")
        wait_until(lambda: pane.lines[-1].endswith("end"), "the next piece")
    assert pane.lines == ["◆ first", "", " • items", "   end"]


def test_bold_and_code_look_like_that_before_their_end_has_arrived() -> None:
    with answer_in(pane := Pane(80)) as live:
        live.add("A **very bo")
        wait_until(lambda: pane.lines == ["◆ A very bo"], "the piece")
        live.add("ld** word and `co")
        wait_until(lambda: pane.lines == ["◆ A very bold word and co"], "the piece")
        live.add("de`:\n-")
        wait_until(lambda: pane.lines == ["◆ A very bold word and code:"], "the piece")


@pytest.mark.parametrize("size", [1, 2, 5])
def test_nothing_in_an_answer_acts_on_the_terminal(size: int) -> None:
    text = "a\x1b[2Jb\x1b]0;title\x07c\x9b31md\x08\x7f\n"
    text += "```sh\n\x1b[31mred\x1b[0m\n```\n| a\x1b[1A |\n|---|\n| &#27;[2J |\n"
    with Pane(400) as pane:
        screen = Screen(is_conversation=True)
        for at in range(0, len(text), size):
            screen.text(text[at : at + size])
        screen.end()
    ours = (b"\x1b[0m", b"\x1b[2m", b"\x1b[1m", b"\x1b[J", b"\x1b[?2026h", b"\x1b[?2026l", b"\x1b[36m", b"\x1b[32m")
    rest = pane.raw
    for code in ours:
        rest = rest.replace(code, b"")
    assert not any(each in rest for each in (b"\x1b[2J", b"\x1b]", b"\x07", b"\x9b", b"\x08", b"\x7f", b"\x1b[31m"))
    shown = "\n".join(pane.lines)
    assert "a\\x1b[2Jb\\x1b]0;title\\x07c\\x9b31md\\x08\\x7f" in shown
    assert "\\x1b[31mred" in shown


def test_colours_follow_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with answer_in(pane := Pane(80)) as live:
        live.add("**bold** `code`\n```python\ndef f(): return 'x'\n```\n")
    assert b"\x1b[1mbold" in pane.raw
    assert not any(f"{colour}m".encode() in pane.raw for colour in range(30, 38))


def test_thoughts_are_left_out_and_an_unfinished_one_is_mentioned() -> None:
    with Pane(80) as pane:
        screen = Screen(is_conversation=True)
        for char in "<think>secret\nplan</think>\n\nThe answer.":
            screen.text(char)
        screen.end()
        screen.begin()
        screen.text("<think>never ends")
        screen.end()
    assert [line for line in pane.lines if line] == [
        "◆ The answer.",
        "The answer ended in the middle of the model's thoughts.",
    ]
