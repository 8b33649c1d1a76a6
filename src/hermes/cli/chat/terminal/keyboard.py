"""Keyboard echo: input typed during an answer stays invisible and goes to the next prompt."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager

try:
    import termios
except ImportError:  # Windows terminals echo line by line anyway
    termios = None  # type: ignore[assignment]

_LOCAL_FLAGS = 3


@contextmanager
def echo_off() -> Iterator[None]:
    """Hide input typed during the block, and keep it even if Ctrl-C is pressed."""
    with _echo(is_on=False):
        yield


@contextmanager
def fresh_input() -> Iterator[None]:
    """Show input typed during the block, and discard earlier input, which does not answer this question."""
    with _echo(is_on=True):
        if termios is not None and sys.stdin.isatty():
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        yield


@contextmanager
def hidden_input() -> Iterator[None]:
    """Hide input typed during the block, and discard earlier input, which does not answer this question."""
    with _echo(is_on=False):
        if termios is not None and sys.stdin.isatty():
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        yield


@contextmanager
def _echo(*, is_on: bool) -> Iterator[None]:
    if termios is None or not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin.fileno())
    _set_echo(is_on=is_on)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)


def _set_echo(*, is_on: bool) -> None:
    attributes = termios.tcgetattr(sys.stdin.fileno())
    if is_on:
        attributes[_LOCAL_FLAGS] = (attributes[_LOCAL_FLAGS] | termios.ECHO) & ~termios.NOFLSH
    else:  # without NOFLSH, the terminal discards unread input on Ctrl-C
        attributes[_LOCAL_FLAGS] = (attributes[_LOCAL_FLAGS] & ~termios.ECHO) | termios.NOFLSH
    termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, attributes)
