"""Rows at the end of the screen that can be drawn again."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from hermes.cli.display.terminal import terminal_width
from hermes.cli.display.wrapping import strip_codes, taken_rows

_HOLD, _SHOW = "\x1b[?2026h", "\x1b[?2026l"
"""The terminal shows what is written between them at once; one that does not know them ignores them."""
_LINES = 24
_WITHOUT_REFLOW = ("linux", "vt", "rxvt", "screen")
"""Terminals that cut a row, instead of breaking it, when the window becomes narrower."""

_times_left = 0
"""How often the rows on the screen have been left to a shell."""


def leave_rows() -> None:
    """Leave the rows that are on the screen now: after Ctrl-Z and `fg`, those below them are of a shell."""
    global _times_left
    _times_left += 1


class LiveRows:
    """Remembers which rows are on the screen; the cursor is at the end of the last one."""

    def __init__(self) -> None:
        self._rows: list[str] = []
        self._columns = 0
        self._times_left = _times_left

    def draw(self, above: Sequence[str], rows: Sequence[str]) -> str:
        """Return what to write so that `above` follows earlier text for good, and `rows` follow it for now.

        Rows that are the same as before are not written again.
        """
        columns = terminal_width()
        if self._times_left != _times_left:
            self._rows, self._times_left = [], _times_left
        fitting = _last_rows(rows, columns, max(1, screen_lines() - 2))
        before, width = self._rows, self._columns
        self._rows, self._columns = fitting, columns
        after, end = [*above, *fitting], "\n" if above and not fitting else ""
        kept = 0
        if before and columns == width:
            if len(after) >= len(before) and _continues(before, after):
                return "\n".join([after[len(before) - 1][len(before[-1]) :], *after[len(before) :]]) + end
            kept = max(0, min(_count_same(before, after), len(before) - 1, len(after) - 1))
        back = _way_back(before[kept:], columns if _reflows() else width)
        text = "\n".join(after[kept:]) + end
        return f"{_HOLD}{back}{text}{_SHOW}" if back else text


def screen_lines() -> int:
    """Return the height of the terminal."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).lines or _LINES
    except OSError:
        return _LINES


def _continues(before: Sequence[str], rows: Sequence[str]) -> bool:
    """Whether rows only add something to the end of those before."""
    return list(rows[: len(before) - 1]) == list(before[:-1]) and rows[len(before) - 1].startswith(before[-1])


def _count_same(before: Sequence[str], rows: Sequence[str]) -> int:
    pairs = zip(before, rows, strict=False)
    return next((place for place, (old, new) in enumerate(pairs) if old != new), min(len(before), len(rows)))


def _way_back(rows: Sequence[str], columns: int) -> str:
    """Return the codes that delete rows; the cursor is at the end of the last one."""
    if not rows:
        return ""
    up = sum(taken_rows(strip_codes(each), columns) for each in rows) - 1
    return "\r" + (f"\x1b[{up}A" if up > 0 else "") + "\x1b[J"


def _last_rows(rows: Sequence[str], columns: int, height: int) -> list[str]:
    """Return the last rows that fit on the screen: what has left it cannot be drawn again."""
    left = height
    for place in range(len(rows) - 1, -1, -1):
        left -= taken_rows(strip_codes(rows[place]), columns)
        if left < 0:
            return list(rows[place + 1 :] or rows[-1:])
    return list(rows)


def _reflows() -> bool:
    """Whether the terminal breaks its rows again when the window becomes narrower, as most do."""
    if os.environ.get("TMUX"):
        return True
    return "XTERM_VERSION" not in os.environ and not os.environ.get("TERM", "").startswith(_WITHOUT_REFLOW)
