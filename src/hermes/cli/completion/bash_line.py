"""A line of bash as far as it was typed, and words as bash takes them."""

from __future__ import annotations

import re
from typing import NamedTuple

_PLAIN = re.compile(r"[\w@%+=:,./-]", re.UNICODE)
_SPECIAL_IN_DOUBLE = re.compile(r'(["$`\\])')


class BashLine(NamedTuple):
    """Words that are complete, and the one that is being typed."""

    words: list[str]
    current: str
    raw: str
    """The current word as it stands in the line, with its quotes."""
    quote: str
    """The quote that is open at the end of the line."""
    settled: str
    """What of the current word stands before that quote."""


def parse_line(text: str) -> BashLine:
    """Take a line apart as bash does, up to its end, also within quotes."""
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
    """A word as it is typed behind an open quote, or without one."""
    if quote == "'":
        return word.replace("'", "'\\''")
    if quote == '"':
        return _SPECIAL_IN_DOUBLE.sub(r"\\\1", word)
    return "".join(char if _PLAIN.match(char) else f"\\{char}" for char in word)
