"""Find all messages that match, the best or the newest first."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, cast

from hermes.query import analyze
from hermes.query.match import Document, matches
from hermes.query.parse import Query
from hermes.query.question import Question, is_sentence, parse_question
from hermes.query.snippet import snippet
from hermes.query.tree import Leaf, Node, Or, Part, Words, all_leaves, replace_leaves, wanted_leaves
from hermes.state.engine import CATCH_UP, Dialect, Engine, Index, Reading
from hermes.state.indexing.indexed_text import search_text
from hermes.state.operations import chunks, placeholders
from hermes.state.rows import Row, decode_content, decode_text, flatten_text
from hermes.state.search.context import MAX_UNINDEXED, SearchContext
from hermes.state.search.evidence import EvidenceReader, rank_by_coverage
from hermes.state.search.ordering import OrderedMatches
from hermes.state.search.results import SearchPath, SearchResults
from hermes.state.search.scope import Scope
from hermes.state.search.walk import Walk
from hermes.state.waits import Waits

if TYPE_CHECKING:
    from hermes.state.row_types import SearchHit

BUDGET_S, PART_BUDGET_S = 0.09, 0.14
"""How long a search may take; a search for parts of words must check most candidates of the trigram index."""
MOST_WAITING = 3
"""A search may wait this many times its budget on a busy machine or server before waiting counts too."""
CONTEXT_CHARACTERS = 200
LITERAL = "read as text, because a message has it to the letter: a minus, and, or and not are no operators here"
SOME_HITS = 100
"""For how many hits one query reads the neighbours."""
LONG_TEXT = 65_536
"""Longer texts are not checked again before they are returned; that would take longer than finding them."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Which matches to return, in which order, and the time limit."""

    limit: int
    offset: int
    order: str
    budget_s: float | None


def find(engine: Engine, query: Query, scope: Scope, options: SearchOptions) -> SearchResults:
    """Return the matches of a query, and heal the index if it is damaged or behind."""
    if query.tree is None or options.limit == 0 or scope.is_empty:
        return SearchResults(repairs=query.repairs)
    results, healing = engine.read(lambda tx: _search(tx, engine.index, query, scope, options))
    if healing is not None:
        engine.heal_index(healing)
    return results


def _search(
    tx: Reading, index: Index, query: Query, scope: Scope, options: SearchOptions
) -> tuple[SearchResults, int | None]:
    """Return the results and the epoch for `heal_index`; None if the index is fine."""
    assert query.tree is not None
    tree, repairs = query.tree, query.repairs
    context = _context(tx, index, tree, scope, options.budget_s)
    ordered = OrderedMatches(context, tree, options.order)
    if query.literal is not None and _occurs(context, query.literal):
        tree, repairs = query.literal, (LITERAL,)
        ordered = OrderedMatches(context, tree, options.order)
    ids: Iterator[int] = islice(ordered.ids(), options.offset, None)
    first = next(ids, None)
    found_nothing = ordered.progress.is_empty and ordered.progress.is_complete
    if found_nothing and (absent := _absent_words(tree, context)):
        substrings = replace_leaves(tree, {leaf: Part(leaf.text) for leaf in absent})
        inside = OrderedMatches(context, substrings, options.order)
        inside_ids: Iterator[int] = islice(inside.ids(), options.offset, None)
        first = next(inside_ids, None)
        if first is not None or not inside.progress.is_complete:
            tree, ordered, ids = substrings, inside, inside_ids
            names = ", ".join(dict.fromkeys(leaf.text for leaf in absent))
            repairs = (*repairs, f"no message here has the word {names}; searched inside words")
    progress = ordered.progress
    path: SearchPath = "substring" if _has_part(tree) else "words"
    is_all = True
    if progress.is_empty and progress.is_complete and not query.has_operators and is_sentence(query.typed):
        covering, is_all = _covering_ids(context, query, options)
        if covering:
            tree, path = Or(tuple(term.node for term in _question(query).terms)), "coverage"
            first, ids = None, iter(covering[options.offset :])
            repairs = (*repairs, "no message has all of these words; those shown have the most telling of them")
    hits = _fetch_hits(tx, tree, scope, chain(() if first is None else (first,), ids), options.limit)
    is_degraded = progress.is_damaged or context.is_index_behind
    results = SearchResults(
        cast("list[SearchHit]", hits),
        path="scan" if is_degraded else path,
        degraded=is_degraded,
        complete=progress.is_complete and is_all and not context.has_too_many_stale,
        repairs=repairs,
        hidden=progress.hidden,
    )
    if progress.is_damaged:
        return results, context.coverage.epoch
    return results, CATCH_UP if is_degraded or context.unindexed > MAX_UNINDEXED else None


