"""Search hits as text: grouped by session, with the matches highlighted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes.cli.display.snippet import format_snippet
from hermes.cli.display.terminal import clip, display_width, heading, pad, printable
from hermes.cli.display.times import ago

if TYPE_CHECKING:
    from hermes.state.rows import AnyRow

UNTITLED = "Untitled"
GAP = "  "
INDENT = "  "
WIDEST_LABEL = 24
LEAST_TITLE = 16
LEAST_BESIDE = 40
"""If fewer columns are left, a snippet goes below its role instead of next to it."""
LEAST_WIDTH = 8
"""The minimum width of any text, however narrow the terminal."""


def format_hits(hits: Sequence[AnyRow], *, now: float, width: int) -> list[str]:
    """Format hits by session, in the order of each session's best hit."""
    sessions: dict[str, list[AnyRow]] = {}
    for hit in hits:
        sessions.setdefault(hit["session_id"], []).append(hit)
    labels = {hit["id"]: format_label(hit) for hit in hits}
    moments = {hit["id"]: ago(hit["timestamp"], now) for hit in hits}
    label_width, moment_width = (max(map(display_width, column.values())) for column in (labels, moments))
    lines: list[str] = []
    for found in sessions.values():
        lines += ["", *map(heading, format_heading(found[0], now=now, width=width))]
        for hit in found:
            beside = f"{pad(labels[hit['id']], label_width)}{GAP}{pad(moments[hit['id']], moment_width)}"
            lines += format_hit(beside, hit["snippet"], width)
    return lines[1:]


def format_heading(hit: AnyRow, *, now: float, width: int) -> list[str]:
    """Format a session as one line, or several in a narrow terminal. The id is never cut, so that it can be copied."""
    title = printable(hit["title"] or UNTITLED)
    started = f"started {ago(hit['session_started'], now)}"
    source = clip(printable(str(hit["source"])), max(LEAST_WIDTH, width - len(INDENT)))
    facts = [printable(hit["session_id"]), source, started]
    available = width - display_width(GAP.join(["", *facts]))
    if available >= min(display_width(title), LEAST_TITLE):
        return [GAP.join([clip(title, available), *facts])]
    lines = [clip(title, max(LEAST_WIDTH, width)), f"{INDENT}{facts[0]}"]
    for fact in facts[1:]:
        longer = f"{lines[-1]}{GAP}{fact}"
        if display_width(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(f"{INDENT}{fact}")
    return lines


def format_label(hit: AnyRow) -> str:
    """The role of a message, with the name of its tool if it has one."""
    label = f"{hit['role']} {hit['tool_name']}" if hit["tool_name"] else str(hit["role"])
    return clip(printable(label), WIDEST_LABEL)


def format_hit(beside: str, snippet: str, width: int) -> list[str]:
    """Format a hit: its role and time, with the snippet to the right or, in a narrow terminal, below."""
    first = f"{INDENT}{beside}{GAP}"
    available = width - display_width(first)
    if available < LEAST_BESIDE:
        further = INDENT * 2
        below = format_snippet(snippet, max(LEAST_WIDTH, width - len(further)))
        return [clip(first.rstrip(), max(LEAST_WIDTH, width)), *(f"{further}{line}" for line in below)]
    lines = format_snippet(snippet, available) or [""]
    indents = [first, *[" " * display_width(first)] * (len(lines) - 1)]
    return [f"{indent}{line}".rstrip() for indent, line in zip(indents, lines, strict=True)]
