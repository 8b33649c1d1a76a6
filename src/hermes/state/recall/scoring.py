"""Scores conversations: how much of a question their best place, and the whole of them, have."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hermes.query.question import Question
from hermes.state.operations import chunks, placeholders
from hermes.state.recall.store_size import StoreSize
from hermes.state.search.context import SearchContext
from hermes.state.search.evidence import Evidence, message_weight, rarity

MAX_TIMELINE = 8_000
"""How many messages of them are placed in their order; of longer ones, only neighbouring ids count as neighbours."""
TIME_LIFT = 0.8
"""How much of the score a conversation gains from the time that the question names."""
_REACH, _DECAY = 2, 0.65
"""How far a neighbour may be, and what of its words counts at each step."""
_SHARES = tuple(_DECAY**distance for distance in range(_REACH + 1))
_NO_TERMS: frozenset[int] = frozenset()
_PLACE_SATURATION, _PLACE_LENGTH = 1.5, 0.5
_MOST_COUNTED = 2 * sum(_SHARES) - 1
_MOST_SATURATED = _MOST_COUNTED * (_PLACE_SATURATION + 1) / (_MOST_COUNTED + _PLACE_SATURATION * (1 - _PLACE_LENGTH))
"""No term adds more than so many times its weight to the score of a place."""
_WHOLE_SATURATION, _WHOLE_LENGTH = 1.5, 0.75
_WHOLE_SHARE = 0.75
_TITLE_SHARE = 0.35
_RECENCY_SHARE = 0.005
"""How much of the score the newest conversation gains over the oldest one: enough to decide between equals."""


@dataclass(frozen=True, slots=True)
class RankedSession:
    """A session that may answer a question."""

    session_id: str
    score: float
    places: tuple[int, ...]
    """The messages of its best place that have words of the question, the best first; none if only its title has."""
    reply: int | None
    """The message after the best one of them."""


class _SessionSpan(NamedTuple):
    """How many messages a session has, and when it began and was last active."""

    messages: int
    moments: tuple[float, ...]


class Scorer:
    """Scores sessions of which all evidence is known."""

    def __init__(
        self,
        context: SearchContext,
        question: Question,
        evidence: Evidence,
        weights: Sequence[float],
        store: StoreSize,
        titled: Mapping[str, set[int]],
    ) -> None:
        self._context, self._question, self._evidence = context, question, evidence
        self._weights, self._store, self._titled = weights, store, titled
        self._spans: dict[str, _SessionSpan] = {}
        self._by_session: dict[str, list[int]] = defaultdict(list)
        for message_id in sorted(evidence.terms):
            self._by_session[evidence.messages[message_id].session_id].append(message_id)

    def score(self, session_ids: Sequence[str]) -> list[RankedSession]:
        self._spans = self._read_spans(session_ids)
        lengths = {each: span.messages for each, span in self._spans.items()}
        mean_length = sum(lengths.values()) / max(1, len(lengths)) or 1.0
        timelines = self._read_timelines(session_ids, lengths)
        sizes = [size for timeline in timelines.values() for _, size in timeline]
        sizes = sizes or [self._evidence.messages[each].size for each in self._evidence.terms] or [1]
        mean_size = sum(sizes) / len(sizes) or 1.0
        rarities = self._session_rarities()
        newest = self._newest_first(session_ids)
        found = []
        for session_id in session_ids:
            place, messages = self._best_place(session_id, timelines.get(session_id), mean_size)
            counts = Counter(at for each in self._by_session[session_id] for at in self._counted_terms(each))
            whole = sum(
                _saturate(
                    count, rarities[at], _WHOLE_SATURATION, _WHOLE_LENGTH, lengths.get(session_id, 1) / mean_length
                )
                for at, count in counts.items()
            )
            title = sum(self._weights[at] for at in self._titled.get(session_id, ()))
            score = place + _WHOLE_SHARE * whole + _TITLE_SHARE * title
            score *= 1 + TIME_LIFT * self._time_fit(session_id) + _RECENCY_SHARE * newest[session_id]
            if score > 0:
                found.append(RankedSession(session_id, score, messages, self._reply(messages, timelines)))
        return sorted(found, key=lambda each: (-each.score, each.session_id))

    def _counted_terms(self, message_id: int) -> set[int]:
        return set() if self._evidence.messages[message_id].is_machinery else self._evidence.terms[message_id]

    def _best_place(
        self, session_id: str, timeline: Sequence[tuple[int, int]] | None, mean_size: float
    ) -> tuple[float, tuple[int, ...]]:
        """Return the highest score of a message with its neighbours, and the messages there that have terms."""
        evidence = self._evidence
        matched = self._by_session.get(session_id, [])
        if timeline is None:
            timeline = [(each, evidence.messages[each].size) for each in matched]
        ids = [message_id for message_id, _ in timeline]
        terms = [evidence.terms.get(each, _NO_TERMS) for each in ids]
        best, best_at = 0.0, -1
        # The best messages come first, so that most of the others need no score.
        own = {at: sum(self._weights[each] for each in found) for at, found in enumerate(terms) if found}
        for at in sorted(own, key=lambda at: (-own[at], at)):
            near = range(max(0, at - _REACH), min(len(ids), at + _REACH + 1))
            there = set().union(*terms[near.start : near.stop])
            if _MOST_SATURATED * sum(self._weights[each] for each in there) > best:
                score = self._place_score(at, near, timeline, terms, mean_size)
                best, best_at = (score, at) if score > best else (best, best_at)
        if best_at < 0:
            return 0.0, ()
        found = [each for each in ids[max(0, best_at - _REACH) : best_at + _REACH + 1] if each in evidence.terms]
        return best, tuple(sorted(found, key=lambda each: (-self._own_score(each), each)))

    def _place_score(
        self,
        centre: int,
        near: range,
        timeline: Sequence[tuple[int, int]],
        terms: Sequence[Collection[int]],
        mean_size: float,
    ) -> float:
        """Return the score of the messages around one: what is further away counts less."""
        counts: dict[int, float] = {}
        size = total = 0.0
        for at in near:
            share = _SHARES[abs(at - centre)]
            message_id, message_size = timeline[at]
            size += share * message_size
            total += share
            if terms[at]:
                share *= message_weight(self._evidence.messages[message_id])
                for term in terms[at]:
                    counts[term] = counts.get(term, 0.0) + share
        length = size / total / mean_size
        return sum(
            _saturate(count, self._weights[term], _PLACE_SATURATION, _PLACE_LENGTH, length)
            for term, count in counts.items()
        )

    def _reply(self, messages: Sequence[int], timelines: Mapping[str, list[tuple[int, int]]]) -> int | None:
        """The message that follows the best one of a place."""
        if not messages:
            return None
        timeline = timelines.get(self._evidence.messages[messages[0]].session_id, ())
        return next((each for each, _ in timeline if each > messages[0]), None)

    def _own_score(self, message_id: int) -> float:
        own = sum(self._weights[at] for at in self._evidence.terms[message_id])
        return own * message_weight(self._evidence.messages[message_id])

    def _session_rarities(self) -> list[float]:
        """How rare each term is among sessions."""
        holders: list[set[str]] = [set() for _ in self._weights]
        counts = [0] * len(self._weights)
        for message_id, terms in self._evidence.terms.items():
            for at in terms:
                holders[at].add(self._evidence.messages[message_id].session_id)
                counts[at] += 1
        total = self._store.sessions
        estimates = [
            len(seen) * max(1.0, frequency / max(1, count))
            for seen, count, frequency in zip(holders, counts, self._evidence.frequencies, strict=True)
        ]
        return [rarity(total, each) for each in estimates]

    def _time_fit(self, session_id: str) -> float:
        hint = self._question.hint
        if hint is None:
            return 0.0
        moments = {self._evidence.messages[each].timestamp for each in self._by_session.get(session_id, ())}
        if session_id in self._spans:
            moments.update(self._spans[session_id].moments)
        return max(map(hint.fit, moments), default=0.0)

    def _newest_first(self, session_ids: Sequence[str]) -> dict[str, float]:
        """For each session, from 0 for the oldest to 1 for the newest."""
        newest = {
            each: max(
                (self._evidence.messages[one].timestamp for one in self._by_session.get(each, ())),
                default=max(self._spans[each].moments, default=0.0) if each in self._spans else 0.0,
            )
            for each in session_ids
        }
        ordered = sorted(newest, key=lambda each: newest[each])
        return {each: at / max(1, len(ordered) - 1) for at, each in enumerate(ordered)}

    def _read_spans(self, session_ids: Sequence[str]) -> dict[str, _SessionSpan]:
        spans: dict[str, _SessionSpan] = {}
        for some in chunks(session_ids):
            listed, values = placeholders("id", some)
            rows = self._context.tx.rows(
                f"SELECT id, message_count, started_at, last_active FROM sessions WHERE id IN ({listed})", **values
            )
            for session_id, count, *moments in rows:
                known = tuple(float(each) for each in moments if isinstance(each, int | float))
                spans[session_id] = _SessionSpan(max(1, count or 0), known)
        return spans

    def _read_timelines(
        self, session_ids: Sequence[str], lengths: Mapping[str, int]
    ) -> dict[str, list[tuple[int, int]]]:
        """The ids and sizes of the messages of sessions, in their order; long sessions have none."""
        context, scope, left = self._context, self._context.scope, MAX_TIMELINE
        chosen = []
        for session_id in session_ids:
            if lengths.get(session_id, 0) <= left and self._by_session.get(session_id):
                chosen.append(session_id)
                left -= lengths.get(session_id, 0)
        found: dict[str, list[tuple[int, int]]] = {each: [] for each in chosen}
        for some in chunks(chosen):
            listed, values = placeholders("session", some)
            with context.waits.exclude_waiting():
                rows = context.tx.rows(
                    f"""SELECT session_id, id, role, octet_length(content) FROM messages
                        WHERE session_id IN ({listed}) AND active = 1 ORDER BY session_id, id""",
                    **values,
                )
            for session_id, message_id, role, size in rows:
                if scope.roles is None or role in scope.roles:
                    found[session_id].append((message_id, size or 0))
        return found


def _saturate(count: float, weight: float, saturation: float, length_share: float, length: float) -> float:
    """BM25: more of the same counts less and less, and a long text counts less than a short one."""
    return weight * count * (saturation + 1) / (count + saturation * (1 - length_share + length_share * length))
