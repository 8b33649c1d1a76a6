"""Measurement: every question asked of every searcher."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench.recall.dialogue import Dialogue
from bench.recall.searchers import open_searchers

ALL = "all"
DEPTHS = (1, 5, 10)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one searcher found for one question."""

    searcher: str
    language: str
    kind: str
    user_id: str
    question: str
    rank: int | None
    """The place of the first session that holds the answer, from 1; None if it is not among those found."""
    ms: float


@dataclass(frozen=True, slots=True)
class Score:
    """How well one searcher did on a group of questions."""

    searcher: str
    group: str
    questions: int
    any_at: tuple[float, ...]
    """For each of `DEPTHS`, the percentage of questions with a right session among the first so many."""
    median_ms: float
    p95_ms: float


@dataclass(slots=True)
class RecallReport:
    """All outcomes of a run."""

    outcomes: list[Outcome] = field(default_factory=list)

    def by_language(self) -> list[Score]:
        """The scores of every language, and of all questions if there are several languages."""
        by_language = self._scores(lambda outcome: outcome.language)
        has_several = len({score.group for score in by_language}) > 1
        return [*by_language, *(self._scores(lambda _: ALL) if has_several else [])]

    def by_kind(self) -> list[Score]:
        """The scores of every kind of question."""
        return self._scores(lambda outcome: outcome.kind)

    def plain(self) -> dict[str, Any]:
        """The scores and every outcome, for JSON."""
        return {
            "by_language": [asdict(score) for score in self.by_language()],
            "by_kind": [asdict(score) for score in self.by_kind()],
            "outcomes": [asdict(outcome) for outcome in self.outcomes],
        }

    def _scores(self, group_of: Callable[[Outcome], str]) -> list[Score]:
        groups: dict[tuple[str, str], list[Outcome]] = {}
        for outcome in self.outcomes:
            groups.setdefault((group_of(outcome), outcome.searcher), []).append(outcome)
        order = list(dict.fromkeys(group for group, _ in groups))
        return [
            score_of(outcomes, searcher, group)
            for (group, searcher), outcomes in sorted(groups.items(), key=lambda item: order.index(item[0][0]))
        ]


def measure(dialogues: Sequence[Dialogue], directory: Path) -> RecallReport:
    """Ask every question; the searchers take turns."""
    report = RecallReport()
    searchers = open_searchers(dialogues, directory)
    try:
        for dialogue in dialogues:
            for searcher in searchers:
                searcher.search(dialogue.user_id, dialogue.questions[0].text)  # not timed: it warms caches
            for question in dialogue.questions:
                for searcher in searchers:
                    started = time.perf_counter()
                    found = searcher.search(dialogue.user_id, question.text)
                    ms = (time.perf_counter() - started) * 1000
                    rank = next((at for at, each in enumerate(found, start=1) if each in question.evidence), None)
                    report.outcomes.append(
                        Outcome(
                            searcher.name,
                            dialogue.language,
                            question.kind,
                            dialogue.user_id,
                            question.text,
                            rank,
                            ms,
                        )
                    )
    finally:
        for searcher in searchers:
            searcher.close()
    return report


def score_of(outcomes: Sequence[Outcome], searcher: str, group: str) -> Score:
    """The score of some outcomes of one searcher."""
    count = len(outcomes)
    hits = [sum(each.rank is not None and each.rank <= depth for each in outcomes) for depth in DEPTHS]
    times = sorted(each.ms for each in outcomes)
    return Score(
        searcher,
        group,
        count,
        tuple(100 * hit / count for hit in hits),
        median(times),
        times[min(count - 1, int(count * 0.95))],
    )
