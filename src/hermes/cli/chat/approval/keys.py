"""Single keys as answers; text that was meant for the prompt is none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from hermes.cli.chat.keyboard.modes import keys_alone
from hermes.cli.chat.keyboard.stdin_lines import read_chunk, read_chunk_before
from hermes.cli.chat.keyboard.watch import hidden_input

QUIET_S = 0.4
"""A question waits until no key was pressed for this long: the user may still be typing something else."""
ALONE_S = 0.15
"""A key that is followed by another one within this time is part of a text."""
END, ENTER, ESCAPE = "", "\n", "\x1b"

_CTRL_D = "\x04"


@contextmanager
def single_keys() -> Iterator[None]:
    """Let each key be read without an Enter after it; earlier input is discarded, and nothing is shown."""
    with hidden_input(), keys_alone():
        yield


def wait_for_silence() -> None:
    """Discard what is typed until the keyboard is silent."""
    while read_chunk_before(time.monotonic() + QUIET_S):
        pass


def read_key() -> str:
    """Return the next key that is pressed alone, in lower case, perhaps with an Enter after it.

    The end of the input and Ctrl-D are `END`. Keys that follow each other quickly are ignored.
    """
    while True:
        data = read_chunk()
        if not data:
            return END
        while more := read_chunk_before(time.monotonic() + ALONE_S):
            data += more
        key = data.decode("utf-8", "replace").rstrip("\r\n") or ENTER
        if len(key) == 1:
            return END if key == _CTRL_D else key.lower()
        wait_for_silence()
