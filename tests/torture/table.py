"""The outcomes as text: aligned for a terminal, or as Markdown for the documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.torture.outcome import Outcome

HEADER = (
    "fault",
    "times",
    "acknowledged",
    "lost",
    "doubled",
    "torn",
    "unfound",
    "corrupt",
    "recovered",
    "slowest call",
)
Titles = Mapping[str, str]
"""What each fault does, by its name."""


def render(outcomes: Mapping[str, Outcome], titles: Titles) -> str:
    """An aligned table, then the remarks and the complaints."""
    lines = [HEADER, *(_cells(name, outcome, titles) for name, outcome in outcomes.items())]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    texts = ["  ".join(_padded(cell, widths[i], i) for i, cell in enumerate(line)).rstrip() for line in lines]
    texts.insert(1, "  ".join("-" * width for width in widths))
    notes, complaints = remarks(outcomes), complaints_of(outcomes)
    return "\n".join([*texts, *_after_a_gap(notes), *_after_a_gap(complaints)])


def markdown(outcomes: Mapping[str, Outcome], titles: Titles) -> str:
    """The table and the remarks, as Markdown."""
    lines = ["| " + " | ".join(HEADER) + " |", "|---|" + "---:|" * (len(HEADER) - 1)]
    lines += ["| " + " | ".join(_cells(name, outcome, titles)) + " |" for name, outcome in outcomes.items()]
    return "\n".join([*lines, *_after_a_gap([f"- {note}" for note in remarks(outcomes)])])


def remarks(outcomes: Mapping[str, Outcome]) -> list[str]:
    """Remarks on the faults, and which of them were not run."""
    not_run = [f"{name}: not run: {outcome.not_run}" for name, outcome in outcomes.items() if outcome.not_run]
    return [*not_run, *(f"{name}: {note}" for name, outcome in outcomes.items() for note in outcome.notes)]


def complaints_of(outcomes: Mapping[str, Outcome]) -> list[str]:
    """The errors, and how to reproduce them."""
    found = [f"{name}, {each}" for name, outcome in outcomes.items() for each in outcome.complaints]
    again = (
        'again: make torture ARGS="--only NAME --seed SEED --rounds 1" (chance in the order of processes stays chance)'
    )
    return [*found, *([again] if found else [])]


def _cells(name: str, outcome: Outcome, titles: Titles) -> tuple[str, ...]:
    label = f"{name}: {titles[name]}"
    if outcome.not_run:
        return (label, "not run", *("" for _ in HEADER[2:]))
    counts = (
        outcome.times,
        outcome.acknowledged,
        outcome.lost,
        outcome.doubled,
        outcome.torn,
        outcome.unfound,
        outcome.corrupt,
        outcome.recovered,
    )
    slowest = f"{outcome.slowest_ms:,.0f} ms" if outcome.slowest_ms else ""
    return (label, *(f"{count:,}" for count in counts), slowest)


def _padded(cell: str, width: int, column: int) -> str:
    return cell.rjust(width) if column else cell.ljust(width)


def _after_a_gap(lines: Sequence[str]) -> list[str]:
    return ["", *lines] if lines else []
