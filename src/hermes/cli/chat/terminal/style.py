"""Colours of the chat, where they can be shown."""

from __future__ import annotations

import os
import sys
from typing import IO

import click

GOLD, GREEN = 178, 71
"""Of 256 colours; a terminal that has fewer gets its own yellow and green."""

_BASIC = {GOLD: "yellow", GREEN: "green"}


def is_terminal(stream: IO[str]) -> bool:
    """Whether a person looks at a stream."""
    try:
        return stream.isatty()
    except ValueError:  # it is closed
        return False


def has_style(stream: IO[str]) -> bool:
    """Whether a stream is a terminal whose owner has not asked for plain text."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def can_move(stream: IO[str]) -> bool:
    """Whether a line can be written over again there."""
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def dim(text: str) -> str:
    """Text on stderr, in the background."""
    return click.style(text, dim=True) if has_style(sys.stderr) else text


def bold(text: str) -> str:
    """Text on stderr, in the foreground."""
    return click.style(text, bold=True) if has_style(sys.stderr) else text


def coloured(text: str, colour: int, stream: IO[str] | None = None, *, is_dim: bool = False) -> str:
    """Text in a colour, on stderr unless another stream is named."""
    if not has_style(stream or sys.stderr):
        return text
    return click.style(text, fg=colour if _has_256_colours() else _BASIC[colour], dim=is_dim or None)


def _has_256_colours() -> bool:
    return "256color" in os.environ.get("TERM", "") or bool(os.environ.get("COLORTERM"))
