"""Parsing an unfinished bash line, and quoting words for bash."""

from __future__ import annotations

import re
from typing import NamedTuple

_PLAIN = re.compile(r"[\w@%+=:,./-]", re.UNICODE)
_SPECIAL_IN_DOUBLE = re.compile(r'(["$`\\])')


class BashLine(NamedTuple):
    """The complete words of a line, and the one being typed."""

    words: list[str]
    current: str
    raw: str
    """The current word as typed, with its quotes."""
    quote: str
    """The quote character that is open at the end of the line, if any."""
    settled: str
    """The part of the current word before that quote."""


def parse_line(text: str) -> BashLine:
    """Split a line into words as bash does, also inside an open quote."""
    words: list[str] = []
    current, raw, quote, settled = "", "", "", ""
    is_escaped = False
    for char in text:
        if char in " \t" and not quote and not is_escaped:
            if raw:
                words.append(current)
            current, raw = "", ""
            continue
        raw += char
        if is_escaped:
            current += char if not quote or char in '"$`\\' else f"\\{char}"
            is_escaped = False
        elif char == "\\" and quote != "'":
            is_escaped = True
        elif char == quote:
            quote = ""
        elif char in "\"'" and not quote:
            quote, settled = char, current
        else:
            current += char
    return BashLine(words, current, raw, quote, settled if quote else "")


def quote_word(word: str, quote: str) -> str:
    """Quote a word for bash, after an open quote or without one."""
    if quote == "'":
        return word.replace("'", "'\\''")
    if quote == '"':
        return _SPECIAL_IN_DOUBLE.sub(r"\\\1", word)
    return "".join(char if _PLAIN.match(char) else f"\\{char}" for char in word)
