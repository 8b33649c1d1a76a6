"""Parts of Markdown that are drawn in another way than `rich` does by default."""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, HorizontalRule, ListItem, Markdown, TableElement
from rich.rule import Rule
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from hermes.cli.display.markdown.code import CodeHighlighter
from hermes.cli.display.terminal import display_width

LEAST_COLUMN = 8
"""A column of a table is at least that wide, or as wide as its longest word."""
GAP = 3
"""How many columns of the terminal are between two columns of a table."""


class LeftHeading(Heading):
    """A heading at the left margin."""

    LEVEL_ALIGN = {f"h{level}": "left" for level in range(1, 7)}  # noqa: RUF012 - as in the class above


class PlainRule(HorizontalRule):
    """A line between two parts."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the line."""
        yield Rule(style="markdown.hr")


class DottedItem(ListItem):
    """An item of a list, its number with a dot, as it was written."""

    def render_number(self, console: Console, options: ConsoleOptions, number: int, last_number: int) -> RenderResult:
        """Yield the number and the text next to it."""
        width = len(str(last_number)) + 3
        style = console.get_style("markdown.item.number", default="none")
        lines = console.render_lines(self.elements, options.update(width=options.max_width - width), style=self.style)
        for place, line in enumerate(lines):
            yield Segment("" if place else f"{number}.".rjust(width - 1), style)
            yield Segment(" " * (width if place else 1))
            yield from line
            yield Segment.line()


class NestedCode(CodeBlock):
    """Code in a quote, in an item of a list, or without a fence, in the colours of other code."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines; a long one is broken, because the frame around it would cut it."""
        code = str(self.text).rstrip("\n")
        for line in CodeHighlighter("" if self.lexer_name == "text" else self.lexer_name).highlight(code):
            line.overflow = "fold"
            yield line


class FittingTable(TableElement):
    """A table whose cells are never cut; if it is too wide, each of its rows becomes a list."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, or its rows as lists."""
        heads = self.header.row.cells if self.header is not None and self.header.row is not None else []
        rows = [row.cells for row in self.body.rows] if self.body is not None else []
        least = [
            max(_least_width(cells[place].content.plain) for cells in [heads, *rows] if place < len(cells))
            for place in range(len(heads))
        ]
        if sum(least) + GAP * len(least) > options.max_width:
            yield from _as_lists([head.content for head in heads], [[each.content for each in row] for row in rows])
            return
        table = Table(
            box=box.SIMPLE_HEAD, pad_edge=False, style="markdown.table.border", show_edge=False, collapse_padding=True
        )
        for head in heads:
            heading = head.content.copy()
            heading.stylize("markdown.table.header")
            table.add_column(heading, overflow="fold")
        for row in rows:
            table.add_row(*(each.content for each in row))
        yield table


def _least_width(cell: str) -> int:
    return min(LEAST_COLUMN, max(map(display_width, cell.split()), default=1))


def _as_lists(heads: list[Text], rows: list[list[Text]]) -> RenderResult:
    for number, row in enumerate(rows or [[Text() for _ in heads]]):
        if number:
            yield Text()
        for head, cell in zip(heads, row, strict=False):
            name = head.copy()
            name.stylize("markdown.table.header")
            line = Text.assemble(name, ": ", cell)
            line.justify = "left"
            yield line


class AnswerMarkdown(Markdown):
    """Markdown in which nothing is hidden: tags are text, line breaks stay, and addresses of links are shown."""

    elements = {  # noqa: RUF012 - as in the class above
        **Markdown.elements,
        "heading_open": LeftHeading,
        "hr": PlainRule,
        "list_item_open": DottedItem,
        "fence": NestedCode,
        "code_block": NestedCode,
        "table_open": FittingTable,
    }

    def __init__(self, markup: str) -> None:
        super().__init__("", hyperlinks=False)
        self.parsed = parse(markup)
        for token in self.parsed:
            if token.children:
                token.children = _plain_links(token.children)


def parse(markup: str) -> list[Token]:
    """Parse Markdown; the definition of a reference stays text, because the link may be in another block."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable("reference")
    return parser.parse(markup)


def _plain_links(tokens: list[Token]) -> list[Token]:
    """Keep line breaks as they were written, show images as links, and an address that is its own text once."""
    tokens = [each for token in tokens for each in _as_link(token)]
    kept: list[Token] = []
    hidden = 0
    for place, token in enumerate(tokens):
        if token.type == "softbreak":
            kept.append(Token("hardbreak", "br", 0))
            continue
        if token.type == "link_open" and len(tokens) > place + 2 and tokens[place + 2].type == "link_close":
            href = str(token.attrs.get("href", ""))
            if tokens[place + 1].content in (href, href.removeprefix("mailto:")):
                hidden += 1
                continue
        if token.type == "link_close" and hidden:
            hidden -= 1
            continue
        kept.append(token)
    return kept


def _as_link(token: Token) -> list[Token]:
    """Return an image as the tokens of a link to it, and any other token as it is."""
    if token.type != "image":
        return [token]
    text = Token("text", "", 0, content=token.content or "image")
    return [Token("link_open", "a", 1, attrs={"href": token.attrs.get("src", "")}), text, Token("link_close", "a", -1)]
