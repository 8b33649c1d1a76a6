"""Writing to the terminal: streams, widths and safe text.

Titles and previews come from strangers on chat platforms, so no control character in them reaches the terminal.
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

# Emoji and several scripts need these; every other invisible character is shown by its number.
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
    """Write a JSON object to stdout."""
    write_stdout(json.dumps(value, indent=2))


def write_stderr(text: str) -> None:
    """Write a line for the user to stderr, on a terminal broken between words."""
    rows = [printable(text)]
    if width := notice_width():
        from hermes.cli.display.wrapping import wrap_line

        rows = wrap_line(rows[0], width)
    with contextlib.suppress(BrokenPipeError):  # the reader has left, and no work depends on this line
        click.echo("\n".join(rows), err=True)


def write_stderr_json(value: dict[str, Any]) -> None:
    """Write a JSON object to stderr, on one line."""
    with contextlib.suppress(BrokenPipeError):  # as above
        click.echo(json.dumps(value), err=True)


def discard_output() -> None:
    """Redirect stdout to the null device, because its reader has left or the user has interrupted."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def heading(text: str) -> str:
    """Make a line bold if stdout supports it."""
    return click.style(text, bold=True) if _has_style() else text


def highlight(text: str) -> str:
    """Make text bold and red if stdout supports it, as grep shows matches."""
    return click.style(text, fg="red", bold=True) if _has_style() else text


def terminal_width() -> int:
    """Return the width of the terminal in columns: `COLUMNS` if set, and `WIDTH_WHEN_PIPED` for a pipe."""
    declared = os.environ.get("COLUMNS", "")
    if declared.isdecimal() and int(declared) > 0:
        return int(declared)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or WIDTH_WHEN_PIPED
    except OSError:
        return WIDTH_WHEN_PIPED


def notice_width() -> int:
    """Return the columns of the terminal on stderr; 0 if it is none."""
    if not sys.stderr.isatty():
        return 0
    declared = os.environ.get("COLUMNS", "")
    if declared.isdecimal() and int(declared) > 0:
        return int(declared)
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        return 0


def printable(text: str) -> str:
    """Return `text` on one line, with every control character shown by its number."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in _JOINERS else _escape(char) for char in text)


def printable_lines(text: str) -> str:
    """Return `text` with its line breaks, each line made printable."""
    return "\n".join(printable(line) for line in text.splitlines())


def display_width(text: str) -> int:
    """Return the number of columns that a printable text takes."""
    if _is_narrow(text):
        return len(text)
    from wcwidth import wcswidth

    return max(0, wcswidth(text))


def clip(text: str, width: int) -> str:
    """Cut a printable text to `width` columns, ending with an ellipsis if something was cut."""
    if display_width(text) <= width:
        return text
    if _is_narrow(text):
        return text[: width - 1].rstrip() + ELLIPSIS
    kept, available = "", width - 1
    for grapheme in graphemes(text):
        available -= display_width(grapheme)
        if available < 0:
            break
        kept += grapheme
    return kept.rstrip() + ELLIPSIS


def graphemes(text: str) -> Iterable[str]:
    """Return the characters of a text as people see them, which must not be split across lines."""
    if _is_narrow(text):
        return text
    from wcwidth import iter_graphemes

    return iter_graphemes(text)


def pad(text: str, width: int) -> str:
    """Pad a printable text with spaces to `width` columns."""
    return text + " " * (width - display_width(text))


def _has_style() -> bool:
    """Whether stdout is a terminal and the user has not asked for plain text."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _is_narrow(text: str) -> bool:
    """Whether every character certainly takes one column, as in Latin text with dashes, quotes and ellipses."""
    return text.isascii() or all(char < "\u0300" or "\u2010" <= char <= "\u2027" for char in text)


def _escape(char: str) -> str:
    return " " if char.isspace() else char.encode("unicode_escape").decode("ascii")


def _encodable(text: str) -> str:
    """Return `text` as stdout can encode it: a locale without Unicode gets plain glyphs and escapes."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_PLAIN_GLYPHS).encode(encoding, "backslashreplace").decode(encoding)
    return text