def _question(query: Query) -> Question:
    return parse_question(query.typed, time.time())


def _covering_ids(context: SearchContext, query: Query, options: SearchOptions) -> tuple[list[int], bool]:
    """Return the messages that have some of the words in their order, and whether there was time for all of them."""
    terms = _question(query).terms
    if len(terms) < 2:
        return [], True
    evidence = EvidenceReader(context, terms).read()
    found = rank_by_coverage(evidence)
    if options.order != "relevance":
        sign = -1 if options.order == "newest" else 1
        found.sort(key=lambda each: (sign * each.timestamp, sign * each.message_id))
    return [each.message_id for each in found], evidence.is_complete


def _context(tx: Reading, index: Index, tree: Node, scope: Scope, budget_s: float | None) -> SearchContext:
    if budget_s is None:
        budget_s = PART_BUDGET_S if _has_part(tree) else BUDGET_S
    return SearchContext(tx, index, scope, time.monotonic() + budget_s, Waits(budget_s * MOST_WAITING))


def _has_part(tree: Node) -> bool:
    return any(isinstance(leaf, Part) for leaf in all_leaves(tree))


def _absent_words(tree: Node, context: SearchContext) -> list[Leaf]:
    """Return the words that no message has but that may be inside longer words."""
    found: list[Leaf] = []
    for leaf in wanted_leaves(tree):
        is_word = len(leaf.text) >= 3 and " " not in leaf.text and not all(map(analyze.is_unspaced, leaf.text))
        if isinstance(leaf, Words) and is_word and leaf not in found and _is_absent(leaf, context):
            found.append(leaf)
    return found


def _occurs(context: SearchContext, tree: Node) -> bool:
    return next(Walk(context, tree, context.deadline).hits(1), None) is not None


def _is_absent(leaf: Leaf, context: SearchContext) -> bool:
    walk = Walk(context, leaf, context.deadline)
    return next(walk.hits(1), None) is None and walk.progress.is_complete


def _fetch_hits(tx: Reading, tree: Node, scope: Scope, ids: Iterator[int], limit: int) -> list[Row]:
    """Return the first `limit` messages; each candidate of the index is checked again on its text."""
    hits: list[Row] = []
    sought = list(wanted_leaves(tree))
    while len(hits) < limit and (some := list(islice(ids, limit - len(hits)))):
        rows = _fetch_rows(tx, some)
        for message_id in some:
            row = rows.get(message_id)
            if row is None or not scope.admits(row["role"], row["session_id"], row["source"], row.pop("owner")):
                continue
            text, shown = row.pop("text"), row.pop("shown_text")
            if len(text) > LONG_TEXT or matches(tree, Document(text)):
                hits.append({**row, "snippet": snippet(text if shown is None else shown, sought)})
    _add_context(tx, hits, scope)
    return hits


def load_hits(tx: Reading, ids: Sequence[int]) -> dict[int, Row]:
    """Return messages by id, without snippet and neighbours; `text` is their whole text."""
    return _fetch_rows(tx, list(ids))


def add_snippet(hit: Row, sought: Sequence[Leaf]) -> Row:
    """Return a message of `load_hits` as a search shows it."""
    shown = hit["shown_text"]
    rest = {name: value for name, value in hit.items() if name != "shown_text"}
    return rest | {"snippet": snippet(hit["text"] if shown is None else shown, list(sought))}


