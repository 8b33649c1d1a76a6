"""Blocks of Markdown as rows of a terminal, with colours that are readable on light and dark backgrounds.

`rich` does the work. This module is imported when the first answer is drawn, because `rich` takes long to import.
"""

from __future__ import annotations

from io import StringIO

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.theme import Theme

from hermes.cli.display.markdown.blocks import BlockKind, MarkdownBlock, MarkdownBlocks
from hermes.cli.display.markdown.code import CodeHighlighter
from hermes.cli.display.markdown.elements import AnswerMarkdown, parse
from hermes.cli.display.terminal import display_width, graphemes, printable

LEAST_COLUMNS = 16
MAX_COLUMNS = 120
"""Longer lines are hard to read."""

# The sixteen colours of the terminal, without those that are hard to read on one of the backgrounds.
_THEME = Theme(
    {
        "markdown.h1": "bold underline",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
        "markdown.h4": "bold italic",
        "markdown.h5": "italic",
        "markdown.h6": "italic",
        "markdown.code": "cyan",
        "markdown.code_block": "none",
        "markdown.item.bullet": "bold",
        "markdown.item.number": "bold",
        "markdown.block_quote": "italic",
        "markdown.hr": "dim",
        "markdown.link": "underline",
        "markdown.link_url": "cyan",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
    }
)


class MarkdownRenderer:
    """Turns the blocks of one answer into rows; it remembers the code before a line."""

    def __init__(self, *, has_colour: bool) -> None:
        self._has_colour = has_colour
        self._code = CodeHighlighter()
        self._language = ""

    def render(self, block: MarkdownBlock, columns: int, mark: str = "", *, is_finished: bool = True) -> list[str]:
        """Return the rows of a block, each with its codes for colours; `mark` stands before the first text.

        Rows fit into the columns, except those of code, which are as long as they are, so that they can be copied.
        """
        if block.kind is BlockKind.BLANK:
            return [""]
        if block.kind is BlockKind.FENCE:
            self._code, self._language = CodeHighlighter(), ""
            return [*([mark.rstrip()] if mark else []), self._row([Segment(block.text, Style(dim=True))])]
        if block.kind is BlockKind.CODE:
            return self._code_rows(block, is_finished=is_finished)
        indent = min(block.indent, max(0, columns - LEAST_COLUMNS))
        console = _console(max(LEAST_COLUMNS, min(columns - indent, MAX_COLUMNS)))
        is_paragraph = bool(mark) and _is_paragraph(block.text)
        markdown = AnswerMarkdown(f"{mark}{block.text}" if is_paragraph else block.text)
        lines = console.render_lines(markdown, console.options.update(height=None, overflow="fold"), pad=False)
        rows = [self._row(row) for line in lines for row in _split_wide(line, columns - indent)]
        while rows and not rows[-1].strip():
            rows.pop()
        while rows and not rows[0].strip():
            rows.pop(0)
        rows = [" " * indent + row if row else row for row in rows]
        return rows if is_paragraph or not mark else [mark.rstrip(), *rows]

    def _code_rows(self, block: MarkdownBlock, *, is_finished: bool) -> list[str]:
        if self._language != block.language:
            self._code, self._language = CodeHighlighter(block.language), block.language
        console = _console(MAX_COLUMNS)
        lines = self._code.highlight(block.text, is_finished=is_finished)
        return [self._row([each for each in line.render(console) if each.text != "\n"]) for line in lines]

    def _row(self, line: list[Segment]) -> str:
        """Return a row with its styles as codes; no character of the text can be one."""
        parts = [Segment("\t".join(map(printable, text.split("\t"))), style) for text, style, _ in line if text]
        while parts and not parts[-1].text.strip():
            parts.pop()
        if parts:
            parts[-1] = Segment(parts[-1].text.rstrip(), parts[-1].style)
        parts = list(Segment.simplify(parts if self._has_colour else Segment.remove_color(parts)))
        console = _console(MAX_COLUMNS)
        return "".join(
            style.render(text, color_system=console._color_system) if style else text for text, style, _ in parts
        )


def render_markdown(text: str, columns: int, *, has_colour: bool) -> list[str]:
    """Return a whole text as rows."""
    blocks, renderer = MarkdownBlocks(), MarkdownRenderer(has_colour=has_colour)
    return [row for block in [*blocks.add(text), *blocks.finish()] for row in renderer.render(block, columns)]


def _console(width: int) -> Console:
    return Console(
        file=StringIO(), force_terminal=True, width=width, color_system="standard", theme=_THEME, highlight=False
    )


def _is_paragraph(text: str) -> bool:
    tokens = parse(text)
    return bool(tokens) and tokens[0].type == "paragraph_open"


def _split_wide(line: list[Segment], columns: int) -> list[list[Segment]]:
    """Break a row that takes more columns than `rich` has counted."""
    if sum(display_width(each.text) for each in line) <= columns:
        return [line]
    rows: list[list[Segment]] = [[]]
    left = columns
    for text, style, _ in line:
        part = ""
        for each in graphemes(text):
            width = display_width(each)
            if width > left:
                rows[-1].append(Segment(part, style))
                rows.append([])
                part, left = "", columns
            part, left = part + each, left - width
        rows[-1].append(Segment(part, style))
    return rows
