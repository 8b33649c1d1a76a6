"""Code in the sixteen colours of the terminal, line by line as it arrives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from pygments.lexer import Lexer  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.token import (  # type: ignore[import-untyped]
    Comment,
    Generic,
    Keyword,
    Literal,
    Name,
    Operator,
    String,
    _TokenType,
)
from pygments.util import ClassNotFound  # type: ignore[import-untyped]
from rich.style import Style
from rich.text import Text

Line = list[tuple[_TokenType, str]]

CONTEXT = 20
"""How many lines before a line decide how it is coloured; more, if it is inside of a string or a comment."""
MAX_CONTEXT = 100
MAX_LINE = 1_000
"""A longer line has no colours: finding them could take long."""
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")

# Without the colours that are hard to read on a light or on a dark background.
_STYLES = {
    Comment: Style(italic=True, dim=True),
    Keyword: Style(color="magenta"),
    Operator.Word: Style(color="magenta"),
    Name.Builtin: Style(color="cyan"),
    Name.Function: Style(bold=True),
    Name.Class: Style(bold=True),
    Name.Decorator: Style(color="cyan"),
    Name.Tag: Style(color="magenta"),
    String: Style(color="green"),
    Literal.Number: Style(color="cyan"),
    Generic.Inserted: Style(color="green"),
    Generic.Deleted: Style(color="red"),
    Generic.Heading: Style(bold=True),
    Generic.Subheading: Style(color="cyan"),
}


class CodeHighlighter:
    """Colours one piece of code; it remembers the lines before."""

    def __init__(self, language: str = "") -> None:
        self._lexer = _find_lexer(language)
        self._before: list[str] = []

    def highlight(self, code: str, *, is_finished: bool = True) -> list[Text]:
        """Return the lines of code in colour; unfinished ones will come again."""
        lines = code.split("\n")
        if self._lexer is None or any(len(line) > MAX_LINE for line in lines):
            self._before = [] if is_finished else self._before
            return [Text(line) for line in lines]
        coloured = list(_split_lines(self._lexer, "\n".join([*self._before, *lines])))
        shown = coloured[len(self._before) : len(self._before) + len(lines)]
        if is_finished:
            self._before = _context([*self._before, *lines], coloured)
        return [_styled(tokens, line) for tokens, line in zip(shown, lines, strict=True)]


@lru_cache(16)
def _find_lexer(language: str) -> Lexer | None:
    if not _LANGUAGE.fullmatch(language):
        return None
    try:
        return get_lexer_by_name(language.lower(), stripnl=False, startinline=True)
    except ClassNotFound:
        return None


def _split_lines(lexer: Lexer, code: str) -> Iterator[Line]:
    """Yield the tokens of each line; the line break is part of its last token."""
    line: Line = []
    for kind, text in lexer.get_tokens(code):
        for part in text.splitlines(keepends=True):
            line.append((kind, part))
            if part.endswith("\n"):
                yield line
                line = []
    yield line


def _context(lines: list[str], coloured: list[Line]) -> list[str]:
    """Return the last lines, from one on that begins outside of strings and comments."""
    if len(lines) <= CONTEXT:
        return lines
    for place in range(len(lines) - 1, max(0, len(lines) - MAX_CONTEXT), -1):
        is_outermost = bool(lines[place]) and not lines[place][0].isspace()
        end = coloured[place - 1][-1:]
        if is_outermost and end and not (end[0][0] in Comment or end[0][0] in String):
            return lines[place:]
    return lines[-MAX_CONTEXT:]


def _styled(tokens: Line, line: str) -> Text:
    text = Text()
    for kind, part in tokens:
        text.append(part.rstrip("\n"), _style_of(kind))
    # A lexer may change white space; what is shown is always what was written.
    return text if text.plain == line else Text(line)


def _style_of(kind: _TokenType) -> Style | None:
    while kind not in _STYLES and kind.parent is not None:
        kind = kind.parent
    return _STYLES.get(kind)
