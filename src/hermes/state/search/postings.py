"""Postings: the newest messages that have each term of a question, read from the index."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from hermes.query.match import Document, matches
from hermes.query.tree import Node
from hermes.state.engine import OutOfTime
from hermes.state.indexing.indexed_text import search_text
from hermes.state.operations import chunks
from hermes.state.search.context import SearchContext
from hermes.state.search.scope import Scope
from hermes.state.search.term_lists import ListIndex
from hermes.state.search.walk import MAX_ID, Walk

MAX_POSTINGS = 512
"""A term with more messages than this is common."""


@dataclass(frozen=True, slots=True)
class Posting:
    """The messages that have a term, as far as they were followed, newest first."""

    ids: tuple[int, ...]
    frequency: float
    """How many messages of the scope have the term, counted or estimated."""
    is_whole: bool


class PostingReader:
    """Reads the postings of one search."""

    def __init__(self, context: SearchContext, *, is_narrow: bool) -> None:
        self._context = context
        self.is_narrow = is_narrow
        """Whether the index is asked for the whole scope, because most messages are not in it."""
        self.is_complete = True
        """Whether there was time for all that was asked for."""

    def follow(self, nodes: Sequence[Node]) -> list[Posting]:
        """Return the newest messages with each term; how many more there are is estimated from their distance."""
        return [self._posting(ids) for ids in self.ids_of_each(nodes, MAX_POSTINGS)]

    def ids_of_each(
        self, nodes: Sequence[Node], limit: int, scope_sessions: tuple[str, ...] | None = None
    ) -> list[list[int]]:
        """Return the newest messages with each of several terms, together if the index can do that."""
        context, index = self._context, self._context.index
        if not isinstance(index, ListIndex) or (self.is_narrow and scope_sessions is None):
            return [self.ids(node, limit, scope_sessions) for node in nodes]
        deadline = context.deadline + context.waits.total_s
        scope = Scope(owner=context.scope.owner, sessions=scope_sessions)
        found: list[list[int]] = [[] for _ in nodes]
        try:
            lists = index.term_lists(context.tx, nodes, scope, -MAX_ID, context.coverage.upto, limit, deadline=deadline)
            wanted: Collection[int] = range(len(nodes))
            while wanted:
                some = lists.read(wanted)
                for at, each in some.items():
                    found[at] += each.ids if each.is_certain else self.filter_matching(each.ids, nodes[at])
                wanted = [at for at in some if len(found[at]) < limit]
        except OutOfTime:
            self.is_complete = False
        return [ids[:limit] for ids in found]

    def ids(self, node: Node, limit: int, scope_sessions: tuple[str, ...] | None = None) -> list[int]:
        """Return the newest messages with a term, of some sessions or of the whole scope."""
        context = self._context
        found: list[int] = []
        upto, deadline = context.coverage.upto, context.deadline + context.waits.total_s
        # The index is asked for whose messages they are. Roles and sources, which most messages share, are faster read
        # from the rows, unless they leave out most of the messages.
        scope = Scope(owner=context.scope.owner, sessions=scope_sessions)
        if self.is_narrow and scope_sessions is None:
            candidates = Walk(context, node, context.deadline).candidates(limit, -MAX_ID, upto)
        else:
            candidates = context.index.candidates(context.tx, node, scope, -MAX_ID, upto, limit, deadline=deadline)
        try:
            for some in candidates:
                found += some.ids if some.is_certain else self.filter_matching(some.ids, node)
                if len(found) >= limit:
                    break
        except OutOfTime:
            self.is_complete = False
        return found[:limit]

    def filter_matching(self, ids: Iterable[int], node: Node) -> list[int]:
        """Return those messages whose text matches."""
        found: list[int] = []
        for some in chunks(list(ids)):
            chosen, values = self._context.tx.dialect.is_among("id", some)
            rows = self._context.tx.rows(
                f"""SELECT id, role, content, tool_name, tool_calls FROM messages
                    WHERE {chosen} ORDER BY id DESC""",
                **values,
            )
            found += [row[0] for row in rows if matches(node, Document(search_text(*row[1:])))]
        return found

    def _posting(self, ids: Sequence[int]) -> Posting:
        if len(ids) < MAX_POSTINGS:
            return Posting(tuple(ids), float(len(ids)), is_whole=True)
        upto = self._context.coverage.upto
        estimate = len(ids) / max(1, upto - ids[-1] + 1) * upto
        return Posting(tuple(ids), max(MAX_POSTINGS + 1.0, estimate), is_whole=False)
