"""Answers on a terminal: Markdown is drawn, thoughts are folded, and nothing acts on the terminal."""

from __future__ import annotations

import pytest

from hermes.cli.chat.terminal.folded_thoughts import FoldedThoughts
from hermes.cli.display.markdown_blocks import MarkdownBlocks
from hermes.cli.display.rendered_markdown import MarkdownRenderer
from hermes.cli.display.terminal import display_width
from hermes.cli.display.wrapping import strip_codes

ANSWER = "# Plan\n\nUse **this** and <T>:\n\n- 京都旅行 " + "long words " * 20 + "\n\n> quoted\n\n&#x202e;x\x9b31m ❤️❤️"


def rows(text: str, columns: int) -> list[str]:
    blocks, renderer = MarkdownBlocks(), MarkdownRenderer(has_colour=True)
    done = [block for char in text for block in blocks.add(char)] + blocks.finish()
    return [strip_codes(row) for block in done for row in renderer.render(block, columns)]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_rows_fit_and_contain_no_control_characters(columns: int) -> None:
    shown = rows(ANSWER, columns)
    assert all(display_width(row) <= columns for row in shown)
    assert not any(char in row for row in shown for char in "\x1b\x9b\u202e")
    assert shown[:3] == ["Plan", "", "Use this and <T>:"]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_thoughts_are_folded_while_they_arrive(size: int) -> None:
    text = "<think>secret\nplan</think>\n\nUse `<think>`:\n```xml\n<think>code</think>\n```\n"
    folded = FoldedThoughts()
    shown = "".join(folded.add(text[at : at + size]) for at in range(0, len(text), size)) + folded.finish()
    assert shown == "Use `<think>`:\n```xml\n<think>code</think>\n```\n"
