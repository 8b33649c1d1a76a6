"""Markdown that arrives in pieces, cut into blocks: a finished block never changes again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

MAX_BLOCK_CHARACTERS = 20_000
"""A longer block is cut, so that drawing it again while it grows stays fast."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])(?:\s|$)")


class BlockKind(Enum):
    """The kind of a block."""

    TEXT = auto()
    """Markdown: a paragraph, a heading, a list, a table or a quote."""
    BLANK = auto()
    """The empty line between two blocks."""
    FENCE = auto()
    """The line before or after code."""
    CODE = auto()
    """One line of code."""


@dataclass(frozen=True, slots=True)
class MarkdownBlock:
    """A part of an answer."""

    kind: BlockKind
    text: str = ""
    language: str = ""
    """The language of code, as the model names it."""


class MarkdownBlocks:
    """Collects pieces of Markdown, and returns each block as soon as it is finished."""

    def __init__(self) -> None:
        self._line = ""
        self._lines: list[str] = []
        """The finished lines of the unfinished block."""
        self._size = 0
        self._fence = ""
        """The fence that closes the code; empty outside of code."""
        self._language = ""
        self._has_blank = False
        """Whether an empty line follows the unfinished block, which is a list and may continue."""
        self._is_after_blank = True

    def add(self, piece: str) -> list[MarkdownBlock]:
        """Add a piece and return the blocks that it finishes."""
        *lines, self._line = (self._line + piece).split("\n")
        done = [block for line in lines for block in self._add_line(line)]
        if len(self._line) > MAX_BLOCK_CHARACTERS:
            line, self._line = self._line, ""
            done += [*self._add_line(line), *self._take()]
        return done

    @property
    def rest(self) -> MarkdownBlock | None:
        """The block that is not finished; None if there is no text in it."""
        if self._fence:
            return MarkdownBlock(BlockKind.CODE, self._line, self._language) if self._line else None
        text = "\n".join([*self._lines, *[""] * self._has_blank, self._line])
        return MarkdownBlock(BlockKind.TEXT, text) if text.strip() else None

    def finish(self) -> list[MarkdownBlock]:
        """Return what is left at the end of the answer."""
        line, self._line = self._line, ""
        done = [*(self._add_line(line) if line.strip() else ()), *self._take()]
        return done[:-1] if done and done[-1].kind is BlockKind.BLANK else done

    def _add_line(self, line: str) -> list[MarkdownBlock]:
        if self._fence:
            return [self._add_code(line)]
        fence = _FENCE.fullmatch(line)
        if fence is not None and not (fence[1][0] == "`" and "`" in fence[2]):
            done = self._take()
            self._fence, self._language = fence[1], fence[2].strip().partition(" ")[0]
            return [*done, self._emit(BlockKind.FENCE, line)]
        if not line.strip():
            return self._end_block()
        done = []
        if self._has_blank:
            if _ITEM.match(line) or line.startswith("  "):
                self._has_blank = False
                self._lines.append("")
            else:
                done = self._take()
        elif self._size + len(line) > MAX_BLOCK_CHARACTERS:
            done = self._take()
        self._lines.append(line)
        self._size += len(line)
        return done

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
            return self._emit(BlockKind.FENCE, line)
        return self._emit(BlockKind.CODE, line, self._language)

    def _take(self) -> list[MarkdownBlock]:
        """Return the collected lines as a block, with the empty line after it."""
        if not self._lines:
            return []
        done = [self._emit(BlockKind.TEXT, "\n".join(self._lines))]
        if self._has_blank:
            done.append(self._emit(BlockKind.BLANK))
        self._lines, self._size, self._has_blank = [], 0, False
        return done

    def _emit(self, kind: BlockKind, text: str = "", language: str = "") -> MarkdownBlock:
        self._is_after_blank = kind is BlockKind.BLANK
        return MarkdownBlock(kind, text, language)
