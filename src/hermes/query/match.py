"""Decide from a message's text alone whether it matches a query."""

from __future__ import annotations

from functools import lru_cache

from hermes.lazy import lazy
from hermes.query import analyze
from hermes.query.analyze import GAP, SYMBOL_WORDS
from hermes.query.stems import MARK as STEM_MARK
from hermes.query.tree import And, Node, Not, Or, Part, Words

_CACHED_TEXT = 4_096
_recent_words = lru_cache(maxsize=1_024)(analyze.word_stream)
_recent_stems = lru_cache(maxsize=1_024)(analyze.stem_stream)
"""These cache the streams of the newest messages: they are not indexed yet, and most searches read the same ones."""


class Document:
    """A text in the forms that a search needs, each made on first use."""

    def __init__(self, text: str) -> None:
        self.text = text

    @lazy
    def words(self) -> str:
        """The words of the text and their parts."""
        return _recent_words(self.text) if len(self.text) <= _CACHED_TEXT else analyze.word_stream(self.text)

    @lazy
    def stems(self) -> str:
        """The stems of its words."""
        return _recent_stems(self.text) if len(self.text) <= _CACHED_TEXT else analyze.stem_stream(self.text)

    @lazy
    def lowered(self) -> str:
        """The text in small letters."""
        return self.text.lower()

    @lazy
    def folded(self) -> str:
        """The folded text, as it is split into words."""
        return analyze.fold(self.text)

    @lazy
    def joined(self) -> str:
        """Its folded characters, with runs of unspaced scripts in one piece."""
        return analyze.join_unspaced(self.folded)

    @lazy
    def flat(self) -> str:
        """The folded text with single blanks."""
        return " ".join(self.folded.split())

    def has_words(self, leaf: Words) -> bool:
        """Whether the text has the words next to each other."""
        if leaf.is_literal and leaf.text not in self.flat:
            return False
        if len(leaf.words) == 1 and leaf.words[0].isascii() and self.text.isascii():
            # A substring test decides most texts without splitting them into words.
            word = leaf.words[0]
            if word not in self.lowered and not analyze.is_measure(word, is_prefix=leaf.prefix):
                return False
            # A number may be a part of a time or a measure, which are split in other ways.
            if (leaf.prefix or word.isalpha()) and _stands_in(self.lowered, word, is_prefix=leaf.prefix):
                return True
        elif not self.text.isascii() and not all(
            word.strip(GAP) in self.joined or analyze.is_measure(word, is_prefix=leaf.prefix)
            for word in set(leaf.words) - SYMBOL_WORDS
            if not word.startswith(STEM_MARK)
        ):
            return False
        stream = self.stems if leaf.words[0].startswith(STEM_MARK) else self.words
        return f" {' '.join(leaf.words)}{'' if leaf.prefix else ' '}" in stream

    def has_part(self, leaf: Part) -> bool:
        """Whether the text contains the characters."""
        if self.text.isascii() and " " not in leaf.text:
            return leaf.text in self.lowered
        return leaf.text in self.flat


def _stands_in(text: str, word: str, *, is_prefix: bool) -> bool:
    """Whether an ASCII text has a word somewhere without a letter or digit before it, nor after it unless a prefix."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        begins = at == 0 or not text[at - 1].isalnum()
        if begins and (is_prefix or end == len(text) or not text[end].isalnum()):
            return True
        at = text.find(word, at + 1)
    return False


def matches(node: Node, document: Document) -> bool:
    """Whether a text satisfies a query."""
    match node:
        case Words():
            return document.has_words(node)
        case Part():
            return document.has_part(node)
        case Not(child):
            return not matches(child, document)
        case And(children):
            return all(matches(child, document) for child in children)
        case Or(children):
            return any(matches(child, document) for child in children)
