"""Finding messages: every one that matches, the best or the newest first."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, cast

from hermes.query import analyze
from hermes.query.match import Document, matches
from hermes.query.parse import Query
from hermes.query.rank import Candidate, ranked
from hermes.query.snippet import snippet
from hermes.query.tree import Leaf, Node, Part, Words, has_choice, leaves, replaced, wanted
from hermes.state.engine import CATCH_UP, Dialect, Engine, Index, Reading
from hermes.state.operations import chunks, placeholders
from hermes.state.results import Path, SearchResults
from hermes.state.rows import Row, decode_content, decode_text, flatten_text
from hermes.state.scope import Scope
from hermes.state.searchtext import search_text
from hermes.state.waits import Waits
from hermes.state.walk import BACKLOG, MAX_STALE, SOME_ZONES, Hit, Walk

if TYPE_CHECKING:
    from hermes.state.rowtypes import SearchHit

BUDGET_S, PART_BUDGET_S = 0.09, 0.14
"""How long a search may take; one for parts of words reads most of what their trigrams find."""
MOST_WAITING = 3
"""So many times its budget a search may wait for its turn on a busy machine or server before that counts too."""
WINDOW = 100
"""How many matches are compared with each other, the newest ones; after them older ones follow by age."""
FEW = 1_000
"""As many matches are sorted by time without further thought."""
SOME, DENSE = 100, 5_000
"""So many matches within so many ids are no few: then the first by time are found faster than all could be read."""
CONTEXT_CHARACTERS = 200
SOME_HITS = 100
"""Of how many hits the neighbours are looked up together."""
LONG_TEXT = 65_536
"""Longer texts are not checked once more before they are given out; that would take longer than finding them."""


@dataclass(frozen=True, slots=True)
class Page:
    """Which of the matches are wanted, in which order, and how long it may take."""

    limit: int
    offset: int
    order: str
    budget_s: float | None


def find(engine: Engine, asked: Query, scope: Scope, page: Page) -> SearchResults:
    """The matches of a query as they are given out."""
    if asked.tree is None or page.limit == 0 or scope.is_empty:
        return SearchResults(repairs=asked.repairs)
    unwell: list[int] = []
    results = engine.read(lambda tx: _search(tx, engine.index, asked, scope, page, unwell))
    if unwell:
        engine.heal_index(unwell[-1])
    return results


def _search(tx: Reading, index: Index, asked: Query, scope: Scope, page: Page, unwell: list[int]) -> SearchResults:
    assert asked.tree is not None

    budget_s = page.budget_s
    if budget_s is None:
        budget_s = PART_BUDGET_S if any(isinstance(leaf, Part) for leaf in leaves(asked.tree)) else BUDGET_S
    deadline, waits = time.monotonic() + budget_s, Waits(budget_s * MOST_WAITING)

    def walk(tree: Node) -> Walk:
        return Walk(tx, index, tree, scope, deadline, waits)

    tree, repairs = asked.tree, asked.repairs
    current = walk(tree)
    ids = _ordered(current, page)
    first = next(ids, None)
    if current.is_empty and current.is_complete and (looser := _looser(tree, lambda leaf: _is_absent(walk(leaf)))):
        looser_tree, absent = looser
        inside = walk(looser_tree)
        inside_ids = _ordered(inside, page)
        first = next(inside_ids, None)
        if first is not None or not inside.is_complete:
            tree, current, ids = looser_tree, inside, inside_ids
            repairs = (*repairs, f"no message here has the word {', '.join(absent)}: looked inside of words")
    is_inside = any(isinstance(leaf, Part) for leaf in leaves(tree))
    path: Path = "substring" if is_inside else "words"
    hits = _shown(tx, tree, scope, chain(() if first is None else (first,), ids), page.limit)
    is_degraded = current.is_damaged or current.is_behind
    if is_degraded or current.backlog > BACKLOG:
        unwell.append(current.coverage.epoch if current.is_damaged else CATCH_UP)
    return SearchResults(
        cast("list[SearchHit]", hits),
        path="scan" if is_degraded else path,
        degraded=is_degraded,
        complete=current.is_complete and len(current.coverage.stale) < MAX_STALE,
        repairs=repairs,
        hidden=current.hidden,
    )


def _is_absent(walk: Walk) -> bool:
    return next(walk.hits(1), None) is None and walk.is_complete


def _looser(tree: Node, is_absent: Callable[[Leaf], bool]) -> tuple[Node, list[str]] | None:
    """The tree that looks inside of words for those that no message has; None if that would not help."""
    instead: dict[Leaf, Leaf] = {}
    for leaf in wanted(tree):
        is_word = len(leaf.text) >= 3 and " " not in leaf.text and not all(map(analyze.is_unspaced, leaf.text))
        if isinstance(leaf, Words) and is_word and is_absent(leaf):
            instead[leaf] = Part(leaf.text)
    return (replaced(tree, instead), [leaf.text for leaf in instead]) if instead else None


def _ordered(walk: Walk, page: Page) -> Iterator[int]:
    """The ids of the matches in the order that was asked for, beginning with the page."""
    ids = _by_relevance(walk) if page.order == "relevance" else _by_time(walk, newest_first=page.order == "newest")
    return islice(ids, page.offset, None)


def _by_relevance(walk: Walk) -> Iterator[int]:
    hits = walk.hits(WINDOW)
    window = [Candidate(hit.message_id, hit.role, hit.head) for hit in islice(hits, WINDOW)]
    sought = list(wanted(walk.query))
    walk.wants_heads = False
    yield from ranked(window, sought, is_choice=has_choice(walk.query))
    for hit in hits:
        yield hit.message_id


def _by_time(walk: Walk, *, newest_first: bool) -> Iterator[int]:
    """By the moment of the message, then by id.

    Few matches are simply sorted. Many are taken zone by zone: once no zone is left that could hold an earlier one, the
    first of those seen so far is the next.
    """
    walk.wants_heads = False
    deadline, walk.deadline = walk.deadline, walk.deadline - walk.time_left() * 2 / 3
    few = list(islice(walk.hits(SOME), SOME))
    is_dense = len(few) == SOME and few[0].message_id - few[-1].message_id < DENSE and not walk.is_damaged
    walk.hidden.clear()
    hits = walk.hits(FEW)
    few = [] if is_dense else list(islice(hits, FEW + 1))
    is_known = walk.is_complete and not is_dense
    walk.deadline, walk.is_complete = max(deadline, walk.deadline), True
    sign = -1 if newest_first else 1
    if walk.is_damaged:
        few += hits
    if (len(few) <= FEW and is_known) or walk.is_damaged:
        yield from (
            hit.message_id for hit in sorted(few, key=lambda hit: (sign * hit.timestamp, sign * hit.message_id))
        )
        return
    walk.hidden.clear()
    seen: list[tuple[float, int]] = []

    def see(hits: Iterable[Hit]) -> None:
        for hit in hits:
            heapq.heappush(seen, (sign * hit.timestamp, sign * hit.message_id))

    see(walk.loose_hits())
    for zone in walk.zones(SOME_ZONES, newest_first=newest_first):
        border = sign * (zone.newest if newest_first else zone.oldest)
        while seen and seen[0][0] < border:
            yield sign * heapq.heappop(seen)[1]
        see(walk.known_hits(FEW, zone.low, zone.high))
        if not walk.is_complete:
            # What lies behind this zone is not next: there may be others before it.
            last = (sign * zone.oldest, -zone.low) if newest_first else (zone.newest, zone.high)
            seen = [each for each in seen if each <= last]
            break
    yield from (sign * message_id for _, message_id in sorted(seen))


def _shown(tx: Reading, tree: Node, scope: Scope, ids: Iterator[int], limit: int) -> list[Row]:
    """The first `limit` messages as they are given out. What the index claims is checked on the text once more."""
    hits: list[Row] = []
    sought = list(wanted(tree))
    while len(hits) < limit and (some := list(islice(ids, limit - len(hits)))):
        rows = _fetch(tx, some)
        for message_id in some:
            row = rows.get(message_id)
            if row is None or not scope.admits(row["role"], row["session_id"], row["source"], row.pop("owner")):
                continue
            text = row.pop("text")
            if len(text) > LONG_TEXT or matches(tree, Document(text)):
                hits.append({**row, "snippet": snippet(text, sought)})
    _add_context(tx, hits, scope)
    return hits


def _fetch(tx: Reading, ids: list[int]) -> dict[int, Row]:
    rows: dict[int, Row] = {}
    for some in chunks(ids):
        listed, values = placeholders("id", some)
        for row in tx.rows(
            f"""SELECT m.id, m.session_id, m.role, m.timestamp, m.tool_name, m.content, m.tool_calls,
                       s.source, s.model, s.started_at, s.title, s.owner
                FROM messages m JOIN sessions s ON s.id = m.session_id WHERE m.id IN ({listed})""",
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
            }
    return rows


def _add_context(tx: Reading, hits: list[Row], scope: Scope) -> None:
    """Give every hit its neighbours in the session, shortened, in one query for all."""
    visible = "" if scope.include_inactive else "AND {0}.active = 1"
    around: dict[int, list[int]] = {}
    for group in chunks(hits, SOME_HITS):
        if tx.dialect.can_follow:
            sql, values = _followed(group, visible)
        else:
            sql, values = _named_one_by_one(group, visible, tx.dialect)
        for message_id, before, after in tx.rows(sql, **values):
            around[message_id] = [each for each in (before, message_id, after) if each is not None]
    heads: dict[int, Row] = {}
    for some in chunks(list(dict.fromkeys(each for ids in around.values() for each in ids))):
        listed, values = placeholders("id", some)
        for message_id, role, content in tx.rows(
            # Structured content must be whole to be read; it begins with a control character.
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


def _followed(hits: Sequence[Row], visible: str) -> tuple[str, dict[str, Any]]:
    """A query for the neighbours of hits."""
    listed, values = placeholders("id", [hit["id"] for hit in hits])
    sql = f"""SELECT m.id,
                     (SELECT MAX(b.id) FROM messages b
                      WHERE b.session_id = m.session_id AND b.id < m.id {visible.format("b")}),
                     (SELECT MIN(a.id) FROM messages a
                      WHERE a.session_id = m.session_id AND a.id > m.id {visible.format("a")})
              FROM messages m WHERE m.id IN ({listed})"""
    return sql, values


def _named_one_by_one(hits: Sequence[Row], visible: str, dialect: Dialect) -> tuple[str, dict[str, Any]]:
    """The same, as a query in which every place is named."""
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
