"""The rows as text: aligned for a terminal, or as Markdown for the documentation."""

from __future__ import annotations

from bench.peers import NOT_INSTALLED
from bench.rounds import FAILED
from bench.row import OURS, RAW, Row, Unit
from bench.suite import HERMES_AGENT, OPENAI_AGENTS

COLUMNS = (OURS, RAW, HERMES_AGENT, OPENAI_AGENTS)
HEADER = ("workload", "ours", "raw floor", HERMES_AGENT, OPENAI_AGENTS, "to raw", "raw noise", "bar", "met")
_RIGHT_ALIGNED = range(1, 7)


def render(rows: list[Row]) -> str:
    """An aligned table, then the remarks."""
    lines = [HEADER, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    texts = ["  ".join(_pad(cell, widths[i], i) for i, cell in enumerate(line)).rstrip() for line in lines]
    texts.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join([*texts, *("" for _ in remarks(rows)[:1]), *remarks(rows)])


def markdown(rows: list[Row]) -> str:
    """The same as a Markdown table and a list."""
    lines = ["| " + " | ".join(HEADER) + " |"]
    lines.append("|" + "|".join("---:" if i in _RIGHT_ALIGNED else "---" for i in range(len(HEADER))) + "|")
    lines += ["| " + " | ".join(cell.strip() for cell in _cells(row)) + " |" for row in rows]
    notes = remarks(rows)
    return "\n".join([*lines, *("" for _ in notes[:1]), *(f"- {note}" for note in notes)])


def remarks(rows: list[Row]) -> list[str]:
    """What is missing or failed, each once."""
    found = [
        f"{row.workload}, {store}: {text}" for row in rows for store, texts in row.remarks.items() for text in texts
    ]
    return list(dict.fromkeys(found))


def _cells(row: Row) -> tuple[str, ...]:
    met = {True: "yes", False: "no", None: "?" if row.bar else ""}[row.met]
    return (
        row.label,
        *(_value(row, store) for store in COLUMNS),
        "" if row.ratio is None else f"{row.ratio:.2f}",
        "" if row.noise is None else f"{row.noise:.0%}",
        row.bar,
        met,
    )


def _value(row: Row, store: str) -> str:
    value = row.values.get(store)
    if value is None:
        texts = row.remarks.get(store, [])
        if not texts:
            return "-"
        return next((cell for cell in (FAILED, NOT_INSTALLED) if texts[0].startswith(cell)), "none")
    match row.unit:
        case Unit.RATE:
            return f"{value:,.0f}/s"
        case Unit.MS:
            return f"{value:.2f} ms" if value < 10 else f"{value:.0f} ms"
        case Unit.BYTES:
            return f"{value:,.0f} B"
        case Unit.TIMES:
            return f"{value:.2f}x"
        case Unit.COUNT:
            return f"{value:,.0f}"


def _pad(cell: str, width: int, column: int) -> str:
    return cell.rjust(width) if column in _RIGHT_ALIGNED else cell.ljust(width)
