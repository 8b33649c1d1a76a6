"""Two documented helpers of earlier versions; search itself parses a query and needs neither."""

from __future__ import annotations

import re

_quoted = re.compile(r'"[^"]*"')
_compound = re.compile(r"\w+(?:[.\-]\w+)+|\w*_\w*", re.UNICODE)
_special = re.compile(r'[+{}():"^]')
_CJK = (
    (0x3000, 0x30FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7AF),
    (0x20000, 0x2A6DF),
)


def sanitize_fts5_query(query: str) -> str:
    """A query that FTS5 takes without special characters, dangling operators or unquoted compound words."""
    kept: list[str] = []

    def set_aside(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"\0{len(kept) - 1}\0"

    text = _quoted.sub(set_aside, query.replace("\0", " "))
    text = _special.sub(" ", text)
    text = re.sub(r"(^|\s)\*", r"\1", re.sub(r"\*+", "*", text)).strip()
    text = re.sub(r"^(?:AND|OR|NOT)\b\s*", "", text, flags=re.IGNORECASE)
    text = re.sub(r"\s+(?:AND|OR|NOT)$", "", text, flags=re.IGNORECASE).strip()
    text = _compound.sub(lambda found: f'"{found[0]}"', text)
    return re.sub("\0([0-9]+)\0", lambda found: kept[int(found[1])], text).strip()


def contains_cjk(text: str) -> bool:
    """Whether a text has a Chinese, Japanese or Korean character."""
    return any(low <= ord(character) <= high for character in text for low, high in _CJK)