def _fetch_rows(tx: Reading, ids: list[int]) -> dict[int, Row]:
    rows: dict[int, Row] = {}
    for some in chunks(ids):
        chosen, values = tx.dialect.is_among("m.id", some)
        for row in tx.rows(
            f"""SELECT m.id, m.session_id, m.role, m.timestamp, m.tool_name, m.content, m.tool_calls,
                       s.source, s.model, s.started_at, s.title, s.owner
                FROM messages m JOIN sessions s ON s.id = m.session_id WHERE {chosen}""",
            **values,
        ):
            message_id, session_id, role, at, tool_name, content, tool_calls, source, model, started, title, owner = row
            rows[message_id] = {
                "id": message_id,
                "session_id": session_id,
                "role": role,
                "timestamp": at,
                "tool_name": decode_text(tool_name),
                "source": source,
                "model": decode_text(model),
                "session_started": started,
                "title": title,
                "owner": owner,
                "text": search_text(role, content, tool_name, tool_calls),
                # In what is shown, ids look like in the message.
                "shown_text": search_text(role, content, tool_name, tool_calls, write_id=str) if tool_calls else None,
            }
    return rows


def _add_context(tx: Reading, hits: list[Row], scope: Scope) -> None:
    """Add to every hit its neighbours in the session, shortened, with one query for all."""
    visible = "" if scope.include_inactive else "AND {0}.active = 1"
    around: dict[int, list[int]] = {}
    for group in chunks(hits, SOME_HITS):
        if tx.dialect.has_indexed_correlation:
            sql, values = _neighbours_sql(group, visible)
        else:
            sql, values = _neighbours_union_sql(group, visible, tx.dialect)
        for message_id, before, after in tx.rows(sql, **values):
            around[message_id] = [each for each in (before, message_id, after) if each is not None]
    heads: dict[int, Row] = {}
    for some in chunks(list(dict.fromkeys(each for ids in around.values() for each in ids))):
        listed, values = placeholders("id", some)
        for message_id, role, content in tx.rows(
            # Structured content, which starts with a control character, must be complete to be parsed.
            f"""SELECT id, role, CASE WHEN content < ' ' THEN content ELSE substr(content, 1, {CONTEXT_CHARACTERS}) END
                FROM messages WHERE id IN ({listed})""",
            **values,
        ):
            heads[message_id] = {
                "role": role,
                "content": flatten_text(decode_content(content))[:CONTEXT_CHARACTERS],
            }
    for hit in hits:
        hit["context"] = [dict(heads[each]) for each in around[hit["id"]]]


def _neighbours_sql(hits: Sequence[Row], visible: str) -> tuple[str, dict[str, Any]]:
    """Return a query for the neighbours of hits."""
    listed, values = placeholders("id", [hit["id"] for hit in hits])
    sql = f"""SELECT m.id,
                     (SELECT MAX(b.id) FROM messages b
                      WHERE b.session_id = m.session_id AND b.id < m.id {visible.format("b")}),
                     (SELECT MIN(a.id) FROM messages a
                      WHERE a.session_id = m.session_id AND a.id > m.id {visible.format("a")})
              FROM messages m WHERE m.id IN ({listed})"""
    return sql, values


def _neighbours_union_sql(hits: Sequence[Row], visible: str, dialect: Dialect) -> tuple[str, dict[str, Any]]:
    """Return the same query without correlated subqueries: every id is a parameter."""
    _, values = placeholders("id", [hit["id"] for hit in hits])
    _, sessions = placeholders("session", [hit["session_id"] for hit in hits])
    sql = " UNION ALL ".join(
        f"""SELECT :id{i},
                   (SELECT b.id FROM {dialect.by_key("messages", "b")}
                    WHERE b.session_id = :session{i} AND b.id < :id{i} {visible.format("b")}
                    ORDER BY b.id DESC LIMIT 1),
                   (SELECT a.id FROM {dialect.by_key("messages", "a")}
                    WHERE a.session_id = :session{i} AND a.id > :id{i} {visible.format("a")}
                    ORDER BY a.id LIMIT 1)"""
        for i in range(len(hits))
    )
    return sql, {**values, **sessions}
