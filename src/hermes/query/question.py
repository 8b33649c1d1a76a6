"""A question as people and models ask it: the words that carry its meaning in all forms, and the time that it names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby, pairwise

from hermes.query import analyze
from hermes.query.function_words import detect_language, is_function_word
from hermes.query.moments import TimeHint, parse_time_hint
from hermes.query.stems import MARK, stem
from hermes.query.tree import Node, Or, Words

MAX_TERMS = 24
"""How many terms of a question are looked for."""

_SENTENCE_WORDS, _SENTENCE_GRAMMAR, _SENTENCE_PAIRS = 6, 2, 7
"""So many words make a sentence, or so many function words and one more; so many pairs of characters do."""
_between = re.compile(r"[\s,;:!?()\"'\[\]{}<>’‘“”„«»…，。；：！？、（）「」]+")


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a question, or one pair of characters of a script without spaces."""

    text: str
    """The folded word as it was typed."""
    node: Node
    """Matches the messages that have the word in any form."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a question looks for."""

    terms: tuple[Term, ...]
    hint: TimeHint | None = None
    """The time that the question names."""


def parse_question(text: str, now: float) -> Question:
    """Return the terms of a question without its function words; if it has no others, these are its terms."""
    pieces = [tuple(analyze.words(piece)) for piece in _pieces(text)]
    language = detect_language(word for words in pieces for word in words)
    terms = {term.node: term for words in pieces for term in _terms(words, language)}
    function_words = [node for node, term in terms.items() if is_function_word(term.text, language)]
    if len(function_words) < len(terms):
        for node in function_words:
            del terms[node]
    return Question(tuple(terms.values())[:MAX_TERMS], parse_time_hint(text, now))


def is_sentence(text: str) -> bool:
    """Whether a text reads like a question or a sentence, and not like a few words that must all occur."""
    pieces = [tuple(analyze.words(piece)) for piece in _pieces(text)]
    words = [word for piece in pieces for word in piece]
    if any(analyze.is_unspaced(word[0]) for word in words):
        return len(words) >= _SENTENCE_PAIRS
    language = detect_language(words)
    grammar = sum(is_function_word(word, language) for word in words)
    return len(pieces) >= (_SENTENCE_WORDS if grammar < _SENTENCE_GRAMMAR else _SENTENCE_GRAMMAR + 1)


def _pieces(text: str) -> list[str]:
    """What blanks, quotes and the punctuation of sentences separate."""
    separated = _between.split(analyze.replace_unindexable(text))
    return [piece for piece in separated if analyze.words(piece)]


def _terms(words: tuple[str, ...], language: str) -> list[Term]:
    """The terms of a piece: its word, the pairs of characters in it, or its words side by side, as in `1.2.3`."""
    terms: list[Term] = []
    for is_unspaced, some in groupby(words, lambda word: analyze.is_unspaced(word[0])):
        group = tuple(some)
        if is_unspaced:
            # The last character of a run stands there alone too; it is in a pair already.
            pairs = pairwise(("", *group))
            terms += [_term(word, language) for before, word in pairs if len(word) > 1 or before[1:] != word]
        elif len(group) == 1:
            terms.append(_term(group[0], language))
        else:
            whole = " ".join(group)
            terms.append(Term(whole, Words(group, whole)))
    return terms


def _term(word: str, language: str) -> Term:
    if analyze.is_unspaced(word[0]):
        word_or_character = analyze.character_word(word) if len(word) == 1 else word
        return Term(word, Words((word_or_character,), word))
    found = stem(word, language)
    forms = dict.fromkeys([word, found, MARK + found] if word.isalpha() else [word])
    leaves = tuple(Words((form,), word) for form in forms)
    return Term(word, leaves[0] if len(leaves) == 1 else Or(leaves))
