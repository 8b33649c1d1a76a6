"""Evidence: which messages of a scope have which terms of a question.

The rarest terms come first. A term that few messages have is followed to its end, so all of its messages are known,
however old they are. A common term says little; its messages are looked up only in the conversations that rarer terms
have found, or where common terms occur together. So the work does not grow with the store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import log
from typing import Any, NamedTuple

from hermes.query.match import Document, matches
from hermes.query.question import Term
from hermes.query.tree import And
from hermes.state.engine import IndexDamaged
from hermes.state.indexing.indexed_text import search_text
from hermes.state.operations import chunks
from hermes.state.search.context import SCAN_S, SearchContext
from hermes.state.search.copies import MessagePlace
from hermes.state.search.postings import MAX_POSTINGS, Posting, PostingReader
from hermes.state.search.walk import CHAIN, MAX_ID, is_search_machinery

MAX_MESSAGES = 800
"""How many messages are looked at for the rarer terms."""
_PAIRED = 3
"""So many of the rarest common terms are looked up in pairs."""
_MAX_TOGETHER = 128
_MAX_CHECKED, _MAX_EXCLUDED = 8, 32
"""So few messages that may have every term are read to note those that have; so few, to know that none has."""
_MAX_COMPLETED = 2
"""So many of the rarest common terms are looked up in the promising sessions."""
_ROLE_WEIGHT = {"user": 1.0, "assistant": 1.0}
_OTHER_ROLE, _MACHINERY = 0.6, 0.1
_DENSE = 10
_SAMPLE, _MOSTLY = 16, 0.25
"""How many messages with each common term show whether most of them are in the scope."""
_ROWS_AT_ONCE, _ROWS_PER_STEP = 128, 16
_HEAD_OF_CALLS = 200


class MessageFacts(NamedTuple):
    """What ranking knows about a message besides its terms."""

    session_id: str
    role: str
    timestamp: float
    size: int
    """The length of its text in bytes."""
    is_machinery: bool
    """Whether it is only the call or the result of an earlier search, which repeats what was looked for."""


@dataclass
class Evidence:
    """The messages that have terms of a question."""

    frequencies: list[float]
    """For each term, how many messages of the scope have it."""
    messages: dict[int, MessageFacts] = field(default_factory=dict)
    terms: dict[int, set[int]] = field(default_factory=dict)
    """The numbers of the terms that each message has."""
    undone: dict[int, set[int]] = field(default_factory=dict)
    """The same for messages that are not shown, because they were undone."""
    can_have_all: bool = True
    """False if no message of the owner has every term, whatever else the scope says."""
    is_complete: bool = True
    is_damaged: bool = False


class CoveringMessage(NamedTuple):
    """A message that has some of the terms."""

    message_id: int
    timestamp: float


def rank_by_coverage(evidence: Evidence) -> list[CoveringMessage]:
    """Return the messages with terms, best first: many and rare terms, in a message that a person or a model wrote."""
    total = max([*evidence.frequencies, len(evidence.messages), 1.0]) * 2
    weights = [rarity(total, each) for each in evidence.frequencies]

    def score(message_id: int) -> tuple[float, int]:
        facts = evidence.messages[message_id]
        return sum(weights[at] for at in evidence.terms[message_id]) * message_weight(facts), message_id

    ordered = sorted(evidence.terms, key=score, reverse=True)
    return [CoveringMessage(each, evidence.messages[each].timestamp) for each in ordered]


def rarity(total: float, frequency: float) -> float:
    """Return the weight of a term that `frequency` of `total` messages or sessions have."""
    frequency = min(frequency, total)
    return log(1 + (total - frequency + 0.5) / (frequency + 0.5))


def message_weight(facts: MessageFacts) -> float:
    """Return how much the terms of a message count: what tools print counts less than what people and models write."""
    return _MACHINERY if facts.is_machinery else _ROLE_WEIGHT.get(facts.role, _OTHER_ROLE)


class EvidenceReader:
    """Reads the evidence for the terms of one question."""

    def __init__(self, context: SearchContext, terms: Sequence[Term]) -> None:
        self._context, self._terms = context, terms
        self._evidence = Evidence([0.0] * len(terms))
        self._known: dict[int, MessageFacts | None] = {}
        scope = context.scope
        self._is_limited = (scope.sources, scope.sessions, scope.since, scope.until) != (None, None, None, None)
        self._postings = PostingReader(context, is_narrow=self._is_limited)

    def read(self) -> Evidence:
        """Return the messages that have the rarer terms, or several of the common ones."""
        evidence = self._evidence
        try:
            postings = self._follow_terms()
        except IndexDamaged:
            evidence.is_damaged, evidence.is_complete = True, False
            self._read_rows(-MAX_ID, self._context.deadline + SCAN_S)
            self._count_terms()
            return evidence
        chosen: dict[int, None] = {}
        order = sorted(range(len(postings)), key=lambda at: postings[at].frequency)
        for at in order:
            ids = postings[at].ids
            if postings[at].is_whole and (not chosen or len(chosen) + len(ids) <= MAX_MESSAGES):
                chosen.update(dict.fromkeys(ids))
        self._add_common(chosen, postings, [at for at in order if not postings[at].is_whole])
        if not chosen:
            for at in order[:_PAIRED]:
                chosen.update(dict.fromkeys(postings[at].ids[:_MAX_TOGETHER]))
        self._look_up(chosen)
        for at, posting in enumerate(postings):
            self._note(at, posting.ids)
            is_counted = posting.is_whole and self._known.keys() >= set(posting.ids)
            evidence.frequencies[at] = self._count_admitted(posting) if is_counted else posting.frequency
        self._find_all_terms(postings)
        if self._context.unindexed > 0:
            self._read_rows(self._context.coverage.upto + 1, self._context.deadline)
        self._read_stale()
        evidence.is_complete &= self._postings.is_complete
        # Where the index was asked for the whole scope, or time ran out, nothing is known about other messages.
        is_unknown = self._is_limited or not evidence.is_complete or self._context.has_too_many_stale
        evidence.can_have_all |= is_unknown
        return evidence

    def complete_sessions(self, session_ids: Sequence[str]) -> None:
        """Look up the common terms, which were not followed to their end, in some sessions."""
        evidence = self._evidence
        if evidence.is_damaged or not session_ids:
            return
        common = [at for at, each in enumerate(evidence.frequencies) if each > MAX_POSTINGS]
        completed = sorted(common, key=lambda at: evidence.frequencies[at])[:_MAX_COMPLETED]
        nodes = [self._terms[at].node for at in completed]
        lists = self._postings.ids_of_each(nodes, MAX_POSTINGS, scope_sessions=tuple(session_ids))
        evidence.is_complete &= self._postings.is_complete
        self._look_up([each for ids in lists for each in ids])
        for at, ids in zip(completed, lists, strict=True):
            self._note(at, ids)

    def _follow_terms(self) -> list[Posting]:
        """Return the messages with each term, of the scope only if most of the newest ones are not in it."""
        postings = self._postings.follow([term.node for term in self._terms])
        common = [at for at, each in enumerate(postings) if not each.is_whole]
        sample = [each for at in common for each in postings[at].ids[:: MAX_POSTINGS // _SAMPLE]]
        if self._postings.is_narrow or not sample:
            return postings
        self._look_up(sample)
        admitted = sum(each in self._evidence.messages for each in sample)
        if admitted >= _MOSTLY * len(sample):
            return postings
        self._postings.is_narrow = True
        followed = dict(zip(common, self._postings.follow([self._terms[at].node for at in common]), strict=True))
        return [followed.get(at, posting) for at, posting in enumerate(postings)]

    def _count_admitted(self, posting: Posting) -> float:
        return float(sum(each in self._evidence.messages for each in posting.ids))

    def _add_common(self, chosen: dict[int, None], postings: Sequence[Posting], common: Sequence[int]) -> None:
        """Add messages that have several common terms: all of them, or two of the rarest.

        If all common terms together weigh less than half of one rare term, no message gets far with them alone.
        """
        total = max(float(self._context.coverage.upto), *(each.frequency for each in postings))
        whole = [rarity(total, each.frequency) for each in postings if each.is_whole and each.ids]
        if sum(rarity(total, postings[at].frequency) for at in common) <= max(whole, default=0.0) / 2:
            return
        if len(common) == 1:
            chosen.update(dict.fromkeys(postings[common[0]].ids[:_MAX_TOGETHER]))
            return
        # What is in every tenth message and more is found together soon; with rarer terms, pairs find it sooner.
        are_dense = _DENSE * postings[common[0]].frequency >= total
        together = [tuple(common)] if are_dense else combinations(common[:_PAIRED], 2)
        nodes = [And(tuple(self._terms[at].node for at in some)) for some in together]
        if len(chosen) >= MAX_MESSAGES:
            return
        for ids in self._postings.ids_of_each(nodes, _MAX_TOGETHER):
            if len(chosen) < MAX_MESSAGES:
                chosen.update(dict.fromkeys(ids))

    def _find_all_terms(self, postings: Sequence[Posting]) -> None:
        """Note which messages have every term, if the terms that were followed to their end leave few of them."""
        whole = [set(posting.ids) for posting in postings if posting.is_whole]
        together = set.intersection(*whole) if whole else set()
        if whole and len(together) <= _MAX_EXCLUDED:
            found = self._postings.filter_matching(together, And(tuple(term.node for term in self._terms)))
            self._evidence.can_have_all = bool(found)
            for at in range(len(postings) if len(together) <= _MAX_CHECKED else 0):
                self._note(at, found)

    def _look_up(self, ids: Collection[int]) -> None:
        """Read the facts of messages that were not read yet; those outside of the scope have none."""
        context = self._context
        stale = frozenset(context.coverage.stale)
        unknown = [each for each in ids if each not in self._known and each not in stale]
        for some in chunks(unknown, MAX_MESSAGES):
            chosen, values = context.tx.dialect.is_among("m.id", some)
            with context.waits.exclude_waiting():
                rows = context.tx.rows(
                    f"""SELECT m.id, m.session_id, m.role, m.timestamp, octet_length(m.content), m.active,
                               s.source, s.owner, m.tool_name, substr(m.tool_calls, 1, {_HEAD_OF_CALLS}), {CHAIN}
                        FROM messages m JOIN sessions s ON s.id = m.session_id WHERE {chosen}""",
                    **values,
                )
                self._known.update(dict.fromkeys(some))
                context.copies.remember({row[1]: row[-1] for row in rows})
                self._admit(row[:-1] for row in rows)

    def _admit(self, rows: Iterable[tuple[Any, ...]]) -> list[int]:
        """Keep the facts of the rows that the scope admits, each message once, and return their ids."""
        context, scope = self._context, self._context.scope
        found: dict[int, MessageFacts] = {}
        for message_id, session_id, role, timestamp, size, active, source, owner, tool, calls in rows:
            at = float(timestamp) if isinstance(timestamp, int | float) else 0.0
            if not scope.admits(role, session_id, source, owner):
                continue
            if not active and not scope.include_inactive:
                self._evidence.undone.setdefault(message_id, set())
            elif scope.admits_time(at):
                is_machinery = is_search_machinery(size, tool, calls)
                found[message_id] = MessageFacts(session_id, role, at, size or 0, is_machinery)
        places = [MessagePlace(each, facts.session_id, facts.timestamp) for each, facts in found.items()]
        for each in context.copies.left_out(places):
            del found[each]
        self._known.update(found)
        self._evidence.messages.update(found)
        return list(found)

    def _note(self, term: int, ids: Iterable[int]) -> None:
        messages, terms, undone = self._evidence.messages, self._evidence.terms, self._evidence.undone
        for message_id in ids:
            if message_id in messages:
                terms.setdefault(message_id, set()).add(term)
            elif message_id in undone:
                undone[message_id].add(term)

    def _read_rows(self, low: int, deadline: float) -> None:
        """Match the messages that the index does not have, newest first."""
        context, high = self._context, MAX_ID
        while low <= high:
            with context.waits.exclude_waiting():
                rows = context.tx.rows(
                    f"""{_UNINDEXED} WHERE m.id BETWEEN :low AND :high ORDER BY m.id DESC LIMIT :limit""",
                    low=low,
                    high=high,
                    limit=_ROWS_AT_ONCE,
                )
            for at in range(0, len(rows), _ROWS_PER_STEP):
                self._match_rows(rows[at : at + _ROWS_PER_STEP])
                if context.is_over(deadline):
                    self._evidence.is_complete = False
                    return
            if len(rows) < _ROWS_AT_ONCE:
                return
            high = rows[-1][0] - 1

    def _read_stale(self) -> None:
        for some in chunks([each for each in self._context.coverage.stale if each <= self._context.coverage.upto]):
            chosen, values = self._context.tx.dialect.is_among("m.id", some)
            self._match_rows(self._context.tx.rows(f"{_UNINDEXED} WHERE {chosen}", **values))

    def _match_rows(self, rows: Sequence[tuple[Any, ...]]) -> None:
        texts: dict[int, Document] = {}
        facts = []
        self._context.copies.remember({row[1]: row[-1] for row in rows})
        for message_id, session_id, role, at, active, source, owner, content, tool_name, tool_calls, _ in rows:
            text = search_text(role, content, tool_name, tool_calls)
            texts[message_id] = Document(text)
            size = len(content.encode(errors="replace")) if isinstance(content, str) else 0
            facts.append((message_id, session_id, role, at, size, active, source, owner, tool_name, tool_calls))
        admitted = frozenset(self._admit(facts))
        for message_id, document in texts.items():
            found = {number for number, term in enumerate(self._terms) if matches(term.node, document)}
            self._evidence.can_have_all |= len(found) == len(self._terms)
            if message_id not in admitted:
                if message_id in self._evidence.undone:
                    self._evidence.undone[message_id] |= found
            elif found:
                self._evidence.terms[message_id] = found
                for number in found:
                    self._evidence.frequencies[number] += 1

    def _count_terms(self) -> None:
        for number in range(len(self._terms)):
            self._evidence.frequencies[number] = sum(number in each for each in self._evidence.terms.values())


_UNINDEXED = f"""SELECT m.id, m.session_id, m.role, m.timestamp, m.active, s.source, s.owner,
                       m.content, m.tool_name, m.tool_calls, {CHAIN}
                FROM messages m JOIN sessions s ON s.id = m.session_id"""
