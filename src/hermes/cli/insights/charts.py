"""Bar charts with a scale, without scripts and with a text alternative.

Only the bars are SVG, as wide as the page; the labels are text beside it, so that they stay readable on a phone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from typing import NamedTuple

from hermes.cli.insights.markup import Markup, tag

WIDTH, HEIGHT = 720.0, 120.0
_GAP = 0.2
_LEAST = 1.5
"""The minimum height of a bar with a value above zero."""
_STEPS = (1.0, 2.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_EDGE = 0.08
"""Labels this near to an end of the axis begin or end there."""


class Bar(NamedTuple):
    """One value with its name and its label."""

    name: str
    value: float
    label: str


def bar_chart(
    bars: Sequence[Bar],
    summary: str,
    marks: Sequence[tuple[int, str]] = (),
    format_value: Callable[[float], str] = "{:,.0f}".format,
) -> Markup:
    """Draw vertical bars with a scale; `marks` are labels below the bars, by index."""
    step = WIDTH / max(1, len(bars))
    top = scale_end(max((bar.value for bar in bars), default=0.0))
    rects = [_bar(bar, place * step, step, HEIGHT * bar.value / top) for place, bar in enumerate(bars) if bar.value > 0]
    lines = [_line(HEIGHT * share) for share in (0.0, 0.5, 1.0)]
    picture = tag(
        "svg",
        *lines,
        *rects,
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        preserveAspectRatio="none",
        role="img",
        aria_label=summary,
    )
    scale = tag(
        "div", *(tag("span", format_value(each)) for each in (top, top / 2, 0)), class_="scale", aria_hidden="true"
    )
    below = [_mark(text, (place + 0.5) / max(1, len(bars))) for place, text in marks]
    return tag("div", scale, picture, tag("div", *below, class_="marks", aria_hidden="true"), class_="chart")


def scale_end(most: float) -> float:
    """Return the end of a scale: a round number, not below the largest value, whose half is as round."""
    if most <= 0:
        return 2.0
    unit = 10.0 ** floor(log10(most))
    end = next((unit * each for each in _STEPS if unit * each >= most), unit * _STEPS[-1])
    return float(2 * ceil(end / 2)) if most >= 1 and float(most).is_integer() else end


def _bar(bar: Bar, left: float, step: float, height: float) -> Markup:
    tall = max(_LEAST, height)
    return tag(
        "rect",
        tag("title", f"{bar.name}: {bar.label}"),
        x=_format_length(left + step * _GAP / 2),
        y=_format_length(HEIGHT - tall),
        width=_format_length(step * (1 - _GAP)),
        height=_format_length(tall),
    )


def _line(y: float) -> Markup:
    return tag("line", class_="axis", x1=0, y1=_format_length(y), x2=_format_length(WIDTH), y2=_format_length(y))


def _mark(text: str, share: float) -> Markup:
    if share < _EDGE:
        return tag("span", text, class_="first")
    if share > 1 - _EDGE:
        return tag("span", text, class_="last")
    return tag("span", text, style=f"left: {100 * share:.1f}%")


def _format_length(length: float) -> str:
    return f"{length:.1f}"
