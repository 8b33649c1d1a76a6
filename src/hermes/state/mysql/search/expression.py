"""A query tree and a scope as conditions on the words of a message.

A condition may match more than the tree does, never less: what it cannot express counts as true, and the text of each
message is checked afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hermes.query.analyze import character_word, is_unspaced
from hermes.query.tree import And, Node, Not, Or, Part, Words
from hermes.state.mysql.search.document import CUT, EVERYTHING, MAX_WORD, facet
from hermes.state.search.facets import Facet, facets_of
from hermes.state.search.scope import Scope
from hermes.state.server.search.word_patterns import Expand, Pattern, pattern_of, pieces_of


@dataclass(frozen=True, slots=True)
class OneOf:
    """Has one of these words; an empty tuple matches nothing."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InARow:
    """Has a word of each step, next to each other in this order."""

    steps: tuple[OneOf, ...]


@dataclass(frozen=True, slots=True)
class Lacks:
    """Does not match this condition."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class Every:
    """Matches all of these."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """Matches at least one of these."""

    conditions: tuple[Condition, ...]


Condition = OneOf | InARow | Lacks | Every | Some

ANYTHING = OneOf((EVERYTHING,))


@dataclass(frozen=True, slots=True)
class Expression:
    """A condition, and whether it is equivalent to the query or the scope."""

    condition: Condition
    is_exact: bool


UNKNOWN = Expression(ANYTHING, is_exact=False)


def of_query(node: Node, expand: Expand) -> Expression:
    """Return a tree as an expression."""
    match node:
        case Words():
            found = _of_words(node, expand)
            return Expression(found.condition, is_exact=False) if node.is_literal else found
        case Part():
            return _of_part(node, expand)
        case Not(child):
            inner = of_query(child, expand)
            return Expression(Lacks(inner.condition), is_exact=True) if inner.is_exact else UNKNOWN
        case And(children):
            needed = [of_query(child, expand) for child in children]
            return Expression(_every([each.condition for each in needed]), all(each.is_exact for each in needed))
        case Or(children):
            choices = [of_query(child, expand) for child in children]
            if any(each.condition == ANYTHING for each in choices):
                return UNKNOWN
            return Expression(Some(tuple(each.condition for each in choices)), all(each.is_exact for each in choices))


def of_scope(scope: Scope) -> Expression:
    """Return a scope as an expression; times and hidden messages are not in it."""
    facets = facets_of(scope)
    lacked = [Lacks(_any(each)) for each in facets.excluded]
    return Expression(_every([*map(_any, facets.wanted), *lacked]), facets.is_exact)


def both(one: Condition, other: Condition) -> Condition:
    """Join two conditions: both must match."""
    return _every([one, other])


def without_order(condition: Condition) -> Condition:
    """Return a condition that matches at least as much, and does not depend on the order of words."""
    match condition:
        case OneOf():
            return condition
        case InARow(steps):
            return _every(list(steps))
        case Lacks(inner):
            return ANYTHING if asks_for_order(inner) else condition
        case Every(conditions):
            return _every([without_order(each) for each in conditions])
        case Some(conditions):
            return Some(tuple(without_order(each) for each in conditions))


def asks_for_order(condition: Condition) -> bool:
    """Whether a condition depends on the order of words."""
    match condition:
        case OneOf():
            return False
        case InARow():
            return True
        case Lacks(inner):
            return asks_for_order(inner)
        case Every(conditions) | Some(conditions):
            return any(map(asks_for_order, conditions))


def lacks_something(condition: Condition) -> bool:
    """Whether a condition excludes something."""
    match condition:
        case OneOf() | InARow():
            return False
        case Lacks():
            return True
        case Every(conditions) | Some(conditions):
            return any(map(lacks_something, conditions))


def words_of(condition: Condition) -> Iterator[str]:
    """Every word in a condition."""
    match condition:
        case OneOf(words):
            yield from words
        case InARow(steps):
            for step in steps:
                yield from step.words
        case Lacks(inner):
            yield from words_of(inner)
        case Every(conditions) | Some(conditions):
            for each in conditions:
                yield from words_of(each)


def _of_words(leaf: Words, expand: Expand) -> Expression:
    is_exact = all(len(word) < MAX_WORD for word in leaf.words)
    steps = [OneOf((word[:MAX_WORD],)) for word in leaf.words]
    if not leaf.prefix:
        return Expression(_row(steps), is_exact)
    if is_unspaced(leaf.words[-1][0]):
        # As a prefix, one common character would mean listing every pair that begins with it.
        return Expression(_every([_row(steps[:-1]), OneOf((character_word(leaf.words[-1]),))]), is_exact=False)
    pattern = pattern_of(leaf, MAX_WORD)
    assert pattern is not None
    found = expand(pattern)
    if found is None:
        return Expression(_row(steps[:-1]), is_exact=False)
    return Expression(_row([*steps[:-1], OneOf(tuple(found))]), is_exact)


def _of_part(leaf: Part, expand: Expand) -> Expression:
    if (pattern := pattern_of(leaf, MAX_WORD)) is not None:
        found = expand(pattern)
        # With `CUT` among the words, the part may also be in the text that was cut off.
        return UNKNOWN if found is None else Expression(OneOf(tuple(found)), is_exact=CUT not in found)
    return Expression(_every([_of_piece(each, expand) for each in pieces_of(leaf.text, MAX_WORD)]), is_exact=False)


def _of_piece(piece: str | Pattern, expand: Expand) -> Condition:
    words = expand(piece) if isinstance(piece, Pattern) else (piece,)
    return ANYTHING if words is None else OneOf(tuple(words))


def _any(wanted: Facet) -> OneOf:
    return OneOf(tuple(facet(wanted.kind, value) for value in wanted.values))


def _row(steps: Sequence[OneOf]) -> Condition:
    if not steps:
        return ANYTHING
    return steps[0] if len(steps) == 1 else InARow(tuple(steps))


def _every(conditions: Sequence[Condition]) -> Condition:
    needed = tuple(each for each in conditions if each != ANYTHING)
    if not needed:
        return ANYTHING
    return needed[0] if len(needed) == 1 else Every(needed)
