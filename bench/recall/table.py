"""What was measured about recall as text: aligned for a terminal, or as Markdown for the documentation."""

from __future__ import annotations

from itertools import groupby

from bench.recall.measurement import DEPTHS, RecallReport, Score
from bench.searchtable import milliseconds

_COLUMNS = ("questions", "search", *(f"any@{depth}" for depth in DEPTHS), "median ms", "p95 ms")
_RIGHT_ALIGNED = (1, 3, 4, 5, 6, 7)


def render(report: RecallReport) -> str:
    """Two aligned tables: by language, then by kind of question."""
    return "\n\n".join(_aligned(lines) for lines in _tables(report))


def markdown(report: RecallReport) -> str:
    """The same as Markdown tables."""
    return "\n\n".join(_as_markdown(lines) for lines in _tables(report))


def _tables(report: RecallReport) -> list[list[tuple[str, ...]]]:
    tables = []
    for name, scores in (("language", report.by_language()), ("kind", report.by_kind())):
        lines = [(name, *_COLUMNS)]
        for _, group in groupby(scores, key=lambda score: score.group):
            lines += [_cells(score, is_first=number == 0) for number, score in enumerate(group)]
        tables.append(lines)
    return tables


def _cells(score: Score, *, is_first: bool) -> tuple[str, ...]:
    return (
        score.group if is_first else "",
        str(score.questions) if is_first else "",
        score.searcher,
        *(f"{value:.1f}" for value in score.any_at),
        milliseconds(score.median_ms),
        milliseconds(score.p95_ms),
    )


def _aligned(lines: list[tuple[str, ...]]) -> str:
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    texts = ["  ".join(_pad(cell, widths[i], i) for i, cell in enumerate(line)).rstrip() for line in lines]
    texts.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(texts)


def _as_markdown(lines: list[tuple[str, ...]]) -> str:
    texts = ["| " + " | ".join(line) + " |" for line in lines]
    texts.insert(1, "|" + "|".join("---:" if i in _RIGHT_ALIGNED else "---" for i in range(len(lines[0]))) + "|")
    return "\n".join(texts)


def _pad(cell: str, width: int, column: int) -> str:
    return cell.rjust(width) if column in _RIGHT_ALIGNED else cell.ljust(width)
