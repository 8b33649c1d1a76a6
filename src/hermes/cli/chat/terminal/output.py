"""Writing pieces of text to stdout and stderr immediately."""

from __future__ import annotations

import sys

from hermes.cli.display.terminal import discard_output
from hermes.errors import HermesError

_PLAIN_GLYPHS = str.maketrans("─│╭╮╰╯●◆→↻…✓✗⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "-|++++**>*~+x" + "." * 10)


def write_answer(piece: str) -> None:
    """Write a piece of an answer to stdout."""
    try:
        sys.stdout.write(_encodable(piece, sys.stdout.encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_output()
        raise HermesError(f"the output cannot be written: {error.strerror}") from error


def write_notice(text: str) -> None:
    """Write text for the user to stderr. Errors are ignored: no work depends on it."""
    try:
        sys.stderr.write(_encodable(text, sys.stderr.encoding))
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def _encodable(text: str, encoding: str | None) -> str:
    """Return `text` as a stream can encode it: a locale without Unicode gets plain glyphs and escapes."""
    encoding = encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_PLAIN_GLYPHS).encode(encoding, "backslashreplace").decode(encoding)
    return text
