"""Findings of a checkup as a person reads them: by group, each with what to do below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from hermes.cli.display.terminal import display_width, heading, highlight, pad, printable
from hermes.phrases import counted, sized
from hermes.state.maintenance.findings import Finding, Status

TITLES = {
    "program": "Program",
    "file": "File",
    "server": "Server",
    "size": "Size",
    "content": "Sessions and messages",
    "search": "Search index",
    "use": "Use",
    "beside": "Beside it",
}
MARKS = {Status.OK: "✓", Status.NOTE: "•", Status.WARNING: "!", Status.ERROR: "✗"}
BLOCK = "█"
BAR = 24
LEAST_WIDTH = 24
"""Text is not made narrower than this, however small the terminal."""


def format_findings(findings: Sequence[Finding], width: int) -> list[str]:
    """All findings, for a terminal of so many columns."""
    names = max(len(each.name) for each in findings)
    lines: list[str] = []
    for group, some in groupby(findings, key=lambda each: each.group):
        lines.append(heading(TITLES[group]))
        for each in some:
            lines += _format_finding(each, names, width)
    return lines


def summarize_findings(findings: Sequence[Finding]) -> str:
    """How it stands, in a few words."""
    counts = Counter(each.status for each in findings)
    bad = [counted(counts[each], str(each)) for each in (Status.ERROR, Status.WARNING, Status.NOTE) if counts[each]]
    is_well = not counts[Status.ERROR] and not counts[Status.WARNING]
    return ", ".join(["Nothing is wrong" if is_well else "", *bad][not is_well :])


def _format_finding(found: Finding, names: int, width: int) -> Iterator[str]:
    indent = " " * (names + 6)
    room = max(LEAST_WIDTH, width - len(indent))
    first, *more = _wrap(printable(found.summary), room)
    yield f"  {_mark(found.status)} {pad(found.name, names)}  {first}"
    yield from (f"{indent}{line}" for line in more)
    parts = found.values.get("parts")
    if isinstance(parts, Mapping):
        yield from (f"{indent}{line}" for line in _format_bars(parts, room))
    if found.remedy:
        yield from (f"{indent}  {line}" for line in _wrap(printable(found.remedy), room - 2))


def _mark(status: Status) -> str:
    mark = MARKS[status]
    if status is Status.ERROR:
        return highlight(mark)
    return heading(mark) if status is Status.WARNING else mark


def _format_bars(parts: Mapping[str, int], width: int) -> Iterator[str]:
    """What takes how much, the lengths by the largest."""
    most = max(1, *parts.values())
    sizes = {name: sized(size) for name, size in parts.items()}
    names, columns = max(map(len, sizes)), max(map(len, sizes.values()))
    longest = max(0, min(BAR, width - names - columns - 4))
    for name, size in parts.items():
        yield f"{name:{names}}  {sizes[name]:>{columns}}  {BLOCK * round(longest * size / most)}".rstrip()


def _wrap(text: str, width: int) -> list[str]:
    """Text on lines of so many columns; what is longer than a line runs over, so that it can be copied."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if display_width(longer) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
