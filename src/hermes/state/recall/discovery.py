"""Discovery: find the past conversations that match a query, each by its best message."""

from __future__ import annotations

import time
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from hermes.query import analyze
from hermes.query.parse import Query, parse
from hermes.query.question import Question, is_sentence, parse_question
from hermes.query.tree import And, wanted_leaves
from hermes.state.messages.transcript import cut_around, extract_terms, format_message, format_moment, format_transcript
from hermes.state.messages.windows import Anchor, anchored_views
from hermes.state.operations import read_for
from hermes.state.owner_view import OwnerView
from hermes.state.provider import SessionDBProvider
from hermes.state.recall.arguments import MAX_QUERY, SearchArguments
from hermes.state.recall.ranking import count_matches, rank_sessions
from hermes.state.recall.scoring import RankedSession
from hermes.state.recall.summaries import SummaryRequest, summarize_all
from hermes.state.rows import AnyRow, Row
from hermes.state.search.finder import add_snippet, load_hits
from hermes.state.search.results import SearchResults
from hermes.state.search.scope import Scope
from hermes.state.sessions.lineage.families import Family, load_families

if TYPE_CHECKING:
    from hermes.state.engine import Reading
    from hermes.state.owner import Asker
    from hermes.state.row_types import AnchoredView, SearchHit

HIDDEN_SOURCES = ("subagent", "tool")
"""The sources of sessions that agents and tools create for themselves."""

NOT_ALL_WORDS = "no message has all of these words; the conversations shown have the most telling of them"

PAGE = 50
MAX_HIDDEN = 50
"""How many hidden matches are counted at most for each reason."""
BUDGET_S = 0.25
"""How long one search may take; there is at most one for each shown conversation and one for each reason."""
WINDOW, BOOKEND = 5, 3
SHOWN_ROLES = ("user", "assistant")
BOOKEND_CHARACTERS = 1_000


@dataclass(frozen=True, slots=True)
class Match:
    """A conversation that matches."""

    hit: SearchHit
    """Its best message, as the search returns it."""
    family: Family


def discover(store: SessionDBProvider | OwnerView, arguments: SearchArguments) -> Row:
    """Return the conversations that match, and how many other matches are not shown."""
    deadline = time.monotonic() + arguments.timeout_s
    current = _searchable(current_lineage(store, arguments))
    found = _matches(store, arguments, current)
    sought = extract_terms(arguments.query[:MAX_QUERY])
    results = _results(store, arguments, found.matches[: arguments.limit], sought)
    hidden = _hidden(store, arguments, current, found)
    if arguments.summarize is not None:
        _add_summaries(store, arguments, results, sought, deadline)
    response = {
        "success": True,
        "mode": "discover",
        "query": arguments.query,
        "results": results,
        "count": len(results),
        "sessions_searched": found.seen,
        "search": _description(arguments, found.search),
        "hidden": hidden,
    }
    return response if results else response | {"message": _no_match_message(hidden)}


def current_lineage(store: SessionDBProvider | OwnerView, arguments: SearchArguments) -> dict[str, str]:
    """Return the sessions of the current conversation, of any owner, with their sources."""
    if arguments.current is None:
        return {}
    family = load_families(store, [arguments.current]).get(arguments.current)
    return {} if family is None else family.members


def session_meta(session: AnyRow) -> Row:
    """Return the description of a session for the model."""
    return {
        "when": format_moment(session["started_at"]),
        "source": session["source"],
        "model": session["model"] or "unknown",
        "title": session["title"],
    }


@dataclass(frozen=True, slots=True)
class _Discovered:
    """The best conversations."""

    matches: list[Match]
    search: SearchResults
    """The results of the first search."""
    seen: int
    """How many conversations match at least."""
    can_hide: bool = True
    """False if it is known that no other message has all words."""


def _matches(store: SessionDBProvider | OwnerView, arguments: SearchArguments, current: set[str]) -> _Discovered:
    """Return the best conversations.

    Each search excludes what was already found, so that a session with a thousand matches takes only one place.
    """
    seen = set(current)
    query = parse(arguments.query[:MAX_QUERY])
    is_single = len(arguments.query.split()) == 1 and not is_sentence(arguments.query[:MAX_QUERY])
    if query.is_plain and not is_single and arguments.sort is None:
        ranked = _ranked_matches(store, arguments, query, seen)
        if ranked is not None:
            return ranked
    search = hits = _page(store, arguments, seen)
    has_runs = any(map(analyze.is_unspaced, arguments.query[:MAX_QUERY]))
    may_fall_back = query.is_plain or is_sentence(arguments.query[:MAX_QUERY])
    if not hits and hits.complete and may_fall_back and not query.has_operators and (has_runs or not is_single):
        ranked = _ranked_matches(store, arguments, query, seen)
        if ranked is not None:
            return ranked
    matches = new = _new_matches(store, arguments, hits, seen)
    while new and len(hits) == PAGE and len(matches) < arguments.limit:
        hits = _page(store, arguments, seen)
        if _is_substring_search(hits, search):
            break
        search.complete &= hits.complete
        search.degraded |= hits.degraded
        new = _new_matches(store, arguments, hits, seen)
        matches = matches + new
    return _Discovered(matches, search, len(matches))


