"""Text on its way to a model: valid, and not too much of it."""

from __future__ import annotations

MAX_CHARACTERS = 50_000

_REPLACEMENT = "\ufffd"


def valid_text(text: str) -> str:
    """`text` without NUL and lone surrogates, which JSON can carry but endpoints refuse."""
    if "\0" in text:
        text = text.replace("\0", _REPLACEMENT)
    try:
        text.encode()
    except UnicodeEncodeError:
        # Through UTF-16, so that two surrogates that belong together become the character that they are.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def limit_text(text: str, limit: int = MAX_CHARACTERS, *, more: str) -> str:
    """At most `limit` characters of a text, from both ends; a line between them tells what is missing and what to do.

    `more` is what to do to see the rest, in words that follow "to see them".
    """
    if len(text) <= limit:
        return text
    note = f"\n\n[... about {len(text) - limit} characters are left out here; to see them, {more} ...]\n\n"
    head = (limit - len(note)) * 3 // 5
    tail = limit - len(note) - head
    return text[:head] + note + text[len(text) - tail :]
