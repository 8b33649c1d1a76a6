"""The findings of a checkup as text: by group, each with its remedy below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from hermes.cli.display.terminal import heading, highlight, pad
from hermes.cli.display.wrapping import wrap_text
from hermes.phrases import format_size, plural
from hermes.state.maintenance.findings import Finding, Status

TITLES = {
    "program": "Program",
    "file": "File",
    "server": "Server",
    "size": "Size",
    "content": "Sessions and messages",
    "search": "Search index",
    "use": "Use",
    "beside": "Other files",
}
MARKS = {Status.OK: "✓", Status.NOTE: "•", Status.WARNING: "!", Status.ERROR: "✗"}
BLOCK = "█"
BAR = 24
LEAST_WIDTH = 24
"""The smallest width of the text, however small the terminal is."""
NARROW_INDENT = 6
"""The blanks before a text that is below its name, because the terminal is narrow."""


def format_findings(findings: Sequence[Finding], width: int) -> list[str]:
    """Return the lines that show all findings, for a terminal of so many columns."""
    names = max(len(each.name) for each in findings)
    lines: list[str] = []
    for group, some in groupby(findings, key=lambda each: each.group):
        lines.append(heading(TITLES[group]))
        for each in some:
            lines += _format_finding(each, names, width)
    return lines


def summarize_findings(findings: Sequence[Finding]) -> str:
    """Return the result in a few words."""
    counts = Counter(each.status for each in findings)
    bad = [plural(counts[each], str(each)) for each in (Status.ERROR, Status.WARNING, Status.NOTE) if counts[each]]
    is_well = not counts[Status.ERROR] and not counts[Status.WARNING]
    return ", ".join(["Nothing is wrong" if is_well else "", *bad][not is_well :])


def _format_finding(found: Finding, names: int, width: int) -> Iterator[str]:
    indent = " " * (names + 6)
    is_narrow = width < len(indent) + LEAST_WIDTH
    if is_narrow:  # the text is below the name
        indent = " " * NARROW_INDENT
    columns = max(LEAST_WIDTH, width - len(indent))
    first, *more = wrap_text(found.summary, columns, breaks_words=False)
    head = f"  {_mark(found.status)} "
    yield from (
        [f"{head}{found.name}", f"{indent}{first}"] if is_narrow else [f"{head}{pad(found.name, names)}  {first}"]
    )
    yield from (f"{indent}{line}" for line in more)
    parts = found.values.get("parts")
    if isinstance(parts, Mapping):
        yield from (f"{indent}{line}" for line in _format_bars(parts, columns))
    if found.remedy:
        yield from (f"{indent}  {line}" for line in wrap_text(found.remedy, columns - 2, breaks_words=False))


def _mark(status: Status) -> str:
    mark = MARKS[status]
    if status is Status.ERROR:
        return highlight(mark)
    return heading(mark) if status is Status.WARNING else mark


def _format_bars(parts: Mapping[str, int], width: int) -> Iterator[str]:
    """Yield a bar for each part, its length in proportion to the largest."""
    most = max(1, *parts.values())
    sizes = {name: format_size(size) for name, size in parts.items()}
    names, columns = max(map(len, sizes)), max(map(len, sizes.values()))
    longest = max(0, min(BAR, width - names - columns - 4))
    for name, size in parts.items():
        yield f"{name:{names}}  {sizes[name]:>{columns}}  {BLOCK * round(longest * size / most)}".rstrip()
