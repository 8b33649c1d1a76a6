"""The measurements on PostgreSQL as text: aligned for a terminal, or as Markdown for the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field

from bench.job import Result
from bench.questions import BAR_MS, SENTENCE_BAR_MS, Kind
from bench.rounds import Rounds
from bench.row import at_least, at_most
from bench.searchtable import NOT_AVAILABLE, milliseconds
from bench.sizes import label

OURS, INDEXED, RAW = "postgresql", "postgresql, indexed", "psycopg"
LEAST_OF_RAW = 0.8
LEAST_CARRIED, LEAST_INDEXED = 10_000.0, 5_000.0
SEARCH_BAR_MS = 25.0
"""The bar for searches that must take 10 ms in a file; slower ones may be slower here too."""
SENTENCE_BAR_ON_A_SERVER_MS = 40.0
_BARS = {BAR_MS: SEARCH_BAR_MS, SENTENCE_BAR_MS: SENTENCE_BAR_ON_A_SERVER_MS}

Cells = Sequence[str]


@dataclass(slots=True)
class PostgresReport:
    """Everything that was measured on PostgreSQL."""

    sizes: tuple[int, ...]
    kinds: list[Kind]
    appends: dict[str, Rounds] = field(default_factory=dict)
    """Appends, by store."""
    migrations: Rounds = field(default_factory=Rounds)
    searches: dict[int, Rounds] = field(default_factory=dict)
    """Searches, by the number of messages."""
    builds: dict[int, Result] = field(default_factory=dict)
    missing: str | None = None
    """Why there was no server."""

    def plain(self) -> dict[str, object]:
        """The tables and their data, as JSON."""
        return {
            "append": list(self.append_lines()),
            "migration": list(self.migration_lines()),
            "search": list(self.search_lines()),
            "questions": [asdict(kind) for kind in self.kinds],
            "missing": self.missing,
        }

    def append_lines(self) -> Iterator[Cells]:
        """A header, then a line for each store, and one for the cost of the index."""
        yield ("append", "ours", "raw psycopg", "to raw", "raw noise", "bar", "met")
        for name, rounds in self.appends.items():
            ratio = rounds.ratio(OURS, RAW, "rate")
            yield (
                name,
                _rate(rounds.middle(OURS, "rate")),
                _rate(rounds.middle(RAW, "rate")),
                _times(ratio),
                _share(rounds.spread(RAW, "rate")),
                f">= {LEAST_OF_RAW:g} of raw",
                _met(at_least(ratio, LEAST_OF_RAW)),
            )
            if rounds.values(OURS, "indexed"):
                until_indexed = rounds.middle(OURS, "indexed")
                yield (f"{name}, until all is indexed", _rate(until_indexed), "-", "", "", "", "")

    def migration_lines(self) -> Iterator[Cells]:
        """A header, then how fast messages are copied, and how fast they are indexed."""
        yield ("migration from SQLite", "messages", "noise", "bar", "met")
        carried = self.migrations.middle(OURS, "rate")
        yield (
            "carried and compared",
            _rate(carried),
            _share(self.migrations.spread(OURS, "rate")),
            f">= {LEAST_CARRIED:,.0f}/s",
            _met(at_least(carried, LEAST_CARRIED)),
        )
        indexed = self.migrations.middle(OURS, "indexed")
        yield (
            "indexed after that",
            _rate(indexed),
            _share(self.migrations.spread(OURS, "indexed")),
            f">= {LEAST_INDEXED:,.0f}/s",
            _met(at_least(indexed, LEAST_INDEXED)),
        )

    def search_lines(self) -> Iterator[Cells]:
        """A header, then a line for each kind of query."""
        sizes = [size for size in self.sizes if size in self.searches]
        times = [title for size in sizes for title in (label(size), f"worst {label(size)}")]
        yield ("search, ms", *times, "results", "complete", "bar", "met")
        for kind in self.kinds if sizes else ():
            medians = [self.searches[size].middle(OURS, f"{kind.name}: median") for size in sizes]
            worst = [self.searches[size].worst(OURS, f"{kind.name}: worst") for size in sizes]
            times = [milliseconds(each) for pair in zip(medians, worst, strict=True) for each in pair]
            bar_ms = _BARS.get(kind.bar_ms, kind.bar_ms)
            is_met = [at_most(each, bar_ms) for each in medians]
            rounds = self.searches[sizes[-1]]
            fewest, most = rounds.values(OURS, f"{kind.name}: fewest"), rounds.values(OURS, f"{kind.name}: most")
            results = "-".join(f"{count:.0f}" for count in dict.fromkeys((min(fewest), max(most)))) if most else ""
            yield (
                kind.name,
                *times,
                results,
                "yes" if not sum(rounds.values(OURS, f"{kind.name}: incomplete")) else "no",
                f"<= {bar_ms:g} ms",
                _met(None if None in is_met else all(is_met)),
            )

    def notes(self) -> Iterator[str]:
        """How long filling took, and what failed."""
        if self.missing is not None:
            yield f"PostgreSQL was not measured: {self.missing}"
        for size, built in self.builds.items():
            if "rate" in built:
                took = f"{built['seconds']:,.0f} s, {built['rate']:,.0f} messages/s"
                yield f"filled {label(size)}, index included: {took}"
        for rounds in (*self.appends.values(), self.migrations, *self.searches.values()):
            yield from (f"{store}: {remark}" for store in rounds.results for remark in rounds.remarks(store))


def render(report: PostgresReport) -> str:
    """Aligned tables, then the notes."""
    texts = [_aligned(list(lines)) for lines in _tables(report)]
    return "\n\n".join([*texts, *report.notes()])


def markdown(report: PostgresReport) -> str:
    """The same as Markdown."""
    parts = []
    for lines in map(list, _tables(report)):
        rows = ["| " + " | ".join(cells) + " |" for cells in lines]
        rule = "|" + "|".join("---" if not place else "---:" for place in range(len(lines[0]))) + "|"
        parts.append("\n".join([rows[0], rule, *rows[1:]]))
    return "\n\n".join([*parts, "\n".join(f"- {note}" for note in report.notes())]).rstrip()


def _tables(report: PostgresReport) -> Iterator[Iterator[Cells]]:
    yield report.append_lines()
    yield report.migration_lines()
    yield report.search_lines()


def _aligned(lines: list[Cells]) -> str:
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width) for place, (cell, width) in enumerate(pairs)
        ).rstrip()
        for pairs in (list(zip(line, widths, strict=True)) for line in lines)
    )


def _rate(value: float | None) -> str:
    return NOT_AVAILABLE if value is None else f"{value:,.0f}/s"


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _met(is_met: bool | None) -> str:
    return {True: "yes", False: "no", None: "?"}[is_met]
