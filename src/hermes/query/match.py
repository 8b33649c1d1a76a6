"""Decide from a message's text alone whether it matches a query."""

from __future__ import annotations

from functools import cached_property, lru_cache

from hermes.query import analyze
from hermes.query.analyze import GAP, SYMBOL_WORDS
from hermes.query.stems import MARK as STEM_MARK
from hermes.query.tree import And, Node, Not, Or, Part, Words

_CACHED_TEXT = 4_096
_recent_stream = lru_cache(maxsize=1_024)(analyze.stream)
"""Caches the streams of the newest messages: they are not indexed yet, and most searches read the same ones."""


class Document:
    """A text in the forms that a search needs, each made on first use."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def stream(self) -> str:
        """The words of the text."""
        return _recent_stream(self.text) if len(self.text) <= _CACHED_TEXT else analyze.stream(self.text)

    @cached_property
    def folded(self) -> str:
        """The folded text, as it is split into words."""
        return analyze.fold(self.text)

    @cached_property
    def joined(self) -> str:
        """Its folded characters, with runs of unspaced scripts in one piece."""
        return analyze.join_unspaced(self.folded)

    @cached_property
    def flat(self) -> str:
        """The folded text with single blanks."""
        return " ".join(self.folded.split())

    def has_words(self, leaf: Words) -> bool:
        """Whether the text has the words next to each other."""
        if leaf.is_literal and leaf.text not in self.flat:
            return False
        if len(leaf.words) == 1 and leaf.words[0].isascii() and self.text.isascii():
            # A substring test decides most texts without splitting them into words.
            lowered = self.text.lower()
            if leaf.words[0] not in lowered and not analyze.is_measure(leaf.words[0], is_prefix=leaf.prefix):
                return False
            if leaf.prefix and _begins_a_word(leaf.words[0], lowered):
                return True
        elif not self.text.isascii() and not all(
            word.strip(GAP) in self.joined or analyze.is_measure(word, is_prefix=leaf.prefix)
            for word in set(leaf.words) - SYMBOL_WORDS
            if not word.startswith(STEM_MARK)
        ):
            return False
        return f" {' '.join(leaf.words)}{'' if leaf.prefix else ' '}" in self.stream

    def has_part(self, leaf: Part) -> bool:
        """Whether the text contains the characters."""
        if self.text.isascii() and " " not in leaf.text:
            return leaf.text in self.text.lower()
        return leaf.text in self.flat


def _begins_a_word(word: str, text: str) -> bool:
    """Whether an ASCII word starts somewhere in an ASCII text without a letter or digit before it."""
    at = text.find(word)
    while at > 0 and text[at - 1].isalnum():
        at = text.find(word, at + 1)
    return at >= 0


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
