"""The bars of the gateway, and the table that shows them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from bench.job import Result

_NOISE_BYTES = 1024
"""Resident memory comes in pages and is not returned at once: less than this for each of many lanes is nothing."""
HEADER = ("what is measured", "ours", "beside it", "load", "bar", "met")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table."""

    label: str
    ours: str
    beside: str = ""
    """A floor, or the same of another process, in the same run."""
    load: float | None = None
    bar: str = ""
    is_met: bool | None = None

    def cells(self) -> tuple[str, ...]:
        """The line as texts."""
        met = {True: "yes", False: "no", None: ""}[self.is_met]
        return (self.label, self.ours, self.beside, "" if self.load is None else f"{self.load:.1f}", self.bar, met)


@dataclass(slots=True)
class GatewayReport:
    """The lines, every single result, and what could not be measured."""

    lines: list[Line] = field(default_factory=list)
    results: dict[str, Result] = field(default_factory=dict)
    missing: str = ""

    def plain(self) -> dict[str, Any]:
        """The report as JSON."""
        return {"lines": [asdict(line) for line in self.lines], "results": self.results, "missing": self.missing}


def render(report: GatewayReport) -> str:
    """An aligned table."""
    lines = [HEADER, *(line.cells() for line in report.lines)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    texts = ["  ".join(cell.ljust(widths[i]) for i, cell in enumerate(line)).rstrip() for line in lines]
    texts.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join([*texts, *([f"\nPostgreSQL: {report.missing}"] if report.missing else [])])


def markdown(report: GatewayReport) -> str:
    """The same as a Markdown table."""
    lines = ["| " + " | ".join(HEADER) + " |", "|---|---|---|---:|---|---|"]
    lines += ["| " + " | ".join(line.cells()) + " |" for line in report.lines]
    return "\n".join([*lines, *([f"\nPostgreSQL: {report.missing}"] if report.missing else [])])


def load_lines(result: Result, turns: int) -> list[Line]:
    """The lines of a busy node."""
    load = _number(result, "load")
    accepted, lag = _number(result, "accepted"), _number(result, "lag_p99")
    return [
        Line(
            f"event-loop lag p99, {turns} turns at a time",
            f"{lag:.1f} ms (max {_number(result, 'lag_max'):.0f} ms)",
            f"a process that only sleeps: {_number(result, 'quiet_p99'):.1f} ms",
            load,
            "<= 20 ms",
            lag <= 20,
        ),
        Line(
            "  messages accepted meanwhile, offered 250/s",
            f"{accepted:.0f}/s (p99 {_number(result, 'admission_p99'):.0f} ms)",
            f"as fast as possible: {_number(result, 'most_accepted'):,.0f}/s",
            load,
            ">= 200/s",
            accepted >= 200,
        ),
        Line("  turns that ran, on average", f"{_number(result, 'running'):.1f}", "", load),
        Line(
            "  store calls on the event loop, by the guard",
            f"{_number(result, 'refused'):.0f}",
            str(result.get("first_refused", "")),
            load,
            "0",
            _number(result, "refused") == 0,
        ),
    ]


def takeover_line(result: Result, database: str, lease_s: float) -> Line:
    """The line of a take-over."""
    slowest = _number(result, "max") / 1000
    return Line(
        f"take-over after kill -9, lease {lease_s:g} s, {database}",
        f"{slowest:.2f} s at most, median {_number(result, 'median') / 1000:.2f} s",
        "",
        _number(result, "load"),
        f"<= {lease_s + 1:g} s",
        slowest <= lease_s + 1,
    )


def quiet_lines(started: Result, memory: Result, lanes: int) -> list[Line]:
    """The lines of the start and of the memory."""
    ready = _number(started, "ready")
    return [
        Line(
            f"start with {lanes:,} lanes, from the start of the process",
            f"{ready:.0f} ms",
            f"in the process: {_number(started, 'start'):.0f} ms",
            _number(started, "load"),
            "<= 2 s",
            ready <= 2000,
        ),
        Line(
            "Python objects of an idle lane, after as many others",
            f"{_number(memory, 'objects'):.2f}",
            f"{_number(memory, 'actors'):.0f} actors, {_number(memory, 'cached'):.0f} cached conversations",
            _number(memory, "load"),
            "0, and 0 actors",
            _number(memory, "objects") < 0.5 and not _number(memory, "actors"),
        ),
        Line(
            "  resident memory of an idle lane",
            f"{_number(memory, 'per_lane'):,.0f} B (those before: {_number(memory, 'growth'):,.0f} B)",
            f"of these SQLite: {_number(memory, 'sqlite'):,.0f} B",
            _number(memory, "load"),
            "0 B",
            _number(memory, "per_lane") <= _NOISE_BYTES,
        ),
    ]


def idle_line(result: Result, database: str, seconds: float) -> Line:
    """The line of a node without work."""
    # A commit can be seen in both ways; SQLite's number only says that there were some.
    writes = max(_number(result, "writes"), abs(_number(result, "changes")))
    return Line(
        f"write transactions of an idle node in {seconds:g} s, {database}",
        f"{writes:.0f}",
        f"{_number(result, 'reads'):.0f} reads/s, {_number(result, 'cpu'):.1f} ms CPU/s",
        _number(result, "load"),
        "0",
        writes == 0,
    )


def nodes_lines(one: Result, many: Result, nodes: int, label: str) -> list[Line]:
    """The lines of one node and several on one server."""
    ratio = _number(many, "turns") / _number(one, "turns")
    cost = f"{_number(many, 'node_cpu'):.1f} ms in the nodes, {_number(many, 'server_cpu'):.1f} ms in PostgreSQL"
    return [
        Line(
            f"{nodes} nodes on one PostgreSQL, {label}",
            f"{_number(many, 'turns'):.0f} turns/s, {ratio:.1f}x one node",
            f"one node: {_number(one, 'turns'):.0f} turns/s",
            _number(many, "load"),
            ">= 3x",
            ratio >= 3,
        ),
        Line(
            "  CPU of a turn, and cores in use", f"{cost}; {_number(many, 'busy'):.1f} cores", "", _number(many, "load")
        ),
    ]


def floor_line(result: Result, database: str) -> Line:
    """The line of a turn in the store alone."""
    ours, floor = _number(result, "ours"), _number(result, "floor")
    ratios = f"{_number(result, 'ratio'):.2f}, from {_number(result, 'lowest'):.2f} to {_number(result, 'highest'):.2f}"
    return Line(
        f"turns claimed, read and finished, store alone, one client, {database}",
        f"{ours:,.0f}/s",
        f"plain driver: {floor:,.0f}/s; ours to that in a round: {ratios}",
        _number(result, "load"),
    )


def _number(result: Result, name: str) -> float:
    return float(result.get(name, 0.0))
