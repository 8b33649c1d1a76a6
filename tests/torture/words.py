"""The words in messages: one that is unique to each, and one that all share."""

from __future__ import annotations

COMMON = "harborlight"
"""Is in every message."""
PART = "*arborlig*"
"""Finds the common word by its inside, through the trigram index."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def letters(number: int, length: int) -> str:
    """A number as letters of fixed length, so that no word is part of another."""
    found = ""
    for _ in range(length):
        number, digit = divmod(number, len(_LETTERS))
        found = _LETTERS[digit] + found
    return found


def nth_word(stream: str, number: int) -> str:
    """The word of a stream's message."""
    return f"q{stream}{letters(number, 4)}"


def word_of(text: str) -> str:
    """The unique word of a message, from its text."""
    return text.split(" ", 1)[0]
