"""The measurements of search: ours, a raw FTS5 table and a peer on the same messages, at several sizes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench import questions
from bench.built import Builder, Built, copy, read_through
from bench.job import Job, Result
from bench.processes import Processes
from bench.rounds import Rounds
from bench.row import OURS, RAW, WORDS
from bench.searchrow import SearchReport, key_of
from bench.sizes import label
from bench.suite import HERMES_AGENT

STORES = (WORDS, OURS, HERMES_AGENT)
LARGEST_FOR_OTHERS = 1_000_000
"""Above this size only ours is measured: the others would take hours."""
ADDED = 500
"""How many unindexed messages are added before the searches that find some of them."""
FIRST_KIND = "a common word"

Measure = Callable[[str, int, int], Result]
"""Measures a store at a size in one of the rounds."""


@dataclass(slots=True)
class Search:
    """Measures search, round by round."""

    processes: Processes
    builder: Builder
    sizes: tuple[int, ...]
    round_count: int
    repeats: int
    starts: int
    stores: tuple[str, ...]
    report: Callable[[str], None]
    raw_results: dict[str, dict[str, list[Result]]]
    _built: dict[str, dict[int, Built]] = field(default_factory=dict)

    def measure(self) -> SearchReport:
        """Fill what is missing, then search."""
        kinds = questions.kinds()
        questions.write(self._questions(), kinds)
        questions.write(self._questions("first"), [kind for kind in kinds if kind.name == FIRST_KIND])
        for size in self.sizes:
            for store in self._stores(size):
                built = self.builder.build(store, label(size), size)
                read_through(built.home)
                self._built.setdefault(store, {})[size] = built
        asked = self._rounds("search", self._ask)
        behind = self._rounds("search behind the index", self._ask_behind, (OURS,))
        first = self._rounds("first search", self._first, count=self.starts)
        builds = {
            store: {size: built.result for size, built in self._built[store].items()}
            for store in STORES
            if store in self._built
        }
        return SearchReport(self.sizes, builds, kinds, asked, behind, first)

    def _stores(self, size: int) -> Iterator[str]:
        for store in STORES:
            is_wanted = (RAW if store == WORDS else store) in self.stores
            if is_wanted and (store == OURS or size <= LARGEST_FOR_OTHERS):
                yield store

    def _rounds(self, name: str, measure: Measure, only: tuple[str, ...] = STORES, count: int | None = None) -> Rounds:
        """Measure every store at every size in turn, then repeat; results are kept by store and size."""
        rounds = Rounds()
        total = count or self.round_count
        for number in range(total):
            for size in self.sizes:
                for store in self._stores(size):
                    if store in only:
                        self.report(f"{name}: {store}, {label(size)} (round {number + 1} of {total})")
                        result = self._built[store][size].result
                        rounds.add(key_of(store, size), measure(store, size, number) if "rate" in result else result)
        for size in self.sizes:
            by_store = {store: rounds.results.get(key_of(store, size), []) for store in self._stores(size)}
            self.raw_results[f"{name}, {label(size)}"] = {store: found for store, found in by_store.items() if found}
        return rounds

    def _ask(self, store: str, size: int, _: int) -> Result:
        return self.processes.run_in(self._built[store][size].home, store, self._job(size))

    def _ask_behind(self, store: str, size: int, _: int) -> Result:
        job = replace(self._job(size), unindexed=ADDED)
        with tempfile.TemporaryDirectory(dir=self.processes.directory) as name:
            copy(self._built[store][size].home, Path(name))
            return self.processes.run_in(Path(name), store, job)

    def _first(self, store: str, size: int, number: int) -> Result:
        job = Job("first", "", messages=size, member=number, questions=str(self._questions("first")))
        return self.processes.run_in(self._built[store][size].home, store, job)

    def _job(self, size: int) -> Job:
        return Job("ask", "", messages=size, repeats=self.repeats, questions=str(self._questions()))

    def _questions(self, which: str = "all") -> Path:
        return self.processes.directory / f"questions-{which}.json"
