"""A query tree and a scope as tsqueries.

An expression may match more than the tree does, never less: what it cannot express counts as true, and the text of each
message is checked afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hermes.query.analyze import character_word, is_unspaced
from hermes.query.tree import And, Leaf, Node, Not, Or, Part, Words
from hermes.state.postgres.search.document import MAX_WORD, NOTHING, SHIFTS, facet, quote_lexeme, span_mark
from hermes.state.search.facets import Facet, facets_of
from hermes.state.search.scope import Scope
from hermes.state.server.search.word_patterns import Expand, Pattern, pattern_of, pieces_of


@dataclass(frozen=True, slots=True)
class Expression:
    """A tsquery; None matches everything."""

    text: str | None
    is_exact: bool


def instance_of(leaf: Leaf, word: str) -> Words:
    """Return a leaf with one of the words that it stands for."""
    before = leaf.words[:-1] if isinstance(leaf, Words) else ()
    return Words((*before, word), word)


def of_query(node: Node, expand: Expand) -> Expression:
    """Return a tree as an expression."""
    match node:
        case Words():
            found = _of_words(node, expand)
            return Expression(found.text, is_exact=False) if node.is_literal else found
        case Part():
            return _of_part(node, expand)
        case Not(child):
            inner = of_query(child, expand)
            if inner.text is None or not inner.is_exact:
                return Expression(None, is_exact=False)
            return Expression(f"!({inner.text})", is_exact=True)
        case And(children):
            needed = [of_query(child, expand) for child in children]
            return Expression(_join(" & ", [each.text for each in needed]), all(each.is_exact for each in needed))
        case Or(children):
            choices = [of_query(child, expand) for child in children]
            if any(each.text is None for each in choices):
                return Expression(None, is_exact=False)
            return Expression(_join(" | ", [each.text for each in choices]), all(each.is_exact for each in choices))


def of_scope(scope: Scope) -> Expression:
    """Return a scope as an expression; times and hidden messages are not in it."""
    facets = facets_of(scope)
    lacked = [f"!{_any(each)}" for each in facets.excluded]
    return Expression(_join(" & ", [*map(_any, facets.wanted), *lacked]), facets.is_exact)


def of_span(low: int, high: int) -> str:
    """Few marks of spans that contain all ids from `low` to `high`, and at most a quarter more above them."""
    marks = []
    at = low >> SHIFTS[0] << SHIFTS[0]
    last = high + (high - low) // 4
    while at <= high:
        level = max(
            level
            for level, shift in enumerate(SHIFTS)
            if level == 0 or (at >> shift << shift == at and at + (1 << shift) - 1 <= last)
        )
        marks.append(quote_lexeme(span_mark(level, at)))
        at += 1 << SHIFTS[level]
    return f"({' | '.join(marks)})"


def _of_words(leaf: Words, expand: Expand) -> Expression:
    is_exact = all(len(word) <= MAX_WORD for word in leaf.words)
    steps = [quote_lexeme(word[:MAX_WORD]) for word in leaf.words]
    if not leaf.prefix:
        return Expression(_join(" <-> ", steps), is_exact)
    if is_unspaced(leaf.words[-1][0]):
        # As a prefix, one common character would mean listing every pair that begins with it.
        steps[-1] = quote_lexeme(character_word(leaf.words[-1]))
        return Expression(_join(" & ", [_join(" <-> ", steps[:-1]), steps[-1]]), is_exact=False)
    pattern = pattern_of(leaf, MAX_WORD)
    assert pattern is not None
    found = expand(pattern)
    if found is None:
        return Expression(_join(" <-> ", steps[:-1]), is_exact=False)
    return Expression(_join(" <-> ", [*steps[:-1], _choice(found)]), is_exact)


def _of_part(leaf: Part, expand: Expand) -> Expression:
    if (pattern := pattern_of(leaf, MAX_WORD)) is not None:
        found = expand(pattern)
        return Expression(None if found is None else _choice(found), is_exact=found is not None)
    needed = [_of_piece(each, expand) for each in pieces_of(leaf.text, MAX_WORD)]
    return Expression(_join(" & ", needed), is_exact=False)


def _of_piece(piece: str | Pattern, expand: Expand) -> str | None:
    if isinstance(piece, str):
        return quote_lexeme(piece)
    words = expand(piece)
    return None if words is None else _choice(words)


def _choice(words: Sequence[str]) -> str:
    return f"({' | '.join(map(quote_lexeme, words))})" if words else quote_lexeme(NOTHING)


def _any(wanted: Facet) -> str:
    return f"({' | '.join(quote_lexeme(facet(wanted.kind, value)) for value in wanted.values)})"


def _join(operator: str, parts: Sequence[str | None]) -> str | None:
    present = [part for part in parts if part is not None]
    return f"({operator.join(present)})" if len(present) > 1 else present[0] if present else None
