"""Ranks conversations by how well they answer a question.

A conversation scores twice. Its best place: a message and its neighbours, in which many of the question's rarer words
stand together. And the whole of it: how many of its messages have each word, compared with other conversations. Both
are BM25, over the words that a message has, not over how often it repeats them. A time that the question names lifts
the conversations of that time; a title with its words lifts too.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from hermes.query.match import Document, matches
from hermes.query.question import Question
from hermes.query.tree import And, Node
from hermes.state.engine import CATCH_UP, Engine, Reading
from hermes.state.operations import owner_condition, placeholders
from hermes.state.recall.scoring import TIME_LIFT, RankedSession, Scorer
from hermes.state.recall.store_size import StoreSize
from hermes.state.search.context import MAX_UNINDEXED, SearchContext
from hermes.state.search.evidence import Evidence, EvidenceReader, message_weight, rarity
from hermes.state.search.postings import MAX_POSTINGS
from hermes.state.search.scope import Scope
from hermes.state.search.walk import Walk
from hermes.state.waits import Waits

MAX_SESSIONS = 24
"""So many of the most promising sessions are read in full."""
RECENT_TITLES = 300
"""The titles of so many sessions, the last active ones, are compared with the question."""
_MOST_WAITING = 3
_GLANCE_S = 0.004


@dataclass(frozen=True, slots=True)
class Ranking:
    """The sessions that may answer a question, the best first."""

    sessions: list[RankedSession]
    has_all_terms: bool = False
    """Whether some message has every word of the question."""
    is_complete: bool = True
    is_degraded: bool = False
    can_have_all: bool = True
    """False if no message of the owner has every word, those of agents and tools included."""
    undone: int = 0
    """How many undone messages have every word of the question, as far as they were seen."""


def rank_sessions(engine: Engine, question: Question, scope: Scope, budget_s: float) -> Ranking:
    """Return the sessions of a scope that have words of a question, the best first."""
    if not question.terms or scope.is_empty:
        return Ranking([])

    def read(tx: Reading) -> tuple[Ranking, int | None]:
        waits = Waits(budget_s * _MOST_WAITING)
        context = SearchContext(tx, engine.index, scope, time.monotonic() + budget_s, waits)
        return _rank(context, question)

    ranking, healing = engine.read(read)
    if healing is not None:
        engine.heal_index(healing)
    return ranking


def count_matches(engine: Engine, query: Node, scope: Scope, limit: int, budget_s: float) -> int:
    """Return how many messages of a scope match, but not more than `limit`."""
    if scope.is_empty:
        return 0

    def read(tx: Reading) -> int:
        deadline = time.monotonic() + budget_s
        context = SearchContext(tx, engine.index, scope, deadline, Waits(budget_s * _MOST_WAITING))
        return sum(1 for _ in islice(Walk(context, query, deadline).hits(limit), limit))

    return engine.read(read)


def _rank(context: SearchContext, question: Question) -> tuple[Ranking, int | None]:
    reader = EvidenceReader(context, question.terms)
    evidence = reader.read()
    store = StoreSize.read(context)
    weights = [rarity(store.messages, each) for each in evidence.frequencies]
    titled = _titled_sessions(context, question)
    promising = _most_promising(evidence, weights, titled, question)
    reader.complete_sessions(promising)
    scorer = Scorer(context, question, evidence, weights, store, titled)
    sessions = scorer.score(promising)
    is_behind = context.is_index_behind
    healing = None
    if evidence.is_damaged:
        healing = context.coverage.epoch
    elif is_behind or context.unindexed > MAX_UNINDEXED:
        healing = CATCH_UP
    has_all_terms = any(len(each) == len(question.terms) for each in evidence.terms.values())
    if not has_all_terms and evidence.can_have_all and max(evidence.frequencies) > MAX_POSTINGS:
        has_all_terms = _some_message_has_all(context, question)
    undone = sum(len(each) == len(question.terms) for each in evidence.undone.values())
    is_degraded = evidence.is_damaged or is_behind
    can_have_all = evidence.can_have_all
    return Ranking(sessions, has_all_terms, evidence.is_complete, is_degraded, can_have_all, undone), healing


def _some_message_has_all(context: SearchContext, question: Question) -> bool:
    """Whether a message has every term, as far as that shows in a short time."""
    nodes = tuple(term.node for term in question.terms)
    walk = Walk(context, And(nodes) if len(nodes) > 1 else nodes[0], time.monotonic() + _GLANCE_S)
    return next(walk.hits(1), None) is not None


def _titled_sessions(context: SearchContext, question: Question) -> dict[str, set[int]]:
    """The terms that the titles of the last active sessions have, by session."""
    scope = context.scope
    if scope.roles is not None and not {"user", "assistant"} & set(scope.roles):
        return {}
    listed, values = placeholders("source", list(scope.not_sources))
    not_sources = f"AND source NOT IN ({listed})" if scope.not_sources else ""
    rows = context.tx.rows(
        f"""SELECT id, title, source, owner FROM sessions
            WHERE archived = 0 AND title IS NOT NULL {owner_condition(scope.owner)} {not_sources}
            ORDER BY last_active DESC, started_at DESC, id DESC LIMIT :limit""",
        whose=scope.owner.stored,
        limit=RECENT_TITLES,
        **values,
    )
    role = scope.roles[0] if scope.roles else ""
    found: dict[str, set[int]] = {}
    for session_id, title, source, owner in rows:
        document = Document(title if isinstance(title, str) else "")
        terms = {at for at, term in enumerate(question.terms) if matches(term.node, document)}
        if terms and scope.admits(role, session_id, source, owner):
            found[session_id] = terms
    return found


def _most_promising(
    evidence: Evidence, weights: Sequence[float], titled: Mapping[str, set[int]], question: Question
) -> list[str]:
    """The sessions whose best message and whose messages together have the most of the question."""
    best: dict[str, float] = defaultdict(float)
    covered: dict[str, set[int]] = defaultdict(set)
    newest: dict[str, float] = defaultdict(float)
    for message_id, terms in evidence.terms.items():
        facts = evidence.messages[message_id]
        session_id = facts.session_id
        score = sum([weights[at] for at in terms]) * message_weight(facts)
        if score > best[session_id]:
            best[session_id] = score
        covered[session_id] |= terms
        if facts.timestamp > newest[session_id]:
            newest[session_id] = facts.timestamp
    for session_id, terms in titled.items():
        covered[session_id] |= terms
    scores = {each: best[each] + sum(weights[at] for at in terms) for each, terms in covered.items()}
    if question.hint is not None:
        scores = {each: score * (1 + TIME_LIFT * question.hint.fit(newest[each])) for each, score in scores.items()}
    return sorted(scores, key=lambda each: (-scores[each], -newest[each], each))[:MAX_SESSIONS]
