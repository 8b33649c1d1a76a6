"""The words by which messages are told apart, and the ones that all of them have."""

from __future__ import annotations

COMMON = "crewmate"
"""Is in every message."""
PART = "*rewmat*"
"""Finds it by its inside, through the other index."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def letters(number: int, length: int) -> str:
    """A number in letters, always as many: no word is part of another."""
    found = ""
    for _ in range(length):
        number, digit = divmod(number, len(_LETTERS))
        found = _LETTERS[digit] + found
    return found


def nth_word(stream: str, number: int) -> str:
    """The word of a stream's message."""
    return f"q{stream}{letters(number, 4)}"


def word_of(text: str) -> str:
    """The word by which a message is known, from what it says."""
    return text.split(" ", 1)[0]
