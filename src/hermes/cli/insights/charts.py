"""Bar charts as SVG: they need no script, and say in words what they show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hermes.cli.insights.markup import Markup, tag

WIDTH, HEIGHT = 720.0, 150.0
_TOP, _BOTTOM, _GAP = 4.0, 18.0, 0.2
_LEAST = 1.5
"""How high a bar is at least that stands for something."""


class Bar(NamedTuple):
    """One value, what it stands for, and how it is said."""

    name: str
    value: float
    said: str


def bar_chart(bars: Sequence[Bar], summary: str, marks: Sequence[tuple[int, str]] = ()) -> Markup:
    """Upright bars beside each other; `marks` are the places below which something is written."""
    step = WIDTH / max(1, len(bars))
    most = max((bar.value for bar in bars), default=0.0)
    room = HEIGHT - _TOP - _BOTTOM
    drawn = [_bar(bar, place * step, step, room * bar.value / most) for place, bar in enumerate(bars) if bar.value > 0]
    below = [_mark(text, (place + 0.5) * step) for place, text in marks]
    axis = tag("line", class_="axis", x1=0, y1=_rounded(HEIGHT - _BOTTOM), x2=WIDTH, y2=_rounded(HEIGHT - _BOTTOM))
    return tag("svg", *drawn, axis, *below, viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", role="img", aria_label=summary)


def _bar(bar: Bar, left: float, step: float, height: float) -> Markup:
    tall = max(_LEAST, height)
    return tag(
        "rect",
        tag("title", f"{bar.name}: {bar.said}"),
        x=_rounded(left + step * _GAP / 2),
        y=_rounded(HEIGHT - _BOTTOM - tall),
        width=_rounded(step * (1 - _GAP)),
        height=_rounded(tall),
    )


def _mark(text: str, middle: float) -> Markup:
    anchor = "start" if middle < WIDTH / 8 else "end" if middle > WIDTH * 7 / 8 else "middle"
    return tag("text", text, x=_rounded(middle), y=_rounded(HEIGHT - 4), text_anchor=anchor)


def _rounded(length: float) -> str:
    return f"{length:.1f}"
