"""What is written to the terminal, and how wide and how safe it is.

Titles and previews come from chat platforms, so from anybody: no control character of theirs reaches the terminal.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable
from typing import Any

import click

from hermes.errors import HermesError

WIDTH_WHEN_PIPED = 120
ELLIPSIS = "…"

# Emoji and several scripts are spelled with these; every other invisible character is shown by its number.
_JOINERS = "\u200c\u200d"
_PLAIN_GLYPHS = str.maketrans({"─": "-", "—": "-", ELLIPSIS: "~", "✓": "+", "•": "*", "✗": "x", "█": "#"})


def write_stdout(text: str) -> None:
    """Write data to stdout."""
    try:
        click.echo(_encodable(text))
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_output()
        raise HermesError(f"the output cannot be written: {error.strerror}") from error


def write_json(value: dict[str, Any]) -> None:
    """Write an object to stdout."""
    write_stdout(json.dumps(value, indent=2))


def write_stderr(text: str) -> None:
    """Write a line to stderr, for the person and not for the next program."""
    with contextlib.suppress(BrokenPipeError):  # nobody listens any more, and the work does not depend on it
        click.echo(printable(text), err=True)


def discard_output() -> None:
    """Let what is still to be written to stdout go nowhere: its reader has left or the person has."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def heading(text: str) -> str:
    """A line that stands out where it can."""
    return click.style(text, bold=True) if _has_style() else text


def highlight(text: str) -> str:
    """A part of a line that stands out where it can, as what was found does in grep."""
    return click.style(text, fg="red", bold=True) if _has_style() else text


def terminal_width() -> int:
    """The columns of the terminal; `COLUMNS` overrides it, and a pipe has `WIDTH_WHEN_PIPED`."""
    declared = os.environ.get("COLUMNS", "")
    if declared.isdecimal() and int(declared) > 0:
        return int(declared)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or WIDTH_WHEN_PIPED
    except OSError:
        return WIDTH_WHEN_PIPED


def printable(text: str) -> str:
    """`text` on one line, with every character that could act on a terminal shown by its number."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in _JOINERS else _escape(char) for char in text)


def printable_lines(text: str) -> str:
    """`text` with its lines kept, each of them printable."""
    return "\n".join(printable(line) for line in text.splitlines())


def display_width(text: str) -> int:
    """How many columns a printable text takes."""
    if _is_narrow(text):
        return len(text)
    from wcwidth import wcswidth

    return max(0, wcswidth(text))


def clip(text: str, width: int) -> str:
    """As much of a printable text as fits into `width` columns; what was cut off leaves an ellipsis."""
    if display_width(text) <= width:
        return text
    if _is_narrow(text):
        return text[: width - 1].rstrip() + ELLIPSIS
    kept, room = "", width - 1
    for grapheme in graphemes(text):
        room -= display_width(grapheme)
        if room < 0:
            break
        kept += grapheme
    return kept.rstrip() + ELLIPSIS


def graphemes(text: str) -> Iterable[str]:
    """What a person sees as one character each, in order; no line is ever broken inside of one."""
    if _is_narrow(text):
        return text
    from wcwidth import iter_graphemes

    return iter_graphemes(text)


def pad(text: str, width: int) -> str:
    """A printable text, filled with spaces to `width` columns."""
    return text + " " * (width - display_width(text))


def _has_style() -> bool:
    """Whether stdout is a terminal and the person has not asked for plain text."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _is_narrow(text: str) -> bool:
    """Whether every character takes one column for certain: Latin text with its dashes, quotes and ellipses."""
    return text.isascii() or all(char < "\u0300" or "\u2010" <= char <= "\u2027" for char in text)


def _escape(char: str) -> str:
    return " " if char.isspace() else char.encode("unicode_escape").decode("ascii")


def _encodable(text: str) -> str:
    """`text` as stdout can take it: in a locale without Unicode with plain lines and numbers for the rest."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_PLAIN_GLYPHS).encode(encoding, "backslashreplace").decode(encoding)
    return text
