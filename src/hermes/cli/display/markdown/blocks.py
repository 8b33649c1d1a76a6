"""Markdown that arrives in pieces, cut into blocks: a finished block never changes again."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum, auto

MAX_BLOCK_CHARACTERS = 20_000
"""A longer block is cut, so that drawing it again while it grows stays fast."""
MAX_INDENT = 12

_FENCE = re.compile(r"( *)(`{3,}|~{3,})(.*)")
_USUAL_INDENT = 3
"""How many blanks may precede a fence outside of a list."""
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])(?:\s|$)")
_RULE = re.compile(r"\s*(?:-+|=+|[*_`~]{1,2})\s*")
"""The beginning of a line whose meaning is not certain yet: an item, a heading, a fence or a rule."""
_CODE_SPAN = re.compile(r"`[^`\n]*`")


class BlockKind(Enum):
    """The kind of a block."""

    TEXT = auto()
    """Markdown: a paragraph, a heading, a list, a table or a quote."""
    BLANK = auto()
    """The empty line between two blocks."""
    FENCE = auto()
    """The line before or after code."""
    CODE = auto()
    """One or more lines of code."""


@dataclass(frozen=True, slots=True)
class MarkdownBlock:
    """A part of an answer."""

    kind: BlockKind
    text: str = ""
    language: str = ""
    """The language of code, as the model names it."""
    indent: int = 0
    """How many blanks precede a text, which belongs to an item of a list."""


class MarkdownBlocks:
    """Collects pieces of Markdown, and returns each block as soon as it is finished."""

    def __init__(self) -> None:
        self._line = ""
        self._lines: list[str] = []
        """The finished lines of the unfinished block, without its indent."""
        self._size = 0
        self._indent = 0
        self._is_in_list = False
        self._fence = ""
        """The fence that closes the code; empty outside of code."""
        self._fence_indent = 0
        self._language = ""
        self._has_blank = False
        """Whether an empty line follows the unfinished block, which is a list and may continue."""
        self._is_after_blank = True

    def add(self, piece: str) -> list[MarkdownBlock]:
        """Add a piece and return the blocks that it finishes; lines of code that follow each other are one block."""
        *lines, self._line = (self._line + piece).split("\n")
        done = [block for line in lines for block in self._add_line(line)]
        if len(self._line) > MAX_BLOCK_CHARACTERS:
            line, self._line = self._line, ""
            done += [*self._add_line(line), *self._take()]
        return _join_code(done)

    @property
    def rest(self) -> MarkdownBlock | None:
        """The block that is not finished, as it will probably look; None if there is no text in it."""
        if self._fence:
            line = _dedent(self._line, self._fence_indent)
            is_closing = bool(line) and not line.strip(self._fence[0])
            return None if is_closing or not line else MarkdownBlock(BlockKind.CODE, line, self._language)
        indent = self._indent if self._lines else self._indent_of(self._line)
        last = [] if _RULE.fullmatch(self._line) else [_dedent(self._line, indent)]
        text = "\n".join([*self._lines, *[""] * self._has_blank, *last])
        return MarkdownBlock(BlockKind.TEXT, _close_marks(text), indent=indent) if text.strip() else None

    def finish(self) -> list[MarkdownBlock]:
        """Return what is left at the end of the answer."""
        line, self._line = self._line, ""
        done = [*(self._add_line(line) if line.strip() else ()), *self._take()]
        return done[:-1] if done and done[-1].kind is BlockKind.BLANK else done

    def _add_line(self, line: str) -> list[MarkdownBlock]:
        if self._fence:
            return [self._add_code(line)]
        fence = _FENCE.fullmatch(line)
        if fence is not None and self._is_fence(fence):
            done = self._take()
            self._fence_indent, self._fence = len(fence[1]), fence[2]
            self._language = fence[3].strip().partition(" ")[0]
            return [*done, self._emit(BlockKind.FENCE, line.lstrip(" "))]
        if not line.strip():
            return self._end_block()
        done = []
        if self._has_blank:
            if _ITEM.match(line) or line.startswith("  "):
                self._has_blank = False
                self._lines.append("")
            else:
                done = self._take()
        elif self._size + len(line) > MAX_BLOCK_CHARACTERS or self._is_next_item(line):
            done = self._take()
        if not self._lines:
            self._indent = self._indent_of(line)
            self._is_in_list = self._indent > 0 or _ITEM.match(line) is not None
        self._lines.append(_dedent(line, self._indent))
        self._size += len(line)
        return done

    def _is_fence(self, fence: re.Match[str]) -> bool:
        is_near = len(fence[1]) <= _USUAL_INDENT or self._is_in_list
        return is_near and not (fence[2][0] == "`" and "`" in fence[3])

    def _is_next_item(self, line: str) -> bool:
        """Whether a line begins an item of the list around an indented block."""
        return self._indent > len(line) - len(line.lstrip(" ")) and _ITEM.match(line) is not None

    def _indent_of(self, line: str) -> int:
        """Return the indent of a block that begins with a line: in a list, blanks do not mean code."""
        return min(MAX_INDENT, len(line) - len(line.lstrip(" "))) if self._is_in_list else 0

    def _end_block(self) -> list[MarkdownBlock]:
        """Finish the block at an empty line; a list may continue after it."""
        if self._lines and _ITEM.match(self._lines[0]):
            self._has_blank = True
            return []
        done = self._take()
        return done if self._is_after_blank else [*done, self._emit(BlockKind.BLANK)]

    def _add_code(self, line: str) -> MarkdownBlock:
        stripped = line.strip()
        if stripped.startswith(self._fence) and not stripped.strip(self._fence[0]):
            self._fence = ""
            return self._emit(BlockKind.FENCE, stripped)
        return self._emit(BlockKind.CODE, _dedent(line, self._fence_indent), self._language)

    def _take(self) -> list[MarkdownBlock]:
        """Return the collected lines as a block, with the empty line after it."""
        if not self._lines:
            return []
        done = [replace(self._emit(BlockKind.TEXT, "\n".join(self._lines)), indent=self._indent)]
        if self._has_blank:
            done.append(self._emit(BlockKind.BLANK))
        self._lines, self._size, self._has_blank = [], 0, False
        return done

    def _emit(self, kind: BlockKind, text: str = "", language: str = "") -> MarkdownBlock:
        self._is_after_blank = kind is BlockKind.BLANK
        return MarkdownBlock(kind, text, language)


def _join_code(blocks: list[MarkdownBlock]) -> list[MarkdownBlock]:
    """Return blocks with the lines of code that follow each other in one block, so that they are coloured at once."""
    joined: list[MarkdownBlock] = []
    lines: list[str] = []
    for place, block in enumerate(blocks):
        if block.kind is not BlockKind.CODE:
            joined.append(block)
            continue
        lines.append(block.text)
        if place + 1 == len(blocks) or blocks[place + 1].kind is not BlockKind.CODE:
            joined.append(replace(block, text="\n".join(lines)))
            lines = []
    return joined


def _dedent(line: str, indent: int) -> str:
    """Return a line without its first blanks, at most as many as the indent."""
    return line[min(indent, len(line) - len(line.lstrip(" "))) :]


def _close_marks(text: str) -> str:
    """Close the code or the emphasis that the end of a text has opened, so that it looks like that from the start."""
    start = text.rfind("\n\n") + 1
    last = _CODE_SPAN.sub("", text[start:])
    if last.count("`") == 1:
        return text[:-1] if text.endswith("`") else f"{text}`"
    if last.count("**") % 2:
        if text.endswith("**"):
            return text[:-2]
        return f"{text}*" if text.endswith("*") else f"{text.rstrip()}**"
    return text
