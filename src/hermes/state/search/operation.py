"""The search operation, and two documented helpers of older versions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hermes.state.operations import Operations, row_limit, row_offset
from hermes.state.owner import OwnerName
from hermes.state.rows import optional_number, optional_text, require_flag
from hermes.state.search.results import SearchResults

if TYPE_CHECKING:
    from hermes.query.parse import Query
    from hermes.state.row_types import Moment, Sort
    from hermes.state.search.finder import SearchOptions
    from hermes.state.search.scope import Scope


ORDERS = ("relevance", "newest", "oldest")
"""The orders of results; the first is the default."""

MOST_BUDGET_S = 3_600.0


class Search(Operations):
    """Operations that search messages."""

    def search_messages(
        self,
        query: str,
        source_filter: Iterable[str] | None = None,
        exclude_sources: Iterable[str] | None = None,
        role_filter: Iterable[str] | None = None,
        limit: int | None = 20,
        offset: int = 0,
        sort: Sort | None = None,
        include_inactive: bool = False,
        *,
        owner: OwnerName = None,
        session_ids: Iterable[str] | None = None,
        exclude_session_ids: Iterable[str] | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        budget_s: float | None = None,
    ) -> SearchResults:
        """Return the messages that match a query, each with a snippet, its neighbours and its session.

        `sort` is relevance, `newest` or `oldest`. After `budget_s` seconds the search stops with `complete` False.
        """
        # Late imports: only programs that search load the query language.
        from hermes.query.parse import parse
        from hermes.state.filters import parse_moment, parse_names
        from hermes.state.search.finder import SearchOptions
        from hermes.state.search.scope import Scope

        scope = Scope(
            owner=self._asker_for(owner),
            sources=parse_names(source_filter, "source_filter"),
            not_sources=parse_names(exclude_sources, "exclude_sources") or (),
            roles=parse_names(role_filter, "role_filter") or None,
            sessions=parse_names(session_ids, "session_ids"),
            not_sessions=parse_names(exclude_session_ids, "exclude_session_ids") or (),
            since=parse_moment(since, "since"),
            until=parse_moment(until, "until"),
            include_inactive=bool(require_flag(include_inactive, "include_inactive")),
        )
        options = SearchOptions(
            limit=row_limit(limit),
            offset=row_offset(offset),
            order=_order(sort),
            budget_s=_budget(budget_s),
        )
        return self._find(parse(optional_text(query, "query") or ""), scope, options)

    def _find(self, query: Query, scope: Scope, options: SearchOptions) -> SearchResults:
        from hermes.state.search.finder import find

        return find(self._engine, query, scope, options)

    @staticmethod
    def _sanitize_fts5_query(query: str) -> str:
        """Return a query that FTS5 accepts; search itself parses queries and does not use it."""
        from hermes.query.sanitize import sanitize_fts5_query

        return sanitize_fts5_query(query)

    @staticmethod
    def _contains_cjk(text: str) -> bool:
        """Whether a text has a Chinese, Japanese or Korean character."""
        from hermes.query.sanitize import contains_cjk

        return contains_cjk(text)


def _order(sort: str | None) -> str:
    """Return relevance, newest or oldest; other words are ignored, as in older versions."""
    cleaned = (optional_text(sort, "sort") or "").strip().lower()
    return cleaned if cleaned in ORDERS else ORDERS[0]


def _budget(budget_s: float | None) -> float | None:
    """Return the time limit of a search, capped for the timers of servers."""
    number = optional_number(budget_s, "budget_s")
    return None if number is None else min(number, MOST_BUDGET_S)
