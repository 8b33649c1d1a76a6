"""A pseudo-terminal for code of this process, and the screen that the user would see."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import sys
import termios
from threading import Thread
from types import TracebackType
from typing import Self

import pyte

from tests.support.waiting import wait_until

SCROLLBACK = 5_000
SETTLED = "\x1b[?9999l"
"""A code that changes nothing."""


class Pane:
    """Makes stdout and stderr a terminal during the block."""

    def __init__(self, columns: int, lines: int = 24) -> None:
        self.screen = pyte.HistoryScreen(columns, lines, history=SCROLLBACK, ratio=1)
        self.raw = b""
        """All bytes that were written."""
        self._size = (columns, lines)

    def __enter__(self) -> Self:
        ours, theirs = pty.openpty()
        self._ours = ours
        self._stream = pyte.ByteStream(self.screen)
        self._before = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = self._file = os.fdopen(theirs, "w", encoding="utf-8")
        self.resize(*self._size)
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.stdout, sys.stderr = self._before
        self._file.close()
        self._reader.join()
        os.close(self._ours)

    def resize(self, columns: int, lines: int) -> None:
        """Change the size of the window; what is on the screen is cut or stays, as in a terminal without reflow."""
        fcntl.ioctl(self._file.fileno(), termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)

    def settle(self) -> None:
        """Wait until everything that was written is on the screen."""
        before = self.raw.count(SETTLED.encode())
        self._file.write(SETTLED)
        self._file.flush()
        wait_until(lambda: self.raw.count(SETTLED.encode()) > before, "the end of the output")

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._ours, 65_536)
            except OSError:  # the other end is closed
                return
            self._stream.feed(data)
            self.raw += data

    @property
    def lines(self) -> list[str]:
        """The screen and the lines that have left it, without blanks at their ends."""
        columns = range(self.screen.columns)
        scrolled = ["".join(line[column].data for column in columns) for line in self.screen.history.top]
        lines = [line.rstrip() for line in [*scrolled, *self.screen.display]]
        while lines and not lines[-1]:
            lines.pop()
        return lines


def lines_of(text: str, columns: int, lines: int = 24) -> list[str]:
    """Return what a terminal shows of a text that is written at once."""
    pane = Pane(columns, lines)
    pyte.Stream(pane.screen).feed(text.replace("\n", "\r\n"))
    return pane.lines
