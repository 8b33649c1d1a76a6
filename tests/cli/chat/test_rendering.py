"""Rendered answers: Markdown is drawn, thoughts are folded, and nothing acts on the terminal."""

from __future__ import annotations

import pytest

from hermes.cli.chat.terminal.folded_thoughts import FoldedThoughts
from hermes.cli.display.markdown.blocks import MarkdownBlocks
from hermes.cli.display.markdown.renderer import MarkdownRenderer
from hermes.cli.display.terminal import display_width
from hermes.cli.display.wrapping import strip_codes, wrap_line

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


@pytest.mark.parametrize("text", ["İ" * 40, "x" * 5])
def test_end_of_a_thought_is_found_after_letters_that_change_their_length(text: str) -> None:
    folded = FoldedThoughts()
    assert folded.add(f"<think>{text}</THINK>answer") == "answer"


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("[a][1]\n\n[1]: http://example.org", ["[a][1]", "", "[1]: http://example.org"]),
        ("![alt](http://example.org/i.png)", ["alt (http://example.org/i.png)"]),
        ("<b>tag</b> &amp; <script>", ["<b>tag</b> & <script>"]),
        ("http://example.org <http://example.org>", ["http://example.org http://example.org"]),
        (
            "1. a\n\n   ```sh\n   ls -l\n   ```\n\n   after\n2. b",
            [" 1. a", "", "```sh", "ls -l", "```", "", "   after", " 2. b"],
        ),
        ("9. a\n10. b\n    - c", ["  9. a", " 10. b", "      • c"]),
        ("- a\n    - b\n        - c", [" • a", "    • b", "       • c"]),
        ("```python\nx = 1  \n\n\ty\n```", ["```python", "x = 1", "", "\ty", "```"]),
        ("```nosuchlanguage\nx\n```", ["```nosuchlanguage", "x", "```"]),
        ("> a\n>\n> ```\n> code\n> ```", ["▌ a", "▌ code"]),
        ("| a | b |\n|---|---|\n| 1 |\n| x | y | z |", ["a  b", "────", "1", "x  y"]),
    ],
)
def test_nothing_that_was_written_is_hidden(markdown: str, expected: list[str]) -> None:
    assert rows(markdown, 80) == expected


@pytest.mark.parametrize("columns", [20, 40, 60, 79])
def test_cells_of_a_wide_table_are_never_cut(columns: int) -> None:
    words = [f"word{number}" for number in range(8)]
    table = f"|{'|'.join(words)}|\n|{'---|' * 8}\n|{'|'.join(f'京都{word}値' for word in words)}|"
    shown = rows(table, columns)
    assert all(display_width(row) <= columns for row in shown)
    text = "".join(shown).replace(" ", "")
    assert all(f"京都{word}値" in text for word in words)


@pytest.mark.parametrize("text", ["👩‍👩‍👧 family", "❤️❤️❤️", "🇨🇿🇨🇿", "한국어 텍스트", "e\u0301e\u0301", "ｱｲｳ", "नमस्ते"])
@pytest.mark.parametrize(
    "form", ["{} {} {} {} {} {}", "- {}\n- {}\n  {}", "| {} | b |\n|---|---|\n| a | {} |", "> {} {}"]
)
def test_wide_and_joined_characters_fit(text: str, form: str) -> None:
    for columns in (16, 20, 40):
        assert all(display_width(row) <= columns for row in rows(form.format(*[text] * 6), columns))


def test_colour_of_code_does_not_depend_on_the_pieces() -> None:
    code = "\n".join(f"def f{number}():\n    '''a\n    b'''\n    return {number}" for number in range(60))
    answer = f"```python\n{code}\n```\n"
    shown = []
    for size in (3, 200, len(answer)):
        blocks, renderer = MarkdownBlocks(), MarkdownRenderer(has_colour=True)
        done = [block for at in range(0, len(answer), size) for block in blocks.add(answer[at : at + size])]
        shown.append([row for block in done for row in renderer.render(block, 80)])
    assert shown[0] == shown[1] == shown[2]
    assert "\x1b[35mdef\x1b[0m" in shown[0][1]
    assert all("\x1b[32m" in row for row in shown[0] if "b'''" in row)


@pytest.mark.parametrize(
    ("line", "width", "expected"),
    [
        ("Hint: one two three", 12, ["Hint: one", "two three"]),
        ("  item one two three four five", 20, ["  item one two three", "  four five"]),
        ("  hermes -r 20261116_100000_6937cad8", 20, ["  hermes -r", "  20261116_100000_6937cad8"]),
        ("京都旅行の計画を立てる", 10, ["京都旅行の計画を立てる"]),
        ("", 10, [""]),
        ("short", 10, ["short"]),
    ],
)
def test_lines_of_the_chat_are_broken_between_words(line: str, width: int, expected: list[str]) -> None:
    assert wrap_line(line, width) == expected
