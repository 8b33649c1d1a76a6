"""A pseudo-terminal that runs `hermes`, and the screen that the user would see."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pexpect  # type: ignore[import-untyped]
import pyte

from tests.cli.conftest import COMMAND, Hermes

LIMIT_S = 20.0
SCROLLBACK = 1_000

CTRL_C, CTRL_D, ENTER, ALT_ENTER, TAB = "\x03", "\x04", "\r", "\x1b\r", "\t"
UP, BACKSPACE = "\x1b[A", "\x7f"
PROMPT = "> "
_STATUS = re.compile(r"  \S+ · ")


class Terminal:
    """Runs `hermes` in a pseudo-terminal until the end of the block."""

    def __init__(
        self,
        hermes: Hermes,
        *args: str,
        columns: int = 80,
        lines: int = 24,
        cwd: Path | None = None,
        **variables: str,
    ) -> None:
        self._screen = pyte.HistoryScreen(columns, lines, history=SCROLLBACK, ratio=1)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        """All bytes that were written."""
        self._is_over = False
        environment = hermes.environment(**variables)
        self.process = pexpect.spawn(
            COMMAND[0], [*COMMAND[1:], *args], env=environment, dimensions=(lines, columns), cwd=cwd, timeout=LIMIT_S
        )
        self.process.delaybeforesend = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.close(force=True)

    @property
    def lines(self) -> list[str]:
        """The screen and the lines scrolled off its top, without trailing spaces and without the status line."""
        lines = self.all_lines
        return lines[:-1] if lines and _STATUS.match(lines[-1]) else lines

    @property
    def status(self) -> str:
        """The status line below the prompt; empty if there is none."""
        return self.all_lines[-1].strip() if self.all_lines and _STATUS.match(self.all_lines[-1]) else ""

    @property
    def all_lines(self) -> list[str]:
        """The screen and the lines scrolled off its top, without trailing spaces."""
        columns = range(self._screen.columns)
        scrolled = ["".join(line[column].data for column in columns) for line in self._screen.history.top]
        lines = [line.rstrip() for line in [*scrolled, *self._screen.display]]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    @property
    def screen(self) -> str:
        """The visible screen."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def is_at_prompt(self) -> bool:
        """Whether the last line is an empty prompt."""
        return bool(self.lines) and self.lines[-1] == PROMPT.strip()

    def colour_of(self, mark: str) -> str:
        """Return the colour of the first such character on the screen."""
        for row in range(self._screen.lines):
            for column in range(self._screen.columns):
                if self._screen.buffer[row][column].data == mark:
                    return self._screen.buffer[row][column].fg
        raise AssertionError(f"there is no {mark} on the screen:\n{self.text}")

    def type(self, text: str) -> Self:
        """Press keys."""
        self.process.send(text)
        return self

    def enter(self, text: str) -> Self:
        """Type a line at the prompt and press Enter; it is on the screen when this returns."""
        self.until_prompt()
        shown = f"{PROMPT}{text}"[: self._screen.columns // 2]
        before = self.text.count(shown)
        self.type(f"{text}{ENTER}")
        self._wait(lambda: self.text.count(shown) > before, f"{shown!r} on the screen")
        return self

    def until(self, text: str) -> Self:
        """Wait until something is on the screen."""
        self._wait(lambda: text in self.text, repr(text))
        return self

    def until_written(self, data: bytes) -> Self:
        """Wait until the program has written some bytes."""
        self._wait(lambda: data in self.raw, repr(data))
        return self

    def until_gone(self, text: str) -> Self:
        """Wait until something is not on the screen any more."""
        self._wait(lambda: text not in self.text, f"no {text!r}")
        return self

    def until_times(self, text: str, count: int) -> Self:
        """Wait until something is on the screen a number of times."""
        self._wait(lambda: self.text.count(text) >= count, f"{text!r} {count} times")
        return self

    def until_any(self, *texts: str) -> Self:
        """Wait until one of several texts is on the screen."""
        self._wait(lambda: any(text in self.text for text in texts), " or ".join(map(repr, texts)))
        return self

    def until_page(self, number: int) -> Self:
        """Wait until so many pages of a question were shown, or the question itself."""
        self._wait(
            lambda: self.text.count("rows; Enter") >= number or "Allow it?" in self.text, f"page {number} of a question"
        )
        return self

    def rest(self, seconds: float = 0.6) -> Self:
        """Press no key for a moment, after which the next key stands alone."""
        deadline = time.monotonic() + seconds
        self._wait(lambda: time.monotonic() >= deadline, "the end of a pause")
        return self

    def resize(self, columns: int, lines: int) -> Self:
        """Change the size of the window."""
        self._screen.resize(lines, columns)
        self.process.setwinsize(lines, columns)
        return self

    def until_prompt(self) -> Self:
        """Wait for an empty prompt."""
        self._wait(lambda: self.is_at_prompt, "an empty prompt")
        return self

    def until_over(self) -> int:
        """Wait for the end and return the exit code."""
        self._wait(lambda: self._is_over, "the end")
        self.process.close()
        return self.process.exitstatus if self.process.exitstatus is not None else -(self.process.signalstatus or 0)

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        os.kill(self.process.pid, number)

    def _wait(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not is_so():
            assert time.monotonic() < deadline, f"waited {LIMIT_S:g} s in vain for {what}:\n{self.text}"
            assert not self._is_over, f"it ended before {what} came:\n{self.text}"
            try:
                data = self.process.read_nonblocking(65536, timeout=0.1)
            except pexpect.TIMEOUT:
                continue
            except pexpect.EOF:
                self._is_over = True
                continue
            self.raw += data
            self._stream.feed(data)


def without_ids(lines: Sequence[str]) -> list[str]:
    """Replace every session id in the lines, because it differs in each run."""
    return [re.sub(r"\d{8}_\d{6}_[0-9a-f]{8}", "<id>", line) for line in lines]
