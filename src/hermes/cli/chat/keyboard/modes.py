"""Modes of the terminal that last for a block, and that are set again after Ctrl-Z and `fg`."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

try:
    import termios
except ImportError:  # Windows terminals echo line by line anyway
    termios = None  # type: ignore[assignment]

LOCAL_FLAGS = 3
_CONTROL_CHARACTERS = 6


@contextmanager
def echo_off() -> Iterator[None]:
    """Hide lines typed during the block, and keep them even if Ctrl-C is pressed."""
    with _mode(_hide):
        yield


@contextmanager
def echo_on() -> Iterator[None]:
    """Show lines typed during the block, for a program that reads them."""
    with _mode(_show):
        yield


@contextmanager
def keys_alone() -> Iterator[None]:
    """Let each key be read during the block without an Enter after it, and do not show it."""
    with _mode(_take_keys):
        yield


@contextmanager
def on_resume(again: Callable[[], None]) -> Iterator[None]:
    """Call `again` during the block each time that the program continues after Ctrl-Z; so do the blocks around it."""
    if termios is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGCONT)

    def resume(number: int, frame: Any) -> None:
        if callable(before):
            before(number, frame)
        if is_in_foreground(sys.stdin.fileno()):
            again()

    signal.signal(signal.SIGCONT, resume)
    try:
        yield
    finally:
        signal.signal(signal.SIGCONT, before)


def read_keys_alone() -> None:
    """Let each key be read at once, without an Enter after it, and do not show it; Ctrl-C still sends its signal."""
    _change(_take_keys)


def discard_input() -> None:
    """Discard what was typed and not yet read."""
    if termios is not None and sys.stdin.isatty():
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def is_in_foreground(keyboard: int) -> bool:
    """Whether this process is in the foreground: using the terminal in the background would stop it."""
    try:
        return os.tcgetpgrp(keyboard) == os.getpgrp()
    except OSError:
        return False


@contextmanager
def _mode(change: Callable[[list[Any]], None]) -> Iterator[None]:
    """Change the attributes of the terminal during the block.

    After Ctrl-Z a shell sets its own mode, and some shells leave that to the program which continues.
    """
    if termios is None or not sys.stdin.isatty():
        yield
        return

    def apply_again() -> None:
        with contextlib.suppress(termios.error):  # the terminal is gone
            _change(change)

    before = termios.tcgetattr(sys.stdin.fileno())
    _change(change)
    try:
        with on_resume(apply_again):
            yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)


def _change(change: Callable[[list[Any]], None]) -> None:
    attributes = termios.tcgetattr(sys.stdin.fileno())
    change(attributes)
    termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, attributes)


def _show(attributes: list[Any]) -> None:
    attributes[LOCAL_FLAGS] = (attributes[LOCAL_FLAGS] | termios.ECHO | termios.ICANON) & ~termios.NOFLSH


def _hide(attributes: list[Any]) -> None:
    # Without NOFLSH, the terminal discards unread input on Ctrl-C.
    attributes[LOCAL_FLAGS] = (attributes[LOCAL_FLAGS] & ~termios.ECHO) | termios.ICANON | termios.NOFLSH


def _take_keys(attributes: list[Any]) -> None:
    _hide(attributes)
    attributes[LOCAL_FLAGS] &= ~termios.ICANON
    attributes[_CONTROL_CHARACTERS] = list(attributes[_CONTROL_CHARACTERS])
    attributes[_CONTROL_CHARACTERS][termios.VMIN], attributes[_CONTROL_CHARACTERS][termios.VTIME] = 1, 0
