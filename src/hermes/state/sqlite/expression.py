"""A query tree and a scope as FTS5 expressions.

An expression may let through more than the tree does, never less: what it cannot say (a part of a word among words, or
words among trigrams) counts as true, and the messages are then checked on their text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from hermes.query.analyze import GAP, is_unspaced, single, unspaced
from hermes.query.tree import And, Node, Not, Or, Part, Words
from hermes.state.facets import Facet, facets_of
from hermes.state.scope import Scope
from hermes.state.sqlite import trigrams

EVERYTHING = f'"{GAP * 2}"'
"""A word that every message has."""

_unsafe = re.compile("[^a-z0-9]")


@dataclass(frozen=True, slots=True)
class Expression:
    """What FTS5 is asked; None: everything."""

    text: str | None
    is_exact: bool


def facet(kind: str, value: str) -> str:
    """The word by which messages of a role (r), source (s), owner (o) or session (i) are found."""
    return GAP + kind + _unsafe.sub(lambda found: f"{GAP}{ord(found[0]):x}{GAP}", value)


def of_words(node: Node) -> Expression:
    """A tree as an expression over words."""
    match node:
        case Words(words, _, prefix):
            if prefix and is_unspaced(words[-1][0]):
                # As a prefix, one common character would mean reading every pair that begins with it.
                return Expression(f'("{" ".join(words[:-1])}" AND "{single(words[-1])}")', is_exact=False)
            return Expression(f'"{" ".join(words)}"{" *" * prefix}', is_exact=True)
        case Part(text):
            return Expression(" AND ".join(map(_run, unspaced(text))) or None, is_exact=False)
        case Not(child):
            inner = of_words(child)
            if inner.text is None or not inner.is_exact:
                return Expression(None, is_exact=False)
            return Expression(f"({EVERYTHING} NOT {inner.text})", is_exact=True)
        case And(children):
            return _all(children)
        case Or(children):
            alternatives = [of_words(child) for child in children]
            is_exact = all(each.is_exact for each in alternatives)
            texts = [each.text for each in alternatives if each.text is not None]
            if len(texts) < len(alternatives):
                return Expression(None, is_exact=False)
            return Expression(f"({' OR '.join(texts)})", is_exact=is_exact)


def _run(characters: str) -> str:
    """Characters that stand side by side in a script without spaces."""
    return f'"{" ".join(map("".join, pairwise(characters))) or single(characters)}"'


def _all(children: tuple[Node, ...]) -> Expression:
    wanted = [of_words(child) for child in children if not isinstance(child, Not)]
    unwanted = [of_words(child.child) for child in children if isinstance(child, Not)]
    texts = [each.text for each in wanted if each.text is not None]
    lacked = [each.text for each in unwanted if each.text is not None and each.is_exact]
    is_exact = all(each.is_exact for each in (*wanted, *unwanted))
    if not texts and not lacked:
        return Expression(None, is_exact=is_exact)
    return Expression(_without(" AND ".join(texts) or EVERYTHING, lacked), is_exact)


def _without(expression: str, lacked: list[str]) -> str:
    return f"(({expression}) NOT ({' OR '.join(lacked)}))" if lacked else f"({expression})"


def of_scope(scope: Scope) -> Expression:
    """A scope as an expression over words; times and hidden messages are not in it."""
    asked = facets_of(scope)
    wanted, lacked = [*map(_any, asked.wanted)], [*map(_any, asked.lacked)]
    if not wanted and not lacked:
        return Expression(None, asked.is_exact)
    return Expression(_without(" AND ".join(wanted) or EVERYTHING, lacked), asked.is_exact)


def _any(asked: Facet) -> str:
    return "(" + " OR ".join(f'"{facet(asked.kind, value)}"' for value in asked.values) + ")"


def combined(query: Expression, scope: Expression) -> str | None:
    """Both at once."""
    return " AND ".join(each.text for each in (query, scope) if each.text is not None) or None


def of_parts(node: Node) -> str | None:
    """A tree as an expression over trigrams; None: it asks for no part that is long enough."""
    match node:
        case Part(text):
            asked = trigrams.asked_of(text)
            return f"({' AND '.join(map(_quoted, asked))})" if asked else None
        case And(children):
            needed = [each for child in children if (each := of_parts(child)) is not None]
            return f"({' AND '.join(needed)})" if needed else None
        case Or(children):
            choices = [each for child in children if (each := of_parts(child)) is not None]
            return f"({' OR '.join(choices)})" if len(choices) == len(children) else None
        case _:
            return None


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
