"""A query tree and a scope as conditions on the words that a message has.

A condition may let through more than the tree does, never less: what it cannot say counts as true, and the messages are
then checked on their text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hermes.query import analyze
from hermes.query.analyze import is_unspaced, single
from hermes.query.tree import And, Leaf, Node, Not, Or, Part, Words
from hermes.state.mysql.entry import CUT, EVERYTHING, MAX_WORD, facet
from hermes.state.scope import Scope

MAX_NAMED, MAX_LACKED = 200, 32
"""How many values of a filter are looked up in the index; longer lists are checked on the rows."""
SHORTEST_FRAGMENT = 3

_fragment = re.compile("[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of these words; none: nothing."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InARow:
    """A word of each step, next to each other in this order."""

    steps: tuple[OneOf, ...]


@dataclass(frozen=True, slots=True)
class Lacks:
    """Not this."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class Every:
    """All of these."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """One of these."""

    conditions: tuple[Condition, ...]


Condition = OneOf | InARow | Lacks | Every | Some

ANYTHING = OneOf((EVERYTHING,))


@dataclass(frozen=True, slots=True)
class Expression:
    """What the index is asked, and whether that is all that was asked for."""

    condition: Condition
    is_exact: bool


UNKNOWN = Expression(ANYTHING, is_exact=False)


@dataclass(frozen=True, slots=True)
class Pattern:
    """Words that are to be looked up: those that begin with a text, or that contain it."""

    text: str
    is_beginning: bool = False


Expand = Callable[[Pattern], Sequence[str] | None]
"""The words of a pattern, and `CUT` if it may stand in what was cut off; None: so many that it is better not to."""


def pattern_of(leaf: Leaf) -> Pattern | None:
    """The words that a leaf stands for, if it stands for several."""
    match leaf:
        case Words(words, _, prefix) if prefix and not is_unspaced(words[-1][0]):
            return Pattern(words[-1][:MAX_WORD], is_beginning=True)
        case Part(text) if len(text) >= SHORTEST_FRAGMENT and _is_inside_a_word(text):
            return Pattern(text)
        case _:
            return None


def of_query(node: Node, expand: Expand) -> Expression:
    """A tree as an expression."""
    match node:
        case Words():
            return _of_words(node, expand)
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
    """A scope as an expression; times and hidden messages are not in it."""
    conditions: list[Condition] = []
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
            conditions.append(Lacks(_any(kind, values)))
    return Expression(_every(conditions), is_exact)


def both(one: Condition, other: Condition) -> Condition:
    """Two conditions at once."""
    return _every([one, other])


def without_order(condition: Condition) -> Condition:
    """A condition that lets through at least as much, and does not ask which word follows which."""
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
    """Whether it matters for a condition which word follows which."""
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
    """Whether a condition says what a message must not have."""
    match condition:
        case OneOf() | InARow():
            return False
        case Lacks():
            return True
        case Every(conditions) | Some(conditions):
            return any(map(lacks_something, conditions))


def words_of(condition: Condition) -> Iterator[str]:
    """Every word that a condition names."""
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
        # As a beginning, one common character would mean naming every pair that begins with it.
        return Expression(_every([_row(steps[:-1]), OneOf((single(leaf.words[-1]),))]), is_exact=False)
    pattern = pattern_of(leaf)
    assert pattern is not None
    found = expand(pattern)
    if found is None:
        return Expression(_row(steps[:-1]), is_exact=False)
    return Expression(_row([*steps[:-1], OneOf(tuple(found))]), is_exact)


def _of_part(leaf: Part, expand: Expand) -> Expression:
    if (pattern := pattern_of(leaf)) is not None:
        found = expand(pattern)
        return UNKNOWN if found is None else Expression(OneOf(tuple(found)), is_exact=CUT not in found)
    needed = _of_fragments(leaf.text, expand) if leaf.text.isascii() else _of_pairs(leaf.text)
    return Expression(_every(needed), is_exact=False)


def _is_inside_a_word(text: str) -> bool:
    """Whether a text, wherever it stands, is a part of one word."""
    return len(text) <= MAX_WORD and not is_unspaced(text[0]) and analyze.words(text) == [text]


def _of_fragments(text: str, expand: Expand) -> list[Condition]:
    """The words that a text is made of, the first of which may begin before it and the last go on after it."""
    needed: list[Condition] = []
    for found in _fragment.finditer(text):
        if found.start() > 0 and found.end() < len(text):
            needed.append(OneOf((found[0][:MAX_WORD],)))
        elif SHORTEST_FRAGMENT <= len(found[0]) <= MAX_WORD:
            words = expand(Pattern(found[0], is_beginning=found.start() > 0))
            if words is not None:
                needed.append(OneOf(tuple(words)))
    return needed


def _of_pairs(text: str) -> list[Condition]:
    """The neighbours in a text that belong to a script without spaces: those are words."""
    return [OneOf((one + other,)) for one, other in pairwise(text) if is_unspaced(one) and is_unspaced(other)]


def _any(kind: str, values: Sequence[str]) -> OneOf:
    return OneOf(tuple(facet(kind, value) for value in values))


def _row(steps: Sequence[OneOf]) -> Condition:
    if not steps:
        return ANYTHING
    return steps[0] if len(steps) == 1 else InARow(tuple(steps))


def _every(conditions: Sequence[Condition]) -> Condition:
    needed = tuple(each for each in conditions if each != ANYTHING)
    if not needed:
        return ANYTHING
    return needed[0] if len(needed) == 1 else Every(needed)
