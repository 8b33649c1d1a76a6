"""Stems: what the forms of a word have in common, such as `paint` of `painted` and `painting`.

Stems are additional words of a text, behind `GAP`. A word that a person types never matches one; only ranking and the
fallback for questions ask for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

from hermes.query.function_words import ENGLISH, FUNCTION_PAIRS, FUNCTION_WORDS, detect_language

MARK = "¦¦"
"""Begins every stem in the index; no word of a text and no other word of the index begins so."""

_MIN_LENGTH, _MAX_LENGTH = 3, 40
_RUSSIAN = "russian"
_REMEMBERED = 65_536


def stem_words(words: Iterable[str]) -> list[str]:
    """Return the marked stems of the words of a text, each once; a word that is its own stem is found as a word."""
    distinct = dict.fromkeys(words)
    stems = dict.fromkeys(map(_marked_stems(detect_language(distinct)).__getitem__, distinct))
    stems.pop("", None)
    return list(stems)


class _MarkedStems(dict[str, str]):
    """The marked stems of words of one language, empty for words that have none; remembers the words of late."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self._function_words = FUNCTION_WORDS[language] | FUNCTION_PAIRS
        self._stem, self._stem_russian = _stemmer(language).stemWord, _stemmer(_RUSSIAN).stemWord

    def __missing__(self, word: str) -> str:
        # As in `stem`, without its calls and its memory: a text has many words that no other text has.
        marked = ""
        if _MIN_LENGTH <= len(word) <= _MAX_LENGTH and word.isalpha() and word not in self._function_words:
            found = self._stem_russian(word) if "\u0400" <= word[0] <= "\u04ff" else self._stem(word)
            if found != word:
                marked = MARK + found
        if len(self) >= _REMEMBERED:
            self.clear()
        self[word] = marked
        return marked


@cache
def _marked_stems(language: str) -> _MarkedStems:
    return _MarkedStems(language)


def stem(word: str, language: str = ENGLISH) -> str:
    """Return the stem of a folded word; words in Cyrillic letters are Russian whatever the language of the text."""
    if not _may_have_forms(word):
        return word
    return _stem(word, _RUSSIAN if "\u0400" <= word[0] <= "\u04ff" else language)


def _may_have_forms(word: str) -> bool:
    return _MIN_LENGTH <= len(word) <= _MAX_LENGTH and word.isalpha()


@lru_cache(maxsize=4_096)
def _stem(word: str, language: str) -> str:
    return str(_stemmer(language).stemWord(word))


@cache
def _stemmer(language: str) -> Any:
    import Stemmer  # late: only indexing and searching need it

    return Stemmer.Stemmer(language, 0)
