"""The measurements of search as text: aligned for a terminal, or as Markdown for the documentation."""

from __future__ import annotations

from bench import plot
from bench.job import Result
from bench.row import OURS
from bench.searchrow import NAMES, SearchReport, SearchRow
from bench.sizes import label

NOT_AVAILABLE = "n/a"


def render(report: SearchReport) -> str:
    """An aligned table, a chart, then the build times and the remarks."""
    rows = report.rows()
    lines = [_header(report), *(_cells(row, report) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    texts = ["  ".join(_pad(cell, widths[i], i) for i, cell in enumerate(line)) for line in lines]
    texts.insert(1, "  ".join("-" * width for width in widths))
    picture = plot.as_text(plot.Plot.of(report))
    return "\n".join([*(text.rstrip() for text in texts), "", *picture, "", *_notes(report, rows)])


def markdown(report: SearchReport, picture: str) -> str:
    """The same as a Markdown table, with a link to the chart, and a list."""
    header, rows = _header(report), report.rows()
    last = len(header) - 2
    lines = ["| " + " | ".join(header) + " |"]
    lines.append("|" + "|".join("---:" if 0 < i < last else "---" for i in range(len(header))) + "|")
    lines += ["| " + " | ".join(_cells(row, report)) + " |" for row in rows]
    shown = f"![Milliseconds by kind of query and by size, on a logarithmic scale]({picture})"
    return "\n".join([*lines, "", shown, "", *(f"- {note}" for note in _notes(report, rows))])


def milliseconds(value: float | None) -> str:
    """A time in a cell."""
    if value is None:
        return NOT_AVAILABLE
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def _header(report: SearchReport) -> list[str]:
    largest = label(report.largest)
    return [
        "search, ms",
        *(f"ours {label(size)}" for size in report.sizes),
        f"worst {largest}",
        f"CPU {largest}",
        *([f"{largest}/{label(report.reference)}"] if report.reference != report.largest else []),
        "results",
        "complete",
        f"{report.unindexed} unindexed",
        *(f"{NAMES[store]} {label(size)}" for store, size in report.others().items()),
        "raw noise",
        "bar",
        "met",
    ]


def _cells(row: SearchRow, report: SearchReport) -> list[str]:
    largest = report.largest
    ours = row.times.get(OURS, {})
    return [
        row.label,
        *(milliseconds(ours.get(size)) for size in report.sizes),
        milliseconds(row.worst.get(largest)),
        "" if row.cpu is None else milliseconds(row.cpu),
        *(["" if row.ratio is None else f"{row.ratio:.1f}x"] if report.reference != largest else []),
        row.results,
        "" if row.complete is None else "yes" if row.complete == 1 else f"{row.complete:.0%}",
        "" if row.unindexed is None else milliseconds(row.unindexed),
        *(milliseconds(row.times.get(store, {}).get(size)) for store, size in report.others().items()),
        "" if row.noise is None else f"{row.noise:.0%}",
        row.bar,
        {True: "yes", False: "no", None: "?"}[row.met],
    ]


def _notes(report: SearchReport, rows: list[SearchRow]) -> list[str]:
    notes = [_built(store, size, result) for store, found in report.builds.items() for size, result in found.items()]
    late = [row.label for row in rows if row.unindexed is not None and row.unindexed > row.bar_ms]
    if late:
        notes.append(f"over the bar while {report.unindexed} messages are unindexed: {'; '.join(late)}")
    lacking: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for store, reason in row.lacking.items():
            lacking.setdefault((store, reason), []).append(row.label)
    notes += [f"{NAMES[store]}, {reason}: {'; '.join(labels)}" for (store, reason), labels in lacking.items()]
    notes += [remark for row in rows for remark in row.remarks]
    return list(dict.fromkeys(notes))


def _built(store: str, size: int, result: Result) -> str:
    name = f"filled {NAMES[store]} {label(size)}"
    if "bytes" not in result:
        return f"{name}: {result.get('error') or result.get('unsupported')}"
    seconds, rate, heavy, text = (float(result[key]) for key in ("seconds", "rate", "bytes", "text"))
    return f"{name}: {seconds:,.0f} s, {rate:,.0f} messages/s, {heavy:,.0f} B per message of {text:.0f} B text"


def _pad(cell: str, width: int, column: int) -> str:
    return cell.rjust(width) if column else cell.ljust(width)
