"""Colours of the chat, if the terminal supports them."""

from __future__ import annotations

import os
import sys
from typing import IO

import click

GOLD, GREEN = 178, 71
"""Numbers among 256 colours; a terminal with fewer gets its own yellow and green."""

_BASIC = {GOLD: "yellow", GREEN: "green"}


def is_terminal(stream: IO[str]) -> bool:
    """Whether a stream is a terminal."""
    try:
        return stream.isatty()
    except ValueError:  # it is closed
        return False


def has_style(stream: IO[str]) -> bool:
    """Whether a stream is a terminal and the user has not asked for plain text."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def can_move(stream: IO[str]) -> bool:
    """Whether a stream is a terminal on which a line can be overwritten."""
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def dim(text: str) -> str:
    """Make text for stderr dim, if supported."""
    return click.style(text, dim=True) if has_style(sys.stderr) else text


def bold(text: str) -> str:
    """Make text for stderr bold, if supported."""
    return click.style(text, bold=True) if has_style(sys.stderr) else text


def failed(text: str) -> str:
    """Make text for stderr look like a failure, if supported."""
    return click.style(text, fg="red") if has_style(sys.stderr) else text


def succeeded(text: str) -> str:
    """Make text for stderr look like a success, if supported."""
    return click.style(text, fg="green", dim=True) if has_style(sys.stderr) else text


def danger(text: str) -> str:
    """Make text for stderr stand out as dangerous, if supported."""
    return click.style(text, fg="red", bold=True) if has_style(sys.stderr) else text


def colour_text(text: str, colour: int, stream: IO[str] | None = None, *, is_dim: bool = False) -> str:
    """Colour text for stderr or another stream, if supported."""
    if not has_style(stream or sys.stderr):
        return text
    return click.style(text, fg=colour if _has_256_colours() else _BASIC[colour], dim=is_dim or None)


def _has_256_colours() -> bool:
    return "256color" in os.environ.get("TERM", "") or bool(os.environ.get("COLORTERM"))
