"""The results of search: a row per kind of query, computed from all rounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field

from bench.job import Result
from bench.questions import BAR_MS, Kind
from bench.rounds import Rounds
from bench.row import OURS, WORDS, all_of, at_most
from bench.sizes import REFERENCE, label
from bench.suite import HERMES_AGENT

NAMES = {WORDS: "raw FTS5", OURS: "ours", HERMES_AGENT: HERMES_AGENT}
FLATNESS = 2.0
JUDGED = 1_000_000
"""The number of messages up to which the limits apply."""
FIRST_BAR_MS = 50.0
FIRST_LABEL = "the first search after opening, fresh process"


@dataclass(slots=True)
class SearchRow:
    """The milliseconds of one kind of query; medians unless they are called worst."""

    label: str
    bar_ms: float
    times: dict[str, dict[int, float]] = field(default_factory=dict)
    """By store and size: the median over the rounds of each round's median."""
    worst: dict[int, float] = field(default_factory=dict)
    """The slowest single search of ours, by size."""
    cpu: float | None = None
    """Ours at the largest size, without the time in which other processes had the processor."""
    ratio: float | None = None
    """Ours at the largest size over ours at the reference."""
    noise: float | None = None
    results: str = ""
    complete: float | None = None
    """The share of our searches that were complete, at the largest size."""
    unindexed: float | None = None
    is_flat_wanted: bool = False
    met: bool | None = None
    lacking: dict[str, str] = field(default_factory=dict)
    """Why a store has no number here."""
    remarks: list[str] = field(default_factory=list)

    @property
    def bar(self) -> str:
        """The limit in words."""
        return f"<= {self.bar_ms:g} ms" + (f", {FLATNESS:g}x" if self.is_flat_wanted else "")


@dataclass(slots=True)
class SearchReport:
    """All measurements of search."""

    sizes: tuple[int, ...]
    """The numbers of messages, the fewest first."""
    builds: dict[str, dict[int, Result]]
    """How long filling each store took, by size."""
    kinds: list[Kind]
    asked: Rounds
    behind: Rounds
    """The same queries while the newest messages were not indexed."""
    first: Rounds

    @property
    def largest(self) -> int:
        """The largest size at which rows are judged; larger ones are only shown."""
        return max((size for size in self.sizes if size <= JUDGED), default=self.sizes[-1])

    @property
    def reference(self) -> int:
        """The size that the largest one is compared with."""
        return REFERENCE if REFERENCE in self.sizes else self.sizes[0]

    @property
    def unindexed(self) -> int:
        """How many of the newest messages were not indexed when ours was measured again."""
        return int(min(self.behind.values(key_of(OURS, self.largest), "unindexed"), default=0))

    def others(self) -> dict[str, int]:
        """The other stores, each with the largest size at which it was measured."""
        return {store: max(found) for store, found in self.builds.items() if store != OURS}

    def rows(self) -> list[SearchRow]:
        """A row per kind of query, and one for the first search of a process."""
        return [*(self._row(kind) for kind in self.kinds), self._first_row()]

    def plain(self) -> dict[str, object]:
        """The rows and their data, as JSON; the single results are kept elsewhere."""
        return {
            "rows": [asdict(row) for row in self.rows()],
            "questions": [asdict(kind) for kind in self.kinds],
            "filling": {
                key_of(store, size): result for store, found in self.builds.items() for size, result in found.items()
            },
        }

    def _row(self, kind: Kind) -> SearchRow:
        name, largest = kind.name, key_of(OURS, self.largest)
        row = self._timed(SearchRow(name, kind.bar_ms), self.asked, f"{name}: median", f"{name}: worst")
        row.is_flat_wanted = self.largest != self.reference and kind.bar_ms == BAR_MS
        row.ratio = self.asked.ratio(largest, key_of(OURS, self.reference), f"{name}: median")
        row.cpu = self.asked.middle(largest, f"{name}: cpu")
        row.unindexed = self.behind.middle(largest, f"{name}: median")
        row.noise = self._noise(f"{name}: median")
        runs, incomplete = (sum(self.asked.values(largest, f"{name}: {key}")) for key in ("runs", "incomplete"))
        row.complete = 1 - incomplete / runs if runs else None
        found = self._counts(name, self.largest)
        if found:
            row.results = "-".join(f"{count:.0f}" for count in dict.fromkeys((min(found), max(found))))
        is_understood = self._is_understood(kind)
        row.met = all_of(
            *self._within_bar(row), at_most(row.ratio, FLATNESS) if row.is_flat_wanted else True, is_understood
        )
        if is_understood is False:
            row.remarks.append(f"{name}: ours did not give {kind.least} to {kind.most} results")
        row.lacking = self._lacking(name)
        row.remarks += self._remarks(kind)
        return row

    def _first_row(self) -> SearchRow:
        row = self._timed(SearchRow(FIRST_LABEL, FIRST_BAR_MS), self.first, "first", "first")
        row.met = all_of(*self._within_bar(row))
        return row

    def _timed(self, row: SearchRow, rounds: Rounds, median: str, worst: str) -> SearchRow:
        for store, found in self.builds.items():
            values = {size: rounds.middle(key_of(store, size), median) for size in found}
            row.times[store] = _present(values)
        row.worst = _present({size: rounds.worst(key_of(OURS, size), worst) for size in self.sizes})
        return row

    def _within_bar(self, row: SearchRow) -> Iterator[bool | None]:
        judged = [size for size in self.sizes if size <= self.largest]
        return (at_most(row.times.get(OURS, {}).get(size), row.bar_ms) for size in judged)

    def _noise(self, key: str) -> float | None:
        size = self.others().get(WORDS)
        return None if size is None else self.asked.spread(key_of(WORDS, size), key)

    def _counts(self, name: str, size: int) -> list[float]:
        """The fewest and the most results of each round of ours."""
        return [
            count for key in ("fewest", "most") for count in self.asked.values(key_of(OURS, size), f"{name}: {key}")
        ]

    def _is_understood(self, kind: Kind) -> bool | None:
        """Whether ours returned the required number of results, at every size."""
        found = [count for size in self.sizes for count in self._counts(kind.name, size)]
        return all(kind.least <= count <= kind.most for count in found) if found else None

    def _lacking(self, name: str) -> dict[str, str]:
        return {
            store: str(result[f"{name}: unsupported"])
            for store, found in self.builds.items()
            for size in found
            for result in self.asked.results.get(key_of(store, size), [])
            if f"{name}: unsupported" in result
        }

    def _remarks(self, kind: Kind) -> Iterator[str]:
        for store, found in self.builds.items():
            for size in found:
                key = key_of(store, size)
                yield from (f"{NAMES[store]} {label(size)}, {remark}" for remark in self.asked.remarks(key))
                if store != OURS and kind.least and self.asked.worst(key, f"{kind.name}: most") == 0:
                    yield f"{kind.name}: {NAMES[store]} {label(size)} found nothing"


def key_of(store: str, size: int) -> str:
    """The key of the results of a store at one size."""
    return f"{store} {label(size)}"


def _present(values: Mapping[int, float | None]) -> dict[int, float]:
    return {size: value for size, value in values.items() if value is not None}
