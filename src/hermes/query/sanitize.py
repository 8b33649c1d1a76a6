"""Two documented helpers of earlier versions; search itself parses queries and uses neither."""

from __future__ import annotations

import re

_quoted = re.compile(r'"[^"]*"')
# No match starts inside a word, so that a long word is scanned once.
_compound = re.compile(r"(?<!\w)(?:\w++(?:[.\-]\w++)++|\w*_\w*)", re.UNICODE)
_stars = re.compile(r"\*+")
_lone_star = re.compile(r"(^|\s)\*")
_first_operator = re.compile(r"^(?:AND|OR|NOT)\b\s*", re.IGNORECASE)
_last_operator = re.compile(r"(?<!\s)\s++(?:AND|OR|NOT)$", re.IGNORECASE)
_kept = re.compile("\0([0-9]+)\0")
_special = re.compile(r'[+{}():"^]')
_CJK = (
    (0x3000, 0x30FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7AF),
    (0x20000, 0x2A6DF),
)


def sanitize_fts5_query(query: str) -> str:
    """Return a query that FTS5 accepts: no special characters, no dangling operators, compound words in quotes."""
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"\0{len(kept) - 1}\0"

    text = _quoted.sub(keep, query.replace("\0", " "))
    text = _special.sub(" ", text)
    text = _lone_star.sub(r"\1", _stars.sub("*", text)).strip()
    text = _last_operator.sub("", _first_operator.sub("", text)).strip()
    text = _compound.sub(lambda found: f'"{found[0]}"', text)
    return _kept.sub(lambda found: kept[int(found[1])], text).strip()


def contains_cjk(text: str) -> bool:
    """Whether a text has a Chinese, Japanese or Korean character."""
    return any(low <= ord(character) <= high for character in text for low, high in _CJK)
