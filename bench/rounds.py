"""Results of several rounds, compared within each round because machines are noisy."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

from bench.job import Result
from bench.remarks import without_places

FAILED = "failed"


@dataclass(slots=True)
class Rounds:
    """The results of each store, one per round."""

    results: dict[str, list[Result]] = field(default_factory=dict)

    def add(self, store: str, result: Result) -> None:
        """Add a store's result of the current round."""
        self.results.setdefault(store, []).append(result)

    def values(self, store: str, key: str) -> list[float]:
        """A measurement in every round; empty if a round lacks it."""
        found = [result.get(key) for result in self.results.get(store, [])]
        numbers = [value for value in found if isinstance(value, float | int)]
        return numbers if len(numbers) == len(found) else []

    def middle(self, store: str, key: str) -> float | None:
        """The median over the rounds."""
        values = self.values(store, key)
        return median(values) if values else None

    def worst(self, store: str, key: str) -> float | None:
        """The largest value of any round."""
        return max(self.values(store, key), default=None)

    def ratio(self, store: str, other: str, key: str) -> float | None:
        """The median over the rounds of one store's value over the other's."""
        pairs = zip(self.values(store, key), self.values(other, key), strict=False)
        ratios = [ours / theirs for ours, theirs in pairs if theirs]
        return median(ratios) if ratios else None

    def spread(self, store: str, key: str) -> float | None:
        """The spread of the rounds, as a share of their median."""
        values = self.values(store, key)
        return (max(values) - min(values)) / median(values) if len(values) > 1 and median(values) else None

    def remarks(self, store: str) -> list[str]:
        """Why something is missing, each reason once."""
        found = [
            f"{prefix}{without_places(str(result[key]))}"
            for result in self.results.get(store, [])
            for key, prefix in _REMARKS.items()
            if key in result
        ]
        return list(dict.fromkeys(found))


_REMARKS = {"error": f"{FAILED}: ", "unsupported": "", "first_failure": "a call failed: "}
