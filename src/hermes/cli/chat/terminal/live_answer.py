"""An answer on the terminal while it arrives: finished blocks stay, and only the last block is drawn again."""

from __future__ import annotations

import os
import sys
import time

from hermes.cli.chat.terminal.output import write_answer
from hermes.cli.chat.terminal.style import GREEN, colour_text, has_style
from hermes.cli.display.markdown_blocks import MarkdownBlock, MarkdownBlocks
from hermes.cli.display.terminal import terminal_width
from hermes.cli.display.wrapping import strip_codes, taken_rows

REDRAW_S = 0.05
"""The shortest time between two drawings of the unfinished block."""
DRAWING_SHARE = 0.1
"""The part of the time that drawing may take."""
_LINES = 24


class LiveAnswer:
    """Draws one answer."""

    def __init__(self, mark: str) -> None:
        from hermes.cli.display.rendered_markdown import MarkdownRenderer

        self._blocks = MarkdownBlocks()
        self._renderer = MarkdownRenderer(has_colour=has_style(sys.stdout))
        self._mark = mark
        self._drawn: list[str] = []
        """The rows of the unfinished block that are on the screen; the cursor is at the end of the last one."""
        self._next_at = 0.0

    def add(self, piece: str) -> None:
        """Draw what a piece changes; control characters must have been escaped."""
        finished: list[str] = []
        for block in self._blocks.add(piece):
            finished += self._render(block)
        now = time.monotonic()
        if not finished and now < self._next_at:
            return
        rest = self._blocks.rest
        rows = [] if rest is None else self._renderer.render(rest, self._columns, self._mark, is_finished=False)
        self._draw(finished, rows)
        after = time.monotonic()
        self._next_at = after + max(REDRAW_S, (after - now) / DRAWING_SHARE)

    def finish(self) -> None:
        """Draw the rest of the answer; the next text begins on a new line."""
        finished: list[str] = []
        for block in self._blocks.finish():
            finished += self._render(block)
        self._draw(finished, [])

    def _render(self, block: MarkdownBlock) -> list[str]:
        rows = self._renderer.render(block, self._columns, self._mark)
        if rows:
            self._mark = ""
        return rows

    def _draw(self, finished: list[str], rows: list[str]) -> None:
        """Write finished rows, and the unfinished ones below them, in one piece."""
        columns, height = _terminal_size()
        # A block that is higher than the screen cannot be drawn again: only its end is shown until it is finished.
        rows = _last_rows(rows, columns, max(1, height - 2))
        kept = 0
        if not finished:
            while kept < min(len(rows), len(self._drawn)) and rows[kept] == self._drawn[kept]:
                kept += 1
            kept = min(kept, max(0, len(self._drawn) - 1))
        if not finished and rows == self._drawn:
            return
        up = sum(taken_rows(strip_codes(each), columns) for each in self._drawn[kept:]) - 1
        text = ("\r" + (f"\x1b[{up}A" if up > 0 else "") + "\x1b[J") if self._drawn else ""
        text += "".join(f"{_coloured(row)}\n" for row in finished)
        text += "\n".join(map(_coloured, rows[kept:]))
        self._drawn = rows
        write_answer(text)

    @property
    def _columns(self) -> int:
        return terminal_width() - 1


def _coloured(row: str) -> str:
    """Colour the mark of an answer."""
    return colour_text("◆", GREEN, sys.stdout) + row[1:] if row.startswith("◆") else row


def _last_rows(rows: list[str], columns: int, height: int) -> list[str]:
    left = height
    for place in range(len(rows) - 1, -1, -1):
        left -= taken_rows(strip_codes(rows[place]), columns)
        if left < 0:
            return rows[place + 1 :] or rows[-1:]
    return rows


def _terminal_size() -> tuple[int, int]:
    try:
        lines = os.get_terminal_size(sys.stdout.fileno()).lines or _LINES
    except OSError:
        lines = _LINES
    return terminal_width(), lines
