"""Finds references in a text and writes them; nothing here reads a file.

    @file:PATH  @file:PATH:10  @file:PATH:10-25  @folder:PATH  @diff  @staged  @git:N  @url:URL

A value with blanks is quoted: `@file:"my file.txt":3-9`. An e-mail address, another `@name` and `\\@diff` are text.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Literal, cast

Kind = Literal["file", "folder", "diff", "staged", "git", "url"]

MAX_CHARACTERS = 4_096
"""A longer value is no reference."""

_QUICKLY_READ = 10_000
_BEGINNINGS = ("@file:", "@folder:", "@git:", "@url:", "@diff", "@staged")
_QUOTES = "\"'`"
_REFERENCE = re.compile(
    rf"""(?<![\w/@\\])@(?:
        (?P<bare>diff|staged)(?![\w@/-])(?![.:]\w)
      | (?P<kind>file|folder|git|url):
        (?: (?P<quote>[{_QUOTES}])(?P<quoted>[^\n]{{1,{MAX_CHARACTERS}}}?)(?P=quote)
            (?::(?P<first>[0-9]{{1,9}})(?:-(?P<last>[0-9]{{1,9}}))?(?!\w))?
          | (?P<plain>\S*) )
    )""",
    re.VERBOSE,
)
_WITH_LINES = re.compile(r"(.+?):([0-9]{1,9})(?:-([0-9]{1,9}))?", re.DOTALL)
_SENTENCE_MARKS = ",.;:!?\u3002\uff0c\uff1b\uff1a\uff01\uff1f\u3001"
_OPENERS = {")": "(", "]": "[", "}": "{", ">": "<"}
_PARENT = ".."


@dataclass(frozen=True, slots=True)
class Lines:
    """A range of lines as the user typed it; the first line of a file is 1."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference in a text."""

    kind: Kind
    value: str
    """The path, the URL, or the number of commits; empty for `@diff` and `@staged`."""
    lines: Lines | None
    text: str
    """The reference as the user typed it."""


def find_references(text: str) -> list[Reference]:
    """Return the references in a text in their order, each of them once."""
    if "@" not in text:
        return []
    found = (_reference(match) for match in _REFERENCE.finditer(text))
    unique = {(each.kind, each.value, each.lines): each for each in reversed([each for each in found if each])}
    return list(reversed(unique.values()))


def write_reference(kind: Literal["file", "folder"], path: str) -> str | None:
    """Return a reference to a path, in quotes if it needs them; None if no reference can name the path."""
    for written in (f"@{kind}:{path}", *(f"@{kind}:{quote}{path}{quote}" for quote in _QUOTES)):
        if [(each.kind, each.value, each.lines, each.text) for each in find_references(written)] == [
            (kind, path, None, written)
        ]:
            return written
    return None


def _reference(match: re.Match[str]) -> Reference | None:
    """Return a match as a reference, or None if its value is missing or too long."""
    if match["bare"]:
        return Reference(cast("Kind", match["bare"]), "", None, match[0])
    kind = cast("Kind", match["kind"])
    head = f"@{kind}:"
    if match["quote"]:
        value, lines = match["quoted"], _lines(match["first"], match["last"])
        if kind != "file":
            return Reference(kind, value, None, f"{head}{match['quote']}{value}{match['quote']}")
        return Reference(kind, value, lines, match[0])
    if len(match["plain"]) > MAX_CHARACTERS:
        return None
    value, rest = _without_sentence(match["plain"])
    if kind in ("file", "folder"):
        value += _dots_of_path(value, rest)
    if not value and kind != "git":
        return None
    with_lines = _WITH_LINES.fullmatch(value) if kind == "file" else None
    if with_lines is None:
        return Reference(kind, value, None, f"{head}{value}")
    return Reference(kind, with_lines[1], _lines(with_lines[2], with_lines[3]), f"{head}{value}")


def _lines(first: str | None, last: str | None) -> Lines | None:
    return None if first is None else Lines(int(first), int(first if last is None else last))


def _without_sentence(value: str) -> tuple[str, str]:
    """Return a value without the punctuation, the brackets and the quotes of the sentence around it, and these."""
    counts = Counter(value)
    end = len(value)
    while end and _is_of_sentence(value[end - 1], counts):
        end -= 1
        counts[value[end]] -= 1
    return value[:end], value[end:]


def _is_of_sentence(last: str, counts: Counter[str]) -> bool:
    """Whether the last character of a value, whose characters are counted, does not belong to the value."""
    if last in _OPENERS:
        return counts[last] > counts[_OPENERS[last]]
    return last in _SENTENCE_MARKS or (last in _QUOTES and counts[last] % 2 == 1)


def _dots_of_path(kept: str, rest: str) -> str:
    """Return the dots that belong to a path such as `.` or `../..` and not to the sentence."""
    if kept and not kept.endswith("/"):
        return ""
    dots = rest[: len(rest) - len(rest.lstrip("."))]
    if dots == _PARENT or not kept:
        return dots[: len(_PARENT)]
    return ""


def has_references(text: str) -> bool:
    """Whether a text has a reference; a long text counts if it may have one, because an event loop calls this."""
    if len(text) > _QUICKLY_READ:
        return any(each in text for each in _BEGINNINGS)
    return bool(find_references(text))