def _ranked_matches(
    store: SessionDBProvider | OwnerView, arguments: SearchArguments, query: Query, seen: set[str]
) -> _Discovered | None:
    """The conversations that best answer a sentence; None if nothing has its words."""
    question = parse_question(arguments.query[:MAX_QUERY], time.time())
    scope = Scope(
        owner=arguments.owner,
        not_sources=HIDDEN_SOURCES,
        roles=arguments.roles,
        not_sessions=tuple(sorted(seen)),
    )
    ranking = rank_sessions(store._engine, question, scope, BUDGET_S)
    if not ranking.sessions:
        return None
    # Inside of one read a server is sent fewer statements.
    chosen, hits = store._engine.read(lambda _: _choose(store, arguments, question, ranking.sessions, seen))
    matches = [Match(hits[session.session_id], family) for session, family in chosen if session.session_id in hits]
    if arguments.sort is not None:
        matches.sort(key=lambda match: match.hit["timestamp"], reverse=arguments.sort == "newest")
    repairs = () if ranking.has_all_terms or len(question.terms) == 1 else (NOT_ALL_WORDS,)
    search = SearchResults(
        path="scan" if ranking.is_degraded else "coverage" if repairs else "words",
        degraded=ranking.is_degraded,
        complete=ranking.is_complete,
        repairs=(*query.repairs, *repairs),
        hidden={"rewound": ranking.undone},
    )
    return _Discovered(matches, search, len(chosen), can_hide=ranking.can_have_all)


def _choose(
    store: SessionDBProvider | OwnerView,
    arguments: SearchArguments,
    question: Question,
    sessions: Sequence[RankedSession],
    seen: Set[str],
) -> tuple[list[tuple[RankedSession, Family]], dict[str, SearchHit]]:
    """Return the best session of each lineage, and the messages by which the first of them are shown."""
    families = load_families(store, [each.session_id for each in sessions], arguments.owner)
    chosen: list[tuple[RankedSession, Family]] = []
    taken = set(seen)
    for session in sessions:
        family = families.get(session.session_id)  # None: deleted a moment ago
        if family is not None and session.session_id not in taken:
            chosen.append((session, family))
            taken |= _searchable(family.members)
    return chosen, _load_anchors(store, arguments, question, [each for each, _ in chosen[: arguments.limit]])


def _load_anchors(
    store: SessionDBProvider | OwnerView,
    arguments: SearchArguments,
    question: Question,
    sessions: Sequence[RankedSession],
) -> dict[str, SearchHit]:
    """The message by which each conversation is shown: one that answers rather than one that asks."""
    sought = [leaf for term in question.terms for leaf in wanted_leaves(term.node)]
    ids = [each for session in sessions for each in (*session.places, session.reply) if each is not None]
    firsts = {
        session.session_id: message["id"]
        for session in sessions
        if not session.places
        for message in store.get_messages(session.session_id, owner=arguments.owner, limit=1)
    }
    rows = read_for(store, arguments.owner, lambda tx, _: load_hits(tx, [*ids, *firsts.values()]))
    found: dict[str, SearchHit] = {}
    for session in sessions:
        anchor = _choose_anchor(session, rows, firsts.get(session.session_id))
        if anchor is not None:
            found[session.session_id] = cast("SearchHit", add_snippet(rows[anchor], sought))
    return found


def _choose_anchor(session: RankedSession, rows: dict[int, Row], first: int | None) -> int | None:
    """The best message that does not only ask, else the reply to the best one."""
    places = [each for each in session.places if each in rows]
    statements = [each for each in places if not _is_question(rows[each]["text"])]
    if statements:
        return statements[0]
    if places and session.reply in rows:
        return session.reply
    return next(iter(places), first if first in rows else None)


def _is_question(text: str) -> bool:
    return text.rstrip().endswith(("?", "？"))


def _page(store: SessionDBProvider | OwnerView, arguments: SearchArguments, seen: set[str]) -> SearchResults:
    return _search(
        store, arguments, PAGE, sort=arguments.sort, exclude_sources=HIDDEN_SOURCES, exclude_session_ids=seen
    )


def _new_matches(
    store: SessionDBProvider | OwnerView, arguments: SearchArguments, hits: SearchResults, seen: set[str]
) -> list[Match]:
    """Return the first hit of each lineage, and add the sessions of the lineage to `seen`."""
    matches: list[Match] = []
    found = load_families(store, [hit["session_id"] for hit in hits], arguments.owner)
    for hit in hits:
        family = found.get(hit["session_id"])  # None: deleted a moment ago
        if hit["session_id"] not in seen and family is not None:
            matches.append(Match(hit, family))
            seen |= _searchable(family.members)
    return matches


def _searchable(members: dict[str, str]) -> set[str]:
    """Return the sessions that a search could find: agents create many more, and long lists make a search slow."""
    return {member for member, source in members.items() if source not in HIDDEN_SOURCES}


