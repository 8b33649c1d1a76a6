"""What a typed row of words means: words, words with a minus, and small operators at an end.

Shares no code with the product. Queries with quotes, groups or operators in capitals are written from a tree instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.property.naive_search import Branch, Leaf, Tree
from tests.property.naive_words import flat, items

COMMAND_WORDS = 3
"""In so many words, a minus before one or two letters is text."""
PROSE_WORDS = 6
"""In so many words, every minus is text."""
MIN_WORDS = 2
"""A text of fewer words is not looked for to the letter."""
SENTENCE_WORDS, SENTENCE_CHARACTERS = 3, 7
"""A sentence has at least so many words, or so many characters of a script without spaces."""

_CAPITALS = {"AND", "OR", "NOT"}
_SMALL = {"and", "or", "not"}
_QUOTES = '"“”„«»'


@dataclass(frozen=True)
class Reading:
    """What a row of words means."""

    tree: Tree
    literal: Tree | None
    """What it means if a message has this."""
    has_operators: bool


@dataclass(frozen=True)
class _Piece:
    text: str
    is_negated: bool = False

    @property
    def leaf(self) -> Leaf:
        inner = self.text.strip("*")
        kind = "part" if self.text[0] == "*" else "prefix" if self.text[-1] == "*" else "word"
        return Leaf(inner, kind)

    @property
    def is_searched(self) -> bool:
        return bool(flat(self.leaf.text) if self.leaf.kind == "part" else items(self.leaf.text))


def is_row_of_words(typed: str) -> bool:
    """Whether a query has only words and words with a minus."""
    return not (set(typed.split()) & _CAPITALS or set(typed) & set(f"{_QUOTES}()"))


def read(typed: str) -> Reading:
    """Return what a row of words means."""
    pieces = list(map(_piece, typed.split()))
    if len(pieces) >= COMMAND_WORDS:
        pieces = [
            _Piece(piece.text) if len(pieces) >= PROSE_WORDS or _is_option(piece.text) else piece for piece in pieces
        ]
    kept = list(pieces)
    while kept and kept[-1].text in _SMALL:
        kept.pop()
    while kept and kept[0] in map(_Piece, _SMALL):
        kept.pop(0)
    if not kept:
        kept = [_Piece(piece.text) for piece in pieces]
    is_negated = any(piece.is_negated for piece in pieces)
    literal: Tree | None = None
    if is_negated:
        literal = Leaf(typed, "literal") if _count_words(typed) >= MIN_WORDS else None
    elif len(kept) < len(pieces):
        literal = _all_of(pieces)
    has_operators = any(piece.is_negated for piece in kept)
    return Reading(_tree(typed, kept, has_operators=has_operators), literal, has_operators)


def may_be_sentence(typed: str) -> bool:
    """Whether a text is long enough for a sentence; not every such text is one."""
    found = items(typed)
    if any(kind == "run" for kind, _ in found):
        return sum(len(text) if kind == "run" else 1 for kind, text in found) >= SENTENCE_CHARACTERS
    return len(found) >= SENTENCE_WORDS


def _tree(typed: str, pieces: list[_Piece], *, has_operators: bool) -> Tree:
    if any(piece.is_searched for piece in pieces):
        return _all_of([piece for piece in pieces if piece.is_searched])
    if has_operators:
        # Only punctuation: each piece means its characters.
        return _all_of([_Piece(f"*{piece.text}*", piece.is_negated) for piece in pieces])
    return Leaf(typed, "part")


def _all_of(pieces: list[_Piece]) -> Tree:
    searched = [piece for piece in pieces if piece.is_searched]
    nodes = tuple(Branch("not", (piece.leaf,)) if piece.is_negated else piece.leaf for piece in searched)
    return nodes[0] if len(nodes) == 1 else Branch("and", nodes)


def _piece(text: str) -> _Piece:
    if text[0] == "-" and len(text) > 1 and text[1] not in "->":
        return _Piece(text[1:], is_negated=True)
    return _Piece(text)


def _is_option(text: str) -> bool:
    return text.isascii() and text.isalnum() and len(text) <= 2


def _count_words(typed: str) -> int:
    """Count the words of a text; a run has as many as pairs of neighbours."""
    found = items(typed)
    count = sum(len(text) if kind == "run" else 1 for kind, text in found)
    ends_in_run = bool(found) and found[-1][0] == "run" and len(found[-1][1]) > 1
    return count - ends_in_run
