"""A query tree and a scope as tsqueries.

An expression may let through more than the tree does, never less: what it cannot say counts as true, and the messages
are then checked on their text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hermes.query import analyze
from hermes.query.analyze import is_unspaced, single
from hermes.query.tree import And, Leaf, Node, Not, Or, Part, Words
from hermes.state.postgres.vector import MAX_WORD, NOTHING, SHIFTS, facet, quoted, span_mark
from hermes.state.scope import Scope

MAX_NAMED, MAX_LACKED = 200, 32
"""How many values of a filter are looked up in the index; longer lists are checked on the rows."""
SHORTEST_FRAGMENT = 3

_fragment = re.compile("[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Expression:
    """What the index is asked; None: everything."""

    text: str | None
    is_exact: bool


@dataclass(frozen=True, slots=True)
class Pattern:
    """Words that are to be looked up: those that begin with a text, or that contain it."""

    text: str
    is_beginning: bool = False


Expand = Callable[[Pattern], Sequence[str] | None]
"""The words of a pattern; None: so many that it is better not to name them."""


def pattern_of(leaf: Leaf) -> Pattern | None:
    """The words that a leaf stands for, if it stands for several."""
    match leaf:
        case Words(words, _, prefix) if prefix and not is_unspaced(words[-1][0]):
            return Pattern(words[-1][:MAX_WORD], is_beginning=True)
        case Part(text) if len(text) >= SHORTEST_FRAGMENT and _is_inside_a_word(text):
            return Pattern(text)
        case _:
            return None


def instance_of(leaf: Leaf, word: str) -> Words:
    """A leaf with one of the words that it stands for."""
    before = leaf.words[:-1] if isinstance(leaf, Words) else ()
    return Words((*before, word), word)


def of_query(node: Node, expand: Expand) -> Expression:
    """A tree as an expression."""
    match node:
        case Words():
            return _of_words(node, expand)
        case Part():
            return _of_part(node, expand)
        case Not(child):
            inner = of_query(child, expand)
            if inner.text is None or not inner.is_exact:
                return Expression(None, is_exact=False)
            return Expression(f"!({inner.text})", is_exact=True)
        case And(children):
            needed = [of_query(child, expand) for child in children]
            return Expression(_joined(" & ", [each.text for each in needed]), all(each.is_exact for each in needed))
        case Or(children):
            choices = [of_query(child, expand) for child in children]
            if any(each.text is None for each in choices):
                return Expression(None, is_exact=False)
            return Expression(_joined(" | ", [each.text for each in choices]), all(each.is_exact for each in choices))


def of_scope(scope: Scope) -> Expression:
    """A scope as an expression; times and hidden messages are not in it."""
    conditions: list[str | None] = []
    is_exact = True
    named = (("s", scope.sources), ("r", scope.roles), ("i", scope.sessions))
    for kind, values in (*named, ("o", None if scope.owner is None else (scope.owner,))):
        if values is not None and len(values) > MAX_NAMED:
            is_exact = False
        elif values is not None:
            conditions.append(_any(kind, values))
    for kind, values in (("s", scope.not_sources), ("i", scope.not_sessions)):
        if len(values) > MAX_LACKED:
            is_exact = False
        elif values:
            conditions.append(f"!{_any(kind, values)}")
    return Expression(_joined(" & ", conditions), is_exact)


def of_span(low: int, high: int) -> str:
    """The fewest marks of spans in which all ids from `low` to `high` lie, and perhaps some beside them."""
    marks = []
    at = low >> SHIFTS[0] << SHIFTS[0]
    while at <= high:
        level = max(
            level
            for level, shift in enumerate(SHIFTS)
            if level == 0 or (at >> shift << shift == at and at + (1 << shift) - 1 <= high)
        )
        marks.append(quoted(span_mark(level, at)))
        at += 1 << SHIFTS[level]
    return f"({' | '.join(marks)})"


def _of_words(leaf: Words, expand: Expand) -> Expression:
    is_exact = all(len(word) <= MAX_WORD for word in leaf.words)
    steps = [quoted(word[:MAX_WORD]) for word in leaf.words]
    if not leaf.prefix:
        return Expression(_joined(" <-> ", steps), is_exact)
    if is_unspaced(leaf.words[-1][0]):
        # As a beginning, one common character would mean naming every pair that begins with it.
        steps[-1] = quoted(single(leaf.words[-1]))
        return Expression(_joined(" & ", [_joined(" <-> ", steps[:-1]), steps[-1]]), is_exact=False)
    pattern = pattern_of(leaf)
    assert pattern is not None
    found = expand(pattern)
    if found is None:
        return Expression(_joined(" <-> ", steps[:-1]), is_exact=False)
    return Expression(_joined(" <-> ", [*steps[:-1], _choice(found)]), is_exact)


def _of_part(leaf: Part, expand: Expand) -> Expression:
    if (pattern := pattern_of(leaf)) is not None:
        found = expand(pattern)
        return Expression(None if found is None else _choice(found), is_exact=found is not None)
    needed = _of_fragments(leaf.text, expand) if leaf.text.isascii() else _of_pairs(leaf.text)
    return Expression(_joined(" & ", needed), is_exact=False)


def _is_inside_a_word(text: str) -> bool:
    """Whether a text, wherever it stands, is a part of one word."""
    return len(text) <= MAX_WORD and not is_unspaced(text[0]) and analyze.words(text) == [text]


def _of_fragments(text: str, expand: Expand) -> list[str | None]:
    """The words that a text is made of, the first of which may begin before it and the last go on after it."""
    needed: list[str | None] = []
    for found in _fragment.finditer(text):
        if found.start() > 0 and found.end() < len(text):
            needed.append(quoted(found[0][:MAX_WORD]))
        elif SHORTEST_FRAGMENT <= len(found[0]) <= MAX_WORD:
            words = expand(Pattern(found[0], is_beginning=found.start() > 0))
            needed.append(None if words is None else _choice(words))
    return needed


def _of_pairs(text: str) -> list[str | None]:
    """The neighbours in a text that belong to a script without spaces: those are words."""
    return [quoted(one + other) for one, other in pairwise(text) if is_unspaced(one) and is_unspaced(other)]


def _choice(words: Sequence[str]) -> str:
    return f"({' | '.join(map(quoted, words))})" if words else quoted(NOTHING)


def _any(kind: str, values: Sequence[str]) -> str:
    return f"({' | '.join(quoted(facet(kind, value)) for value in values)})"


def _joined(operator: str, parts: Sequence[str | None]) -> str | None:
    present = [part for part in parts if part is not None]
    return f"({operator.join(present)})" if len(present) > 1 else present[0] if present else None
