"""Bar charts as SVG, without scripts and with a text alternative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hermes.cli.insights.markup import Markup, tag

WIDTH, HEIGHT = 720.0, 150.0
_TOP, _BOTTOM, _GAP = 4.0, 18.0, 0.2
_LEAST = 1.5
"""The minimum height of a bar with a value above zero."""


class Bar(NamedTuple):
    """One value with its name and its label."""

    name: str
    value: float
    label: str


def bar_chart(bars: Sequence[Bar], summary: str, marks: Sequence[tuple[int, str]] = ()) -> Markup:
    """Draw vertical bars; `marks` are labels below the bars, by index."""
    step = WIDTH / max(1, len(bars))
    most = max((bar.value for bar in bars), default=0.0)
    tallest = HEIGHT - _TOP - _BOTTOM
    rects = [
        _bar(bar, place * step, step, tallest * bar.value / most) for place, bar in enumerate(bars) if bar.value > 0
    ]
    below = [_mark(text, (place + 0.5) * step) for place, text in marks]
    axis = tag(
        "line", class_="axis", x1=0, y1=_format_length(HEIGHT - _BOTTOM), x2=WIDTH, y2=_format_length(HEIGHT - _BOTTOM)
    )
    return tag("svg", *rects, axis, *below, viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", role="img", aria_label=summary)


def _bar(bar: Bar, left: float, step: float, height: float) -> Markup:
    tall = max(_LEAST, height)
    return tag(
        "rect",
        tag("title", f"{bar.name}: {bar.label}"),
        x=_format_length(left + step * _GAP / 2),
        y=_format_length(HEIGHT - _BOTTOM - tall),
        width=_format_length(step * (1 - _GAP)),
        height=_format_length(tall),
    )


def _mark(text: str, middle: float) -> Markup:
    anchor = "start" if middle < WIDTH / 8 else "end" if middle > WIDTH * 7 / 8 else "middle"
    return tag("text", text, x=_format_length(middle), y=_format_length(HEIGHT - 4), text_anchor=anchor)


def _format_length(length: float) -> str:
    return f"{length:.1f}"
