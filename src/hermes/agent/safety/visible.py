"""Text for somebody who has to decide: nothing in it can hide, act on the terminal, or pass for something else."""

from __future__ import annotations

import re
from unicodedata import name, normalize

# Alphabets with letters that cannot be told from Latin ones.
_ALPHABETS = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "DESERET", "GEORGIAN")
_TWINS = frozenset(
    "аеорсухіјѕһԁԛԝӏԍвкмнтАВЕЗКМНОРСТУХІЈЅԌԚԜ"  # Cyrillic
    "ονραυικωγΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳ"  # Greek
    "օոսցԁհյՕՍԼ"  # Armenian
    "ɑɡıȷǀǃʟꓐꓑꓓꓔꓚ"
)
_MARKS = frozenset("‐‑‒–—―−∕⁄∖‘’‚‛“”„‟′″∗∣׃ː∶‹›‖ˋˈ")

_WORD = re.compile(r"[^\W_]+")


def visible(text: str) -> str:
    """`text` with every character shown by its number that cannot be seen, acts on a terminal or passes for another.

    Lines stay lines.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, _WORD.sub(_shown_word, text)))


def has_disguise(text: str) -> bool:
    """Whether something in `text` is not what it looks like."""
    return any(line != visible(line) for line in text.replace("\t", " ").split("\n"))


def _shown_word(found: re.Match[str]) -> str:
    """A word whose letters come from one alphabet, or the odd ones by their numbers."""
    word = found[0]
    if word.isascii():
        return word
    is_mixed = any(char.isascii() and char.isalpha() for char in word)
    if is_mixed or all(char in _TWINS or char.isdecimal() for char in word):
        return "".join(_number(char) if _is_foreign(char) else char for char in word)
    return word


def _is_foreign(char: str) -> bool:
    return not char.isascii() and (char in _TWINS or name(char, "").startswith(_ALPHABETS))


def _shown(char: str) -> str:
    if char == "\n" or (char.isascii() and char.isprintable()):
        return char
    if not char.isprintable() or char in _MARKS or any(each.isascii() for each in normalize("NFKC", char)):
        return _number(char)
    return char


def _number(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
