"""The order of the matches: the best first, or by time.

Both orders yield ids one by one and read only the matches that the caller needs.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import islice
from math import log

from hermes.query.rank import Candidate, rank
from hermes.query.tree import And, Leaf, Node, Or, Part, Words, has_alternatives, wanted_leaves
from hermes.state.search.context import SearchContext
from hermes.state.search.walk import Hit, Progress, Walk

WINDOW = 100
"""How many of the newest matches, and of those with each of the rarer words, are compared with each other."""
MAX_SEARCHES = 8
"""How many words of a query are searched one by one at most."""
SAMPLE, SAMPLE_SPAN = 100, 5_000
"""If this many newest matches are within this range of ids, there are too many to read all."""
SORTED_AT_ONCE = 1_000
"""Up to this many matches are all read and sorted."""
_QUICK_SHARE = 1 / 3
"""The share of the time for an attempt to read all matches."""
_RANGES_AT_ONCE = 64

Place = tuple[float, int]
"""The time and the id of a match, both negative if the newest come first: the smallest is always the next."""


class OrderedMatches:
    """The ids of the messages that match a query, in one order."""

    def __init__(self, context: SearchContext, query: Node, order: str) -> None:
        self._context, self._query, self._order = context, query, order
        self._sign = -1 if order == "newest" else 1
        self._walk = Walk(context, query, context.deadline)

    @property
    def progress(self) -> Progress:
        """The progress of the search, as far as ids were read."""
        return self._walk.progress

    def ids(self) -> Iterator[int]:
        """Yield the ids, first to last. Call this once."""
        return self._by_relevance() if self._order == "relevance" else self._by_time()

    def _by_relevance(self) -> Iterator[int]:
        """The best first, among the newest matches and those older ones that have the query's rarer words.

        A word that few messages have is followed to its end, however old they are; a word that most have decides
        nothing. Behind the compared matches the others follow, newest first.
        """
        window = {hit.message_id: hit for hit in islice(self._walk.hits(WINDOW, with_heads=True), WINDOW)}
        lowest = min(window, default=0)
        rarities: dict[str, float] = {}
        if len(window) == WINDOW:
            self._add_telling_matches(window, rarities)
        hits = sorted(window.values(), key=lambda hit: -hit.message_id)
        candidates = [Candidate(hit.message_id, hit.role, hit.head, hit.is_machinery) for hit in hits]
        wanted, is_choice = list(wanted_leaves(self._query)), has_alternatives(self._query)
        yield from rank(candidates, wanted, is_choice=is_choice, rarities=rarities)
        if len(window) >= WINDOW:
            for hit in self._walk.hits(WINDOW, high=lowest - 1):
                if hit.message_id not in window:
                    yield hit.message_id

    def _add_telling_matches(self, window: dict[int, Hit], rarities: dict[str, float]) -> None:
        """Add older matches that are likely to be better: with a rare word, or with the words side by side."""
        upto = max(window)
        for query, leaf in _telling_queries(self._query):
            walk = Walk(self._context, query, self._context.earlier(self._context.deadline, _QUICK_SHARE))
            hits = list(islice(walk.hits(WINDOW, with_heads=True), WINDOW))
            window.update((hit.message_id, hit) for hit in hits)
            if leaf is not None and walk.progress.is_complete:
                span = 1 if len(hits) < WINDOW else max(1, upto - hits[-1].message_id + 1) / max(1, upto)
                rarities[leaf.text] = log(1 + upto / (1 + len(hits) / span))

    def _by_time(self) -> Iterator[int]:
        """Yield ids by time, then by id.

        The index returns matches by id, and ids follow time except in imported history. So the first match by time may
        have any id. There are two ways to find it:

        1. Read all matches and sort them. This is the fastest way if there are few, so a third of the time is spent on
           trying it. The attempt ends early if the first hundred matches are so close together that there must be many.
        2. Go through the time ranges of the index: each has the oldest and newest time of a range of ids. Ranges come
           in the order of their newest (or oldest) time. A match is the next one as soon as no later range can hold an
           earlier one.
        """
        few = self._read_few()
        places = self._range_by_range() if few is None else sorted(map(self._place, few))
        for _, signed_id in places:
            yield self._sign * signed_id

    def _read_few(self) -> Sequence[Hit] | None:
        """Return all matches, or None if they are many or take too long; if the index is damaged, all readable ones."""
        deadline = self._context.earlier(self._context.deadline, _QUICK_SHARE)
        walk = self._walk = Walk(self._context, self._query, deadline)
        hits = list(islice(walk.hits(SAMPLE), SAMPLE))
        if len(hits) == SAMPLE:
            if _are_dense(hits) and not walk.progress.is_damaged:
                return None
            others = walk.hits(SORTED_AT_ONCE, high=hits[-1].message_id - 1)
            hits += islice(others, SORTED_AT_ONCE + 1 - SAMPLE)
            if walk.progress.is_damaged:
                hits += others
        progress = walk.progress
        is_all = progress.is_complete and len(hits) <= SORTED_AT_ONCE
        return hits if is_all or progress.is_damaged else None

    def _range_by_range(self) -> Iterator[Place]:
        """Yield the matches of each time range, each as soon as no later range can hold an earlier one."""
        newest_first = self._order == "newest"
        walk = self._walk = Walk(self._context, self._query, self._context.deadline)
        seen = [self._place(hit) for hit in walk.unindexed_hits()]
        heapq.heapify(seen)
        for time_range in self._context.time_ranges(_RANGES_AT_ONCE, newest_first=newest_first):
            border = self._sign * (time_range.newest if newest_first else time_range.oldest)
            while seen and seen[0][0] < border:
                yield heapq.heappop(seen)
            for hit in walk.indexed_hits(SORTED_AT_ONCE, time_range.low, time_range.high):
                heapq.heappush(seen, self._place(hit))
            if not walk.progress.is_complete:
                # Earlier matches may be missing after the end of this range.
                end = (-time_range.oldest, -time_range.low) if newest_first else (time_range.newest, time_range.high)
                seen = [each for each in seen if each <= end]
                break
        yield from sorted(seen)

    def _place(self, hit: Hit) -> Place:
        return self._sign * hit.timestamp, self._sign * hit.message_id


def _telling_queries(query: Node) -> Iterator[tuple[Node, Leaf | None]]:
    """Narrower queries whose matches are likely to be the better ones, with the word that each of them adds."""
    if isinstance(query, Or):
        for child in query.children[:MAX_SEARCHES]:
            yield child, child if isinstance(child, Words | Part) else None
    elif isinstance(query, And):
        words = [child.words for child in query.children if isinstance(child, Words) and not child.prefix]
        if len(words) == len(query.children):
            phrase = tuple(word for some in words for word in some)
            yield Words(phrase, " ".join(phrase)), None
        for choice in [child for child in query.children if isinstance(child, Or)][:1]:
            for child in choice.children[:MAX_SEARCHES]:
                yield And((query, child)), child if isinstance(child, Words | Part) else None


def _are_dense(hits: Sequence[Hit]) -> bool:
    return hits[0].message_id - hits[-1].message_id < SAMPLE_SPAN
