"""What reaches a chat from outside: Ctrl-C ends a turn, SIGTERM and SIGHUP end the chat."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from hermes.agent.models.model import Cancellation

_LEAVING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))

IN_A_ROW_S = 2.0
"""The longest time between two presses of Ctrl-C that leave the chat."""


class ChatEnded(BaseException):
    """The chat is to end, while it waits for somebody to say something."""


class LineDropped(Exception):
    """The person has dropped what they were typing with Ctrl-C; the history of the prompt has it."""


class CtrlCPresses:
    """Tells whether Ctrl-C was pressed twice in a row: shortly after each other, with no other key between."""

    def __init__(self) -> None:
        self._at = -math.inf
        self._keys = 0

    def is_second(self, now: float, keys: int) -> bool:
        """Note a press at a time and after so many other keys; whether it is the second of two in a row."""
        is_second = now - self._at <= IN_A_ROW_S and keys == self._keys
        self._at, self._keys = (-math.inf if is_second else now), keys
        return is_second


class Signals:
    """Hears signals for as long as a chat lasts."""

    def __init__(self) -> None:
        self.leaving: signal.Signals | None = None
        """The signal that has asked the chat to end."""
        self._leave: Callable[[], None] | None = None
        """What makes the chat notice, where it would not by itself."""
        self._cancellation = Cancellation()

    @contextmanager
    def handle(self) -> Iterator[None]:
        """Let SIGTERM and SIGHUP end the chat in order; one that comes a second time ends the process."""
        before = {number: signal.signal(number, self._note) for number in _LEAVING}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def cancellable(self) -> Iterator[Cancellation]:
        """A stop that Ctrl-C wishes; pressed again, it interrupts whatever does not heed that."""
        self._cancellation = cancellation = Cancellation()

        def interrupt(_number: int, _frame: FrameType | None) -> None:
            if cancellation.is_cancelled:
                raise KeyboardInterrupt
            cancellation.cancel()

        before = signal.signal(signal.SIGINT, interrupt)
        try:
            with self.on_leave(cancellation.cancel):
                yield cancellation
        finally:
            signal.signal(signal.SIGINT, before)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let Ctrl-C interrupt the reading of an answer, also within a turn."""
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with self.on_leave(_interrupt):
                yield
        finally:
            signal.signal(signal.SIGINT, before)

    def stop_turn(self) -> None:
        """End the turn that runs."""
        self._cancellation.cancel()

    @contextmanager
    def on_leave(self, leave: Callable[[], None]) -> Iterator[None]:
        """Have something done for as long as the block lasts when the chat is to end."""
        before, self._leave = self._leave, leave
        try:
            if self.leaving is not None:
                leave()
            yield
        finally:
            self._leave = before

    def _note(self, number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        self.leaving = signal.Signals(number)
        if self._leave is not None:
            self._leave()


def raise_chat_ended() -> None:
    """Break off a read that nothing else ends."""
    raise ChatEnded


def _interrupt() -> None:
    raise KeyboardInterrupt
