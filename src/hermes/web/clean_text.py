"""Text from the web, without characters that act on a terminal or that no reader sees."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]?"  # colours, cursor, modes
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*+(?:\x07|\x1b\\|\x9c)?"  # titles, links, clipboard
    r"|\x1b[ -/]*+[0-~]?"
)
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Control characters except tab and line feed, marks of direction, and characters without a shape.

The joiners U+200C and U+200D stay, because emoji and several scripts need them.
"""
_BLANKS = re.compile(r"[ \t\xa0]{2,}")
_EMPTY_LINES = re.compile(r"\n(?:[ \t]*+\n){2,}")


def clean_text(text: str) -> str:
    """Return `text` without escape sequences and invisible characters; every line break is a line feed."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _INVISIBLE.sub("", _ESCAPES.sub("", text))


def clean_line(text: str) -> str:
    """Return `text` cleaned and on one line."""
    return " ".join(clean_text(text).split())


def fold_blanks(text: str) -> str:
    """Return `text` with single blanks and at most one empty line in a row."""
    lines = (line.strip() for line in _BLANKS.sub(" ", text).split("\n"))
    return _EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip()
