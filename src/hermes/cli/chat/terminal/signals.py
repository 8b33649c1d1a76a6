"""Signal handling of the chat: Ctrl-C ends a turn, SIGTERM and SIGHUP end the chat."""

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
    """A signal ended the chat while it was waiting for input."""


class LineDropped(Exception):
    """The user dropped the current line with Ctrl-C; the prompt history has it."""


class CtrlCPresses:
    """Detects two presses of Ctrl-C in a row: within `IN_A_ROW_S`, with no other key between them."""

    def __init__(self) -> None:
        self._at = -math.inf
        self._keys = 0

    def is_second(self, now: float, keys: int) -> bool:
        """Record a press and return whether it is the second in a row; `keys` counts all other keys so far."""
        is_second = now - self._at <= IN_A_ROW_S and keys == self._keys
        self._at, self._keys = (-math.inf if is_second else now), keys
        return is_second


class Signals:
    """Handles signals while a chat runs."""

    def __init__(self) -> None:
        self.leaving: signal.Signals | None = None
        """The signal that asked the chat to end, if any."""
        self._leave: Callable[[], None] | None = None
        """Interrupts the current wait when such a signal arrives."""
        self._cancellation = Cancellation()

    @contextmanager
    def handle(self) -> Iterator[None]:
        """Let SIGTERM and SIGHUP end the chat cleanly; the same signal again ends the process."""
        before = {number: signal.signal(number, self._note) for number in _LEAVING}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def cancellable(self) -> Iterator[Cancellation]:
        """Yield a cancellation that Ctrl-C triggers; a second Ctrl-C raises KeyboardInterrupt."""
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
        """Let Ctrl-C raise KeyboardInterrupt in the block, also during a turn."""
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with self.on_leave(_interrupt):
                yield
        finally:
            signal.signal(signal.SIGINT, before)

    def stop_turn(self) -> None:
        """Cancel the running turn."""
        self._cancellation.cancel()

    @contextmanager
    def on_leave(self, leave: Callable[[], None]) -> Iterator[None]:
        """Call `leave` if a signal asks the chat to end during the block."""
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
    """Raise `ChatEnded`, to interrupt a blocking read."""
    raise ChatEnded


def _interrupt() -> None:
    raise KeyboardInterrupt
