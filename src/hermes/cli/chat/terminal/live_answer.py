"""An answer on the terminal while it arrives: finished blocks stay, and only the last block is drawn again."""

from __future__ import annotations

import sys
import time
from threading import Event, RLock, Thread

from hermes.cli.chat.terminal.live_rows import LiveRows
from hermes.cli.chat.terminal.output import write_answer
from hermes.cli.chat.terminal.spinner import EVERY_S, FRAMES
from hermes.cli.chat.terminal.style import GREEN, colour_text, dim, has_style
from hermes.cli.display.markdown.blocks import MarkdownBlock, MarkdownBlocks
from hermes.cli.display.terminal import terminal_width
from hermes.errors import HermesError

REDRAW_S = 0.05
"""The shortest time between two drawings of the unfinished block."""
DRAWING_SHARE = 0.1
"""The part of the time that drawing may take."""
STALL_S = 1.5
"""If nothing arrives for so long, the seconds are counted below the text: the model may be writing a long tool call."""


class LiveAnswer:
    """Draws one answer."""

    def __init__(self, mark: str) -> None:
        from hermes.cli.display.markdown.renderer import MarkdownRenderer

        self._blocks = MarkdownBlocks()
        self._renderer = MarkdownRenderer(has_colour=has_style(sys.stdout))
        self._mark = mark
        self._rows = LiveRows()
        self._unfinished: list[str] = []
        """The rows of the unfinished block, as they were drawn last."""
        self._next_at = self._piece_at = 0.0
        self._is_behind = False
        """Whether the last piece came too soon after the last drawing, and is not drawn yet."""
        self._lock = RLock()
        """Held while something is drawn."""
        self._ended = Event()
        self._ticker: Thread | None = None

    def add(self, piece: str) -> None:
        """Draw what a piece changes; control characters must have been escaped."""
        with self._lock:
            finished = [row for block in self._blocks.add(piece) for row in self._render(block)]
            self._piece_at = time.monotonic()
            if finished or self._piece_at >= self._next_at:
                self._draw(finished)
            else:
                self._is_behind = True
            if self._ticker is None:
                self._ticker = Thread(target=self._tick, name="hermes-answer", daemon=True)
                self._ticker.start()

    def finish(self) -> None:
        """Draw the rest of the answer; the next text begins on a new line."""
        with self._lock:
            self._ended.set()
            finished = [row for block in self._blocks.finish() for row in self._render(block)]
            write_answer(self._rows.draw(finished, []))

    def _tick(self) -> None:
        """Draw what came too soon, if nothing follows it, and count the seconds in which nothing comes."""
        turn = 0
        while not self._ended.wait(EVERY_S):
            with self._lock:
                now = time.monotonic()
                try:
                    if self._ended.is_set():
                        return
                    if self._is_behind and now >= self._next_at:
                        self._draw([])
                    elif now - self._piece_at >= STALL_S:
                        turn += 1
                        waiting = dim(f"{FRAMES[turn % len(FRAMES)]} {now - self._piece_at:.0f} s")
                        write_answer(self._rows.draw([], [*self._unfinished, waiting]))
                except (HermesError, OSError):  # the next piece, or the end, raises it where it is handled
                    return

    def _draw(self, finished: list[str]) -> None:
        """Write finished rows, and those of the unfinished block below them."""
        began = time.monotonic()
        rest = self._blocks.rest
        rows = [] if rest is None else self._renderer.render(rest, self._columns, self._mark, is_finished=False)
        self._unfinished, self._is_behind = self._with_mark(rows), False
        write_answer(self._rows.draw(finished, self._unfinished))
        ended = time.monotonic()
        self._next_at = ended + max(REDRAW_S, (ended - began) / DRAWING_SHARE)

    def _render(self, block: MarkdownBlock) -> list[str]:
        rows = self._renderer.render(block, self._columns, self._mark)
        if rows and self._mark:
            rows[0], self._mark = _coloured(rows[0]), ""
        return rows

    def _with_mark(self, rows: list[str]) -> list[str]:
        return [_coloured(rows[0]), *rows[1:]] if rows and self._mark else rows

    @property
    def _columns(self) -> int:
        return terminal_width() - 1


def _coloured(row: str) -> str:
    """Colour the mark of an answer."""
    return colour_text("◆", GREEN, sys.stdout) + row[1:] if row.startswith("◆") else row
