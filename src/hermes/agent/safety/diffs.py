"""The difference between two contents of a file, as data that a person can be shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from hermes.agent.safety.visible_text import make_path_visible, make_visible

CONTEXT_LINES = 3
"""How many unchanged lines are shown around a change."""
MAX_PAIRS = 200_000
"""Texts with more pairs of equal lines are shown as removed and added; comparing them would take seconds."""

NO_LINE_BREAK = "no line break at the end of the file"

Kind = Literal["gap", "context", "removed", "added", "note"]

_SIGNS: dict[Kind, str] = {"gap": "@@ ", "context": " ", "removed": "-", "added": "+", "note": "\\ "}

_Change = tuple[int, int, int, int]
"""The first line and the line after the last one that differ, in the former content and in the new one."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a difference."""

    kind: Kind
    text: str
    """The line without its line break, with escapes for characters that could hide or act."""
    number: int = 0
    """Its number in the file: in the former one for a removed line, else in the new one."""


@dataclass(frozen=True, slots=True)
class FileDiff:
    """What a change does to a file."""

    path: str
    lines: tuple[DiffLine, ...]
    added: int
    removed: int

    @property
    def text(self) -> str:
        """The difference as text, in the usual form."""
        return "\n".join(f"{_SIGNS[each.kind]}{each.text}" for each in self.lines)


def compare(path: str, before: str, after: str) -> FileDiff:
    """Return the difference between two contents; an empty content has no lines."""
    old, new = _split(before), _split(after)
    lines: list[DiffLine] = []
    end = 0
    for group in _grouped(_changes(old, new)):
        start = max(group[0][2] - CONTEXT_LINES, 0)
        if start > end or (not lines and start):
            lines.append(DiffLine("gap", f"line {start + 1}"))
        for old_first, old_last, first, last in group:
            lines += _context(new, max(start, end), first)
            lines += _shown("removed", old, old_first, old_last)
            lines += _shown("added", new, first, last)
            start = end = last
        end = min(group[-1][3] + CONTEXT_LINES, len(new))
        lines += _context(new, group[-1][3], end)
    kinds = Counter(each.kind for each in lines)
    return FileDiff(make_path_visible(path), tuple(lines), kinds["added"], kinds["removed"])


def _split(text: str) -> list[str]:
    """Return the lines with their line breaks; only a line feed ends a line."""
    return [f"{line}\n" for line in text.split("\n")[:-1]] + ([last] if (last := text.rpartition("\n")[2]) else [])


def _changes(old: Sequence[str], new: Sequence[str]) -> Iterator[_Change]:
    """Yield the parts that differ."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    kept = 0
    while kept < min(len(old), len(new)) - start and old[-1 - kept] == new[-1 - kept]:
        kept += 1
    left, right = old[start : len(old) - kept], new[start : len(new) - kept]
    if not left and not right:
        return
    counts = Counter(right)
    if sum(count * counts[line] for line, count in Counter(left).items()) > MAX_PAIRS:
        yield start, start + len(left), start, start + len(right)
        return
    for kind, old_first, old_last, first, last in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if kind != "equal":
            yield start + old_first, start + old_last, start + first, start + last


def _grouped(changes: Iterator[_Change]) -> list[list[_Change]]:
    """Put changes together whose context would overlap."""
    groups: list[list[_Change]] = []
    for each in changes:
        if groups and each[2] - groups[-1][-1][3] <= 2 * CONTEXT_LINES:
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def _context(new: Sequence[str], first: int, last: int) -> list[DiffLine]:
    return _shown("context", new, first, last)


def _shown(kind: Kind, lines: Sequence[str], first: int, last: int) -> list[DiffLine]:
    shown: list[DiffLine] = []
    for number in range(first, last):
        text = lines[number]
        shown.append(DiffLine(kind, _visible_line(text.removesuffix("\n")), number + 1))
        if not text.endswith("\n"):
            shown.append(DiffLine("note", NO_LINE_BREAK, number + 1))
    return shown


def _visible_line(line: str) -> str:
    """Return a line with escapes; its tabs and the blanks at its end are made visible in the usual way."""
    body = line.rstrip(" ")
    return "→   ".join(map(make_visible, body.split("\t"))) + "·" * (len(line) - len(body))
