"""Text for a model: made valid and limited in length."""

from __future__ import annotations

MAX_CHARACTERS = 50_000

_REPLACEMENT = "\ufffd"


def valid_text(text: str) -> str:
    """Return `text` without NUL and lone surrogates, which JSON can carry but endpoints refuse."""
    if "\0" in text:
        text = text.replace("\0", _REPLACEMENT)
    try:
        text.encode()
    except UnicodeEncodeError:
        # Through UTF-16, so that two adjacent surrogates become the character that they encode.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def limit_text(text: str, limit: int = MAX_CHARACTERS, *, more: str) -> str:
    """Return at most `limit` characters of a text, from both ends, with a line between them about the missing part.

    `more` says how to see the rest; it follows the words "to see them".
    """
    if len(text) <= limit:
        return text
    note = f"\n\n[... about {len(text) - limit} characters omitted; to see them, {more} ...]\n\n"
    head = (limit - len(note)) * 3 // 5
    tail = limit - len(note) - head
    return text[:head] + note + text[len(text) - tail :]
