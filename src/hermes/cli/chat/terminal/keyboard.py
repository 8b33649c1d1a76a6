"""The keyboard while no prompt is shown: Esc stops an answer, other keys wait for the next prompt."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

try:
    import termios
except ImportError:  # Windows terminals echo line by line anyway
    termios = None  # type: ignore[assignment]

_LOCAL_FLAGS, _CONTROL_CHARACTERS = 3, 6
_ESCAPE = b"\x1b"
_REST_S = 0.1
"""How long the rest of the bytes of one key may take to follow its Esc."""
_CHECK_S = 1.0
"""How often the terminal is checked: a shell changes it after Ctrl-Z and `fg`."""
MAX_TYPED_BYTES = 64 * 1024


class KeyWatch:
    """Reads the keyboard on a thread: Esc alone calls a function, other keys are kept."""

    def __init__(self, on_escape: Callable[[], None]) -> None:
        self.typed = bytearray()
        self._on_escape = on_escape
        self._before: list[Any] | None = None
        self._thread: Thread | None = None
        self._stop = (-1, -1)

    def start(self) -> None:
        """Begin to read; typed text is not shown."""
        try:
            self._before = termios.tcgetattr(sys.stdin.fileno())
            _read_keys_alone()
        except termios.error:  # the terminal is gone
            return
        self._stop = os.pipe()
        self._thread = Thread(target=self._run, name="hermes-keys", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop reading and restore the terminal."""
        if self._thread is None or self._before is None:
            return
        os.close(self._stop[1])
        self._thread.join()
        self._thread = None
        os.close(self._stop[0])
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)

    def _run(self) -> None:
        keyboard = sys.stdin.fileno()
        while (found := self._read(keyboard, _CHECK_S)) is not None:
            if not found:
                with contextlib.suppress(termios.error):
                    if _is_ours(keyboard) and termios.tcgetattr(keyboard)[_LOCAL_FLAGS] & termios.ICANON:
                        _read_keys_alone()
                continue
            while found.endswith(_ESCAPE) and (rest := self._read(keyboard, _REST_S)):
                found += rest
            is_escape = found.endswith(_ESCAPE)
            kept = found.rstrip(_ESCAPE) if is_escape else found
            self.typed += kept[: max(0, MAX_TYPED_BYTES - len(self.typed))]
            if is_escape:
                self._on_escape()

    def _read(self, keyboard: int, seconds: float) -> bytes | None:
        """Return the next bytes, empty if there are none in time, None at the end."""
        ready, _, _ = select.select([keyboard, self._stop[0]], [], [], seconds)
        if self._stop[0] in ready:
            return None
        if not ready:
            return b""
        if not _is_ours(keyboard):
            return None if select.select([self._stop[0]], [], [], _CHECK_S)[0] else b""
        try:
            return os.read(keyboard, 4096) or None
        except OSError:  # the terminal is gone
            return None


_watch: KeyWatch | None = None
"""The watch of this process, which has one keyboard."""
_typed = bytearray()
"""What was typed while no prompt was shown."""


@contextmanager
def watch_keys(on_escape: Callable[[], None]) -> Iterator[None]:
    """Call `on_escape` if the user presses Esc during the block; other keys go to the next prompt."""
    global _watch
    if termios is None or not sys.stdin.isatty():
        yield
        return
    _watch = watch = KeyWatch(on_escape)
    watch.start()
    try:
        yield
    finally:
        _watch = None
        watch.stop()
        _typed.extend(watch.typed)


def take_typed() -> bytes:
    """Return what was typed while no prompt was shown, and forget it."""
    typed = bytes(_typed)
    _typed.clear()
    return typed


@contextmanager
def echo_off() -> Iterator[None]:
    """Hide input typed during the block, and keep it even if Ctrl-C is pressed."""
    with _echo(is_on=False):
        yield


@contextmanager
def echo_on() -> Iterator[None]:
    """Show input typed during the block, for a program that reads it."""
    with _echo(is_on=True):
        yield


@contextmanager
def fresh_input() -> Iterator[None]:
    """Show input typed during the block, and discard earlier input, which does not answer this question."""
    with _fresh(is_shown=True):
        yield


@contextmanager
def hidden_input() -> Iterator[None]:
    """Hide input typed during the block, and discard earlier input, which does not answer this question."""
    with _fresh(is_shown=False):
        yield


@contextmanager
def _fresh(*, is_shown: bool) -> Iterator[None]:
    """Discard earlier input, and let the caller read the keyboard during the block."""
    watch = _watch
    if watch is not None:
        watch.stop()
        watch.typed.clear()
    try:
        with _echo(is_on=is_shown):
            if termios is not None and sys.stdin.isatty():
                termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
            yield
    finally:
        if watch is not None:
            watch.start()


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


def _read_keys_alone() -> None:
    """Let each key be read at once, without an Enter after it, and do not show it; Ctrl-C still sends its signal."""
    attributes = termios.tcgetattr(sys.stdin.fileno())
    attributes[_LOCAL_FLAGS] = (attributes[_LOCAL_FLAGS] & ~(termios.ECHO | termios.ICANON)) | termios.NOFLSH
    attributes[_CONTROL_CHARACTERS] = list(attributes[_CONTROL_CHARACTERS])
    attributes[_CONTROL_CHARACTERS][termios.VMIN], attributes[_CONTROL_CHARACTERS][termios.VTIME] = 1, 0
    termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, attributes)


def _is_ours(keyboard: int) -> bool:
    """Whether this process is in the foreground: reading in the background would stop it."""
    try:
        return os.tcgetpgrp(keyboard) == os.getpgrp()
    except OSError:
        return False
