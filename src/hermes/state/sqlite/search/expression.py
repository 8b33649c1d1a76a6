"""A query tree and a scope as FTS5 expressions.

An expression may match more than the tree does, never less: what FTS5 cannot express (a part of a word in the word
index, or words in the trigram index) counts as true, and the text of each message is checked afterwards.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from hermes.query.analyze import GAP, character_word, is_unspaced, unspaced_runs
from hermes.query.tree import And, Node, Not, Or, Part, Words
from hermes.state.search.facets import Facet, facets_of
from hermes.state.search.scope import Scope
from hermes.state.sqlite.search import trigrams

EVERYTHING = f'"{GAP * 2}"'
"""A word that every message has."""

_unsafe = re.compile("[^a-z0-9]")


@dataclass(frozen=True, slots=True)
class Expression:
    """An FTS5 expression; None matches everything."""

    text: str | None
    is_exact: bool


@lru_cache(maxsize=1_024)
def facet_word(kind: str, value: str) -> str:
    """The word in the index for messages of a role (r), source (s), owner (o) or session (i)."""
    return GAP + kind + _unsafe.sub(lambda found: f"{GAP}{ord(found[0]):x}{GAP}", value)


def word_expression(node: Node) -> Expression:
    """Return a tree as an expression for the word index."""
    match node:
        case Words(words, _, prefix):
            if prefix and is_unspaced(words[-1][0]):
                # As a prefix, one common character would mean reading every pair that begins with it.
                return Expression(f'("{" ".join(words[:-1])}" AND "{character_word(words[-1])}")', is_exact=False)
            return Expression(f'"{" ".join(words)}"{" *" * prefix}', is_exact=not node.is_literal)
        case Part(text):
            return Expression(" AND ".join(map(_run_of_characters, unspaced_runs(text))) or None, is_exact=False)
        case Not(child):
            inner = word_expression(child)
            if inner.text is None or not inner.is_exact:
                return Expression(None, is_exact=False)
            return Expression(f"({EVERYTHING} NOT {inner.text})", is_exact=True)
        case And(children):
            return _and_expression(children)
        case Or(children):
            alternatives = [word_expression(child) for child in children]
            is_exact = all(each.is_exact for each in alternatives)
            texts = [each.text for each in alternatives if each.text is not None]
            if len(texts) < len(alternatives):
                return Expression(None, is_exact=False)
            return Expression(f"({' OR '.join(texts)})", is_exact=is_exact)


def _run_of_characters(characters: str) -> str:
    """An expression for adjacent characters of a script without spaces."""
    return f'"{" ".join(map("".join, pairwise(characters))) or character_word(characters)}"'


def _and_expression(children: tuple[Node, ...]) -> Expression:
    wanted = [word_expression(child) for child in children if not isinstance(child, Not)]
    unwanted = [word_expression(child.child) for child in children if isinstance(child, Not)]
    texts = [each.text for each in wanted if each.text is not None]
    lacked = [each.text for each in unwanted if each.text is not None and each.is_exact]
    is_exact = all(each.is_exact for each in (*wanted, *unwanted))
    if not texts and not lacked:
        return Expression(None, is_exact=is_exact)
    return Expression(_and_not(" AND ".join(texts) or EVERYTHING, lacked), is_exact)


def _and_not(expression: str, lacked: list[str]) -> str:
    return f"(({expression}) NOT ({' OR '.join(lacked)}))" if lacked else f"({expression})"


def scope_expression(scope: Scope) -> Expression:
    """Return a scope as an expression for the word index; times and hidden messages are not in it."""
    facets = facets_of(scope)
    wanted, lacked = [*map(_any_facet, facets.wanted)], [*map(_any_facet, facets.excluded)]
    if not wanted and not lacked:
        return Expression(None, facets.is_exact)
    return Expression(_and_not(" AND ".join(wanted) or EVERYTHING, lacked), facets.is_exact)


def _any_facet(wanted: Facet) -> str:
    return "(" + " OR ".join(f'"{facet_word(wanted.kind, value)}"' for value in wanted.values) + ")"


def combine(query: Expression, scope: Expression) -> str | None:
    """Join both expressions with AND."""
    return " AND ".join(each.text for each in (query, scope) if each.text is not None) or None


def trigram_expression(node: Node) -> str | None:
    """Return a tree as an expression for the trigram index; None if it has no part that is long enough."""
    match node:
        case Part(text):
            parts = trigrams.trigrams_to_query(text)
            return f"({' AND '.join(map(_quote, parts))})" if parts else None
        case And(children):
            needed = [each for child in children if (each := trigram_expression(child)) is not None]
            return f"({' AND '.join(needed)})" if needed else None
        case Or(children):
            choices = [each for child in children if (each := trigram_expression(child)) is not None]
            return f"({' OR '.join(choices)})" if len(choices) == len(children) else None
        case _:
            return None


def _quote(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
