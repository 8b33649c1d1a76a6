"""A chart of search: a line per kind of query, a mark per store and size, milliseconds on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from math import log10

from bench.row import OURS, WORDS
from bench.searchrow import NAMES, SearchReport
from bench.sizes import label
from bench.suite import HERMES_AGENT

_LOWEST_MS, _DECADES = 0.1, 5
_AXIS = ("0.1", "1", "10", "100", "1 000", "10 000 ms")

_COLUMNS_PER_DECADE = 16
_OTHERS = {WORDS: ("w", "#c07a00"), HERMES_AGENT: ("h", "#b03060")}
_OURS_SIGNS = ("·", "○", "●")
_OURS_COLORS = ("#9ecae9", "#4c9bd6", "#0b5394")
_BAR_SIGN = "|"

_LEFT, _WIDTH, _ROW_HEIGHT, _TOP = 300, 560, 17, 46


@dataclass(frozen=True, slots=True)
class Series:
    """Marks of one kind."""

    name: str
    sign: str
    color: str
    is_ours: bool
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """The kinds of queries, and how long each took."""

    labels: tuple[str, ...]
    bars: tuple[float, ...]
    series: tuple[Series, ...]

    @classmethod
    def of(cls, report: SearchReport) -> Plot:
        """The chart of a report; the last series covers the others, and that is ours at the largest size."""
        rows = report.rows()
        series = []
        for store, size in report.others().items():
            sign, color = _OTHERS[store]
            values = tuple(row.times.get(store, {}).get(size) for row in rows)
            series.append(Series(f"{NAMES[store]} {label(size)}", sign, color, is_ours=False, values=values))
        shown = report.sizes[-len(_OURS_SIGNS) :]
        first = len(_OURS_SIGNS) - len(shown)
        for size, sign, color in zip(shown, _OURS_SIGNS[first:], _OURS_COLORS[first:], strict=True):
            values = tuple(row.times.get(OURS, {}).get(size) for row in rows)
            series.append(Series(f"ours {label(size)}", sign, color, is_ours=True, values=values))
        return cls(tuple(row.label for row in rows), tuple(row.bar_ms for row in rows), tuple(series))


def as_text(plot: Plot) -> list[str]:
    """The chart for a terminal."""
    width = max(map(len, plot.labels), default=0) + 2
    axis = "".join(text.ljust(_COLUMNS_PER_DECADE) for text in _AXIS).rstrip()
    lines = [" " * width + axis]
    for number, text in enumerate(plot.labels):
        cells = [" "] * (_COLUMNS_PER_DECADE * _DECADES + 1)
        for value, sign in [
            (plot.bars[number], _BAR_SIGN),
            *((each.values[number], each.sign) for each in plot.series),
        ]:
            if value is not None:
                cells[round(_place(value) * (len(cells) - 1))] = sign
        lines.append((text.ljust(width) + "".join(cells)).rstrip())
    legend = ", ".join(f"{each.sign} {each.name}" for each in plot.series)
    return [*lines, f"{' ' * width}{_BAR_SIGN} bar, {legend}"]


def as_svg(plot: Plot) -> str:
    """The chart for a page."""
    height = _TOP + _ROW_HEIGHT * len(plot.labels) + 26
    total = _LEFT + _WIDTH + 80
    size = f'width="{total}" height="{height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
            f'<rect {size} fill="#fff"/>',
            *_svg_legend(plot),
            *_svg_axis(height),
            *(line for number in range(len(plot.labels)) for line in _svg_row(plot, number)),
            "</svg>",
            "",
        ]
    )


def _svg_legend(plot: Plot) -> Iterator[str]:
    at = 12
    for series in plot.series:
        yield _svg_mark(series, at, 14)
        yield f'<text x="{at + 9}" y="18">{escape(series.name)}</text>'
        at += 34 + 7 * len(series.name)
    yield f'<line x1="{at}" x2="{at}" y1="8" y2="20" stroke="#2a2" stroke-width="2"/>'
    yield f'<text x="{at + 9}" y="18">bar</text>'


def _svg_axis(height: int) -> Iterator[str]:
    for decade, text in enumerate(_AXIS):
        x = _x(_LOWEST_MS * 10**decade)
        yield f'<line x1="{x}" x2="{x}" y1="{_TOP - 6}" y2="{height - 20}" stroke="#ddd"/>'
        yield f'<text x="{x}" y="{height - 6}" text-anchor="middle" fill="#555">{text}</text>'


def _svg_row(plot: Plot, number: int) -> Iterator[str]:
    y = _TOP + number * _ROW_HEIGHT + _ROW_HEIGHT // 2
    bar = _x(plot.bars[number])
    yield f'<text x="{_LEFT - 10}" y="{y + 4}" text-anchor="end">{escape(plot.labels[number])}</text>'
    yield f'<line x1="{bar}" x2="{bar}" y1="{y - 7}" y2="{y + 7}" stroke="#2a2" stroke-width="2"/>'
    for series in plot.series:
        value = series.values[number]
        if value is not None:
            yield _svg_mark(series, _x(value), y)


def _svg_mark(series: Series, x: float, y: int) -> str:
    if series.is_ours:
        return f'<circle cx="{x}" cy="{y}" r="5" fill="{series.color}"/>'
    return f'<rect x="{x - 4:g}" y="{y - 4}" width="8" height="8" fill="{series.color}"/>'


def _x(milliseconds: float) -> float:
    return round(_LEFT + _place(milliseconds) * _WIDTH, 1)


def _place(milliseconds: float) -> float:
    """The position of a time between the ends of the scale, 0 to 1."""
    return min(1.0, max(0.0, log10(max(milliseconds, _LOWEST_MS) / _LOWEST_MS) / _DECADES))
