"""Calling the user back to the terminal after a long turn."""

from __future__ import annotations

import sys
from typing import Literal

from hermes.cli.chat.terminal.output import write_notice
from hermes.cli.chat.terminal.style import can_move

BELL = "\a"
NOTIFICATION = "\x1b]9;{text}\a"
"""OSC 9, which terminals show as a notification of the desktop; others ignore it."""


def call_user(how: Literal["none", "bell", "desktop"], text: str) -> None:
    """Ring the bell or show a notification, if stderr is a terminal."""
    if how == "none" or not can_move(sys.stderr):
        return
    write_notice(BELL if how == "bell" else NOTIFICATION.format(text=text))
