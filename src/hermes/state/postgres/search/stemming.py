"""Other forms of English words: a search for a word also finds its forms, after the messages with the word itself.

The forms are words of messages, so a search for them is like any other, with the same check of the text. The server
only decides which words have the same stem.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from hermes.query.parse import Query
from hermes.query.tree import And, Node, Not, Or, Part, Words
from hermes.state.engine import Engine, Reading
from hermes.state.search.finder import SearchOptions, find
from hermes.state.search.results import SearchResults
from hermes.state.search.scope import Scope

MOST_FORMS = 24
"""The most forms of one word in a search."""
STEM = "(ts_lexize('english_stem', {}))[1]"

_FORMS = f"""SELECT word FROM known_words WHERE {STEM.format("word")} = {STEM.format("CAST(:word AS text)")}
             ORDER BY length(word), word LIMIT :limit"""

Forms = Callable[[str], Sequence[str]]


def find_forms(engine: Engine, query: Query, scope: Scope, options: SearchOptions) -> SearchResults:
    """Return the matches of a query, then those of other forms of its words; mixed if ordered by time."""
    tree = query.tree
    wider = None if tree is None else engine.read(lambda tx: widen(tree, partial(_forms, tx)))
    if tree is None or wider is None or wider == tree:
        return find(engine, query, scope, options)
    if options.order != "relevance":
        return find(engine, Query(wider, query.repairs), scope, options)
    exact = find(engine, query, scope, options)
    if _is_looser(exact, query):
        # No message has the word itself, so its forms are closer than words that only contain it.
        found = find(engine, Query(wider, query.repairs), scope, options)
        return exact if _is_looser(found, query) else found
    if len(exact) >= options.limit:
        return exact
    others = Query(And((wider, Not(tree))), query.repairs)
    found = find(engine, others, scope, _rest(engine, query, scope, options, len(exact)))
    return exact if _is_looser(found, query) else _join(exact, found)


def widen(node: Node, forms: Forms) -> Node:
    """Return a tree in which a single word stands for all its forms; excluded words, phrases and parts stay."""
    match node:
        case Words((word,), _, False):
            others = [form for form in forms(word) if form != word]
            return Or((node, *(Words((form,), form) for form in others))) if others else node
        case And(children) | Or(children):
            return type(node)(tuple(widen(child, forms) for child in children))
        case Words() | Part() | Not():
            return node


def _forms(tx: Reading, word: str) -> Sequence[str]:
    return [row[0] for row in tx.rows(_FORMS, word=word, limit=MOST_FORMS)]


def _rest(engine: Engine, query: Query, scope: Scope, options: SearchOptions, found: int) -> SearchOptions:
    """The part of a page that the exact matches leave."""
    before = options.offset + found
    if not found and options.offset:
        before = len(find(engine, query, scope, replace(options, limit=options.offset, offset=0)))
    return replace(options, limit=options.limit - found, offset=max(0, options.offset - before))


def _is_looser(results: SearchResults, query: Query) -> bool:
    """Whether a search had to look inside of words."""
    return len(results.repairs) > len(query.repairs)


def _join(exact: SearchResults, others: SearchResults) -> SearchResults:
    known = {hit["id"] for hit in exact}
    return SearchResults(
        [*exact, *(hit for hit in others if hit["id"] not in known)],
        path=exact.path,
        degraded=exact.degraded or others.degraded,
        complete=exact.complete and others.complete,
        repairs=exact.repairs,
        hidden=exact.hidden,
    )
