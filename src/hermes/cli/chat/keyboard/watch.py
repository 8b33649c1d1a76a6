"""The keyboard while no prompt is shown: Esc stops an answer, other keys wait for the next prompt."""

from __future__ import annotations

import contextlib
import os
import re
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from hermes.cli.chat.keyboard.modes import (
    LOCAL_FLAGS,
    discard_input,
    echo_off,
    echo_on,
    is_in_foreground,
    read_keys_alone,
)
from hermes.cli.chat.terminal.output import write_notice
from hermes.cli.chat.terminal.style import can_move

try:
    import termios
except ImportError:  # Windows terminals echo line by line anyway
    termios = None  # type: ignore[assignment]

PASTE_BEGIN, PASTE_END = b"\x1b[200~", b"\x1b[201~"
_PASTE_OR_ENTER = re.compile(rb"(\x1b\[200~.*?(?:\x1b\[201~|$))|[\r\n]", re.DOTALL)
_MARK_PASTES, _DO_NOT_MARK_PASTES = "\x1b[?2004h", "\x1b[?2004l"
_ESCAPE = b"\x1b"
_REST_S = 0.1
"""How long the rest of the bytes of one key may take to follow its Esc."""
_CHECK_S = 1.0
"""How often the terminal is checked: a shell changes it after Ctrl-Z and `fg`."""
MAX_TYPED_BYTES = 8 * 1024 * 1024


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
            _take_keyboard()
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
        if can_move(sys.stderr):
            write_notice(_DO_NOT_MARK_PASTES)

    def _run(self) -> None:
        keyboard = sys.stdin.fileno()
        while (found := self._read(keyboard, _CHECK_S)) is not None:
            if not found:
                with contextlib.suppress(termios.error):
                    if is_in_foreground(keyboard) and termios.tcgetattr(keyboard)[LOCAL_FLAGS] & termios.ICANON:
                        _take_keyboard()
                continue
            while found.endswith(_ESCAPE) and (rest := self._read(keyboard, _REST_S)):
                found += rest
            is_escape = found.endswith(_ESCAPE)
            kept = found.rstrip(_ESCAPE) if is_escape else found
            self._keep(kept)
            if is_escape:
                self._on_escape()

    def _keep(self, keys: bytes) -> None:
        """Keep keys for the next prompt, up to a limit; a paste that is cut off there still has an end."""
        room = max(0, MAX_TYPED_BYTES - len(self.typed))
        self.typed += keys[:room]
        if 0 < room < len(keys) and is_in_paste(self.typed):
            self.typed += PASTE_END

    def _read(self, keyboard: int, seconds: float) -> bytes | None:
        """Return the next bytes, empty if there are none in time, None at the end."""
        ready, _, _ = select.select([keyboard, self._stop[0]], [], [], seconds)
        if self._stop[0] in ready:
            return None
        if not ready:
            return b""
        if not is_in_foreground(keyboard):
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
def fresh_input() -> Iterator[None]:
    """Show input typed during the block, and discard what arrives at the last moment, which answers nothing."""
    with _fresh(is_shown=True):
        yield


@contextmanager
def hidden_input() -> Iterator[None]:
    """Hide input typed during the block, and discard what arrives at the last moment, which answers nothing."""
    with _fresh(is_shown=False):
        yield


@contextmanager
def _fresh(*, is_shown: bool) -> Iterator[None]:
    """Discard earlier input, and let the caller read the keyboard during the block."""
    watch = _watch
    if watch is not None:
        watch.stop()
        watch.typed = without_enter(watch.typed)
    try:
        with echo_on() if is_shown else echo_off():
            discard_input()
            yield
    finally:
        if watch is not None:
            watch.start()


def without_enter(typed: bytearray) -> bytearray:
    """Return typed text with blanks for Enter, so that nothing is sent that may have been meant as an answer."""
    return bytearray(_PASTE_OR_ENTER.sub(lambda found: found[1] or b" ", typed))


def is_in_paste(typed: bytes | bytearray) -> bool:
    """Whether text ends in the middle of a paste."""
    return typed.rfind(PASTE_BEGIN) > typed.rfind(PASTE_END)


def _take_keyboard() -> None:
    """Let each key be read at once, and let the terminal mark pasted text, so that it stays one message."""
    read_keys_alone()
    if can_move(sys.stderr):
        write_notice(_MARK_PASTES)
