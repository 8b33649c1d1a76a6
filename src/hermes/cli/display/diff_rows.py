"""A difference as rows of the terminal, in colours if it has them."""

from __future__ import annotations

import click

from hermes.agent.safety.diffs import DiffLine, FileDiff
from hermes.cli.display.terminal import display_width, graphemes, printable

_SIGNS = {"gap": "⋮", "context": " ", "removed": "-", "added": "+", "note": "\\"}
_COLOURS = {"removed": "red", "added": "green"}
_LEAST_TEXT = 8
_MIN_NUMBER = 3


def diff_rows(diff: FileDiff, width: int, *, has_colour: bool) -> list[str]:
    """Return the rows of a difference with line numbers; a long line takes several rows, and nothing is left out."""
    digits = max([_MIN_NUMBER, *(len(str(each.number)) for each in diff.lines)])
    margin = digits + len(" + ")
    if width - margin < _LEAST_TEXT:
        digits, margin = 0, len("+ ")
    rows: list[str] = []
    for line in diff.lines:
        for place, part in enumerate(_parts(printable(line.text), max(_LEAST_TEXT, width - margin))):
            number = str(line.number) if line.number and not place and line.kind != "note" else ""
            head = f"{number:>{digits}} " if digits else ""
            rows.append(_styled(line, f"{head}{_SIGNS[line.kind]} {part}", has_colour=has_colour))
    return rows


def _styled(line: DiffLine, row: str, *, has_colour: bool) -> str:
    if not has_colour or line.kind == "context":
        return row
    if colour := _COLOURS.get(line.kind):
        return click.style(row, fg=colour)
    return click.style(row, dim=True)


def _parts(text: str, width: int) -> list[str]:
    """Split a line into the parts that fit into a row."""
    parts, part, columns = [], "", 0
    for each in graphemes(text):
        taken = display_width(each)
        if part and columns + taken > width:
            parts.append(part)
            part, columns = "", 0
        part, columns = part + each, columns + taken
    return [*parts, part]