def _search(
    store: SessionDBProvider | OwnerView, arguments: SearchArguments, limit: int, **options: Any
) -> SearchResults:
    return store.search_messages(
        arguments.query[:MAX_QUERY],
        role_filter=arguments.roles,
        limit=limit,
        owner=arguments.owner,
        budget_s=BUDGET_S,
        **options,
    )


def _is_substring_search(hits: SearchResults, than: SearchResults) -> bool:
    """Whether a search fell back to parts of words, because no more messages have the words themselves."""
    return len(hits.repairs) > len(than.repairs)


def _results(
    store: SessionDBProvider | OwnerView, arguments: SearchArguments, matches: Sequence[Match], sought: list[str]
) -> list[Row]:
    """Return what is shown of each conversation."""
    anchors = [Anchor(match.hit["session_id"], match.hit["id"]) for match in matches]

    def read_views(tx: Reading, asker: Asker) -> list[AnchoredView]:
        return anchored_views(tx, anchors, WINDOW, BOOKEND, SHOWN_ROLES, asker)

    views = read_for(store, arguments.owner, read_views) if anchors else []
    return [_result(match, view, sought) for match, view in zip(matches, views, strict=True)]


def _result(match: Match, view: AnchoredView, sought: list[str]) -> Row:
    hit, root = match.hit, match.family.root
    result = {
        "session_id": hit["session_id"],
        **session_meta({**hit, "started_at": hit["session_started"]}),
        "matched_role": hit["role"],
        "match_message_id": hit["id"],
        "snippet": hit["snippet"],
        "bookend_start": [format_message(message, size=BOOKEND_CHARACTERS) for message in view["bookend_start"]],
        "messages": [format_message(message, anchor_id=hit["id"], sought=sought) for message in view["window"]],
        "bookend_end": [format_message(message, size=BOOKEND_CHARACTERS) for message in view["bookend_end"]],
        "messages_before": view["messages_before"],
        "messages_after": view["messages_after"],
    }
    if root["id"] == hit["session_id"]:
        return result
    return result | {"parent_session_id": root["id"], "parent_meta": session_meta(root)}


def _hidden(
    store: SessionDBProvider | OwnerView, arguments: SearchArguments, current: set[str], found: _Discovered
) -> dict[str, int]:
    """Return how many matching messages are not shown, by reason; each count is at most `MAX_HIDDEN`."""
    undone = min(MAX_HIDDEN, found.search.hidden.get("rewound", 0))
    if not found.can_hide:
        return {"rewound": undone} if undone else {}
    query = parse(arguments.query[:MAX_QUERY])
    question = parse_question(query.typed, time.time())
    nodes = tuple(term.node for term in question.terms)
    node = query.tree if not query.is_plain else And(nodes) if nodes else None
    everywhere = Scope(owner=arguments.owner, roles=arguments.roles)

    def count(scope: Scope, limit: int = MAX_HIDDEN) -> int:
        return 0 if node is None else count_matches(store._engine, node, scope, limit, BUDGET_S)

    counts = {"current_session": count(replace(everywhere, sessions=tuple(sorted(current)))) if current else 0}
    if count(replace(everywhere, sources=HIDDEN_SOURCES), 1):
        for source in HIDDEN_SOURCES:
            counts[source] = count(replace(everywhere, sources=(source,)))
    counts["rewound"] = undone
    return {reason: number for reason, number in counts.items() if number}


def _description(arguments: SearchArguments, search: SearchResults) -> Row:
    repairs = list(search.repairs)
    if len(arguments.query) > MAX_QUERY:
        repairs.append(f"only the first {MAX_QUERY} characters are used")
    return {"path": search.path, "degraded": search.degraded, "complete": search.complete, "repairs": repairs}


def _no_match_message(hidden: dict[str, int]) -> str:
    if not hidden:
        return "No past session matches. Try other or fewer words."
    reasons = ", ".join(f"{reason} ({number})" for reason, number in hidden.items())
    return f"No past session matches, except messages that are not shown: {reasons}."


def _add_summaries(
    store: SessionDBProvider | OwnerView,
    arguments: SearchArguments,
    results: list[Row],
    sought: list[str],
    deadline: float,
) -> None:
    """Summarize each conversation; one that fails keeps its messages and gets the error."""
    assert arguments.summarize is not None
    requests = [_request(store, arguments, result, sought) for result in results]
    for result, summary in zip(results, summarize_all(arguments.summarize, requests, deadline), strict=True):
        result["summary"] = summary.text
        if summary.error is not None:
            result["summary_error"] = summary.error


def _request(
    store: SessionDBProvider | OwnerView, arguments: SearchArguments, result: Row, sought: list[str]
) -> SummaryRequest:
    """Return a request with the whole conversation of a session: what it continues, and what continues it."""
    tip = store.get_compression_tip(result["session_id"], arguments.owner)
    conversation = store.get_messages_as_conversation(tip, include_ancestors=True, owner=arguments.owner)
    metadata = {name: result[name] for name in ("session_id", "when", "source", "model", "title")}
    return SummaryRequest(cut_around(format_transcript(conversation, sought), sought), arguments.query, metadata)
