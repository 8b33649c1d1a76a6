"""Blocks of Markdown as rows of a terminal, with colours that are readable on light and dark backgrounds.

`rich` does the work. It is imported here only, when the first answer is drawn.
"""

from __future__ import annotations

from io import StringIO

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console
from rich.markdown import Heading, Markdown
from rich.segment import Segment
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.text import Text
from rich.theme import Theme

from hermes.cli.display.markdown_blocks import BlockKind, MarkdownBlock
from hermes.cli.display.terminal import display_width, graphemes, printable

LEAST_COLUMNS = 16
MAX_COLUMNS = 120
"""Longer lines are hard to read."""
CODE_CONTEXT = 300
"""How many lines of code before a line decide how it is coloured."""

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
_COLOURS = {
    ("Comment",): Style(italic=True, dim=True),
    ("Keyword",): Style(color="magenta"),
    ("Operator", "Word"): Style(color="magenta"),
    ("Name", "Builtin"): Style(color="cyan"),
    ("Name", "Function"): Style(bold=True),
    ("Name", "Class"): Style(bold=True),
    ("Name", "Decorator"): Style(color="cyan"),
    ("Name", "Tag"): Style(color="magenta"),
    ("Literal", "String"): Style(color="green"),
    ("Literal", "Number"): Style(color="cyan"),
    ("Generic", "Inserted"): Style(color="green"),
    ("Generic", "Deleted"): Style(color="red"),
    ("Generic", "Heading"): Style(bold=True),
    ("Generic", "Subheading"): Style(color="cyan"),
}


class _LeftHeading(Heading):
    """A heading at the left margin."""

    LEVEL_ALIGN = {f"h{level}": "left" for level in range(1, 7)}  # noqa: RUF012 - as in the class above


class _Markdown(Markdown):
    """Markdown in which tags are text, line breaks are kept, and an address is written once."""

    elements = {**Markdown.elements, "heading_open": _LeftHeading}  # noqa: RUF012 - as in the class above

    def __init__(self, markup: str) -> None:
        super().__init__("", hyperlinks=False)
        self.parsed = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).parse(markup)
        for token in self.parsed:
            if token.children:
                token.children = _plain_links(token.children)


class MarkdownRenderer:
    """Turns the blocks of one answer into rows; it remembers the code before a line."""

    def __init__(self, *, has_colour: bool) -> None:
        self._has_colour = has_colour
        self._code: list[str] = []

    def render(self, block: MarkdownBlock, columns: int, mark: str = "", *, is_finished: bool = True) -> list[str]:
        """Return the rows of a block, each with its codes for colours; `mark` stands before the first text."""
        console = self._console(max(LEAST_COLUMNS, min(columns, MAX_COLUMNS)))
        if block.kind is BlockKind.BLANK:
            return [""]
        if block.kind is BlockKind.FENCE:
            self._code = []
            return [*([mark.rstrip()] if mark else []), self._codes(console, [Segment(block.text, Style(dim=True))])]
        if block.kind is BlockKind.CODE:
            row = self._code_row(console, block)
            if is_finished:
                self._code = [*self._code[-CODE_CONTEXT:], block.text]
            return [row]
        is_paragraph = bool(mark) and _is_paragraph(block.text)
        markdown = _Markdown(f"{mark}{block.text}" if is_paragraph else block.text)
        lines = console.render_lines(markdown, console.options.update(height=None), pad=False)
        rows = [self._codes(console, row) for line in lines for row in _split_wide(line, columns)]
        while rows and not rows[-1].strip():
            rows.pop()
        while rows and not rows[0].strip():
            rows.pop(0)
        return rows if is_paragraph or not mark else [mark.rstrip(), *rows]

    def _code_row(self, console: Console, block: MarkdownBlock) -> str:
        """Return a line of code, in colour; it is as long as it is, so that it can be copied."""
        text = Text(block.text)
        if block.language and block.text.strip():
            syntax = Syntax("", block.language, theme=ANSISyntaxTheme(dict(_COLOURS)), background_color="default")
            text = syntax.highlight("\n".join([*self._code, block.text])).split("\n", allow_blank=True)[len(self._code)]
            text.rstrip()
        segments = [each for each in text.render(console) if each.text != "\n"]
        return self._codes(console, segments)

    def _codes(self, console: Console, line: list[Segment]) -> str:
        """Return a row with its styles as codes; no character of the text can be one."""
        parts = [Segment("\t".join(map(printable, text.split("\t"))), style) for text, style, _ in line]
        while parts and not parts[-1].text.strip():
            parts.pop()
        if parts:
            parts[-1] = Segment(parts[-1].text.rstrip(), parts[-1].style)
        return "".join(
            style.render(text, color_system=console._color_system) if style else text
            for text, style, _ in self._without_colour(parts)
        )

    def _without_colour(self, parts: list[Segment]) -> list[Segment]:
        return parts if self._has_colour else list(Segment.remove_color(parts))

    def _console(self, width: int) -> Console:
        return Console(
            file=StringIO(), force_terminal=True, width=width, color_system="standard", theme=_THEME, highlight=False
        )


def _is_paragraph(text: str) -> bool:
    tokens = MarkdownIt("commonmark", {"html": False}).enable("table").parse(text)
    return bool(tokens) and tokens[0].type == "paragraph_open"


def _plain_links(tokens: list[Token]) -> list[Token]:
    """Keep line breaks as they were written, and show an address that is its own text once."""
    kept: list[Token] = []
    for place, token in enumerate(tokens):
        if token.type == "softbreak":
            kept.append(Token("hardbreak", "br", 0))
            continue
        is_link = token.type == "link_open" and len(tokens) > place + 2 and tokens[place + 2].type == "link_close"
        if is_link and tokens[place + 1].content in (href := str(token.attrs.get("href", "")), href[len("mailto:") :]):
            continue
        if token.type == "link_close" and kept and not any(each.type == "link_open" for each in _open_links(kept)):
            continue
        kept.append(token)
    return kept


def _open_links(tokens: list[Token]) -> list[Token]:
    """Return the links that are not closed yet."""
    opened: list[Token] = []
    for token in tokens:
        if token.type == "link_open":
            opened.append(token)
        elif token.type == "link_close":
            opened.pop()
    return opened


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
