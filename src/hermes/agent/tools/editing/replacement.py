"""Replaces an exact part of a text, and explains to the model why a part cannot be replaced."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from hermes.errors import InvalidValue
from hermes.phrases import plural

MAX_LISTED = 10
"""How many places of a repeated part are named."""
MAX_COUNTED = 1_000

_NUMBERED = re.compile(r"\s*\d+\t")
_CRLF = "\r\n"


def replace_part(text: str, old: str, new: str, *, is_everywhere: bool = False) -> str:
    """Return a text in which `old`, which it must have exactly once, is `new`; `is_everywhere` replaces each of them.

    A line break in `old` stands for both kinds. Raises `InvalidValue` with a reason that a model can act on.
    """
    old, new = old.replace(_CRLF, "\n"), new.replace(_CRLF, "\n")
    if not old:
        raise InvalidValue("old is empty", hint="use write_file for a new file, or give the lines to replace")
    if old == new:
        raise InvalidValue("old and new are the same, so nothing would change")
    pattern = re.compile("\r?\n".join(map(re.escape, old.split("\n"))))
    places = list(_places(pattern, text))
    if not places:
        raise InvalidValue(_why_missing(text, old))
    if len(places) > 1 and not is_everywhere:
        raise InvalidValue(_why_ambiguous(text, places))
    return pattern.sub(lambda found: _with_line_breaks_of(found[0], new), text, count=0 if is_everywhere else 1)


def _places(pattern: re.Pattern[str], text: str) -> Iterator[int]:
    """Yield where the part begins, also where it overlaps itself."""
    found = pattern.search(text)
    for _ in range(MAX_COUNTED):
        if found is None:
            return
        yield found.start()
        found = pattern.search(text, found.start() + 1)


def _with_line_breaks_of(replaced: str, new: str) -> str:
    return new.replace("\n", _CRLF) if _CRLF in replaced else new


def _why_ambiguous(text: str, places: list[int]) -> str:
    lines = ", ".join(str(_line_at(text, each)) for each in places[:MAX_LISTED])
    more = ", ..." if len(places) > MAX_LISTED else ""
    return (
        f"old occurs {len(places)} times, in lines {lines}{more}; give more lines around the one that you mean, or set"
        " replace_all"
    )


def _why_missing(text: str, old: str) -> str:
    """Return why a part is not in a text: the usual mistakes first."""
    wanted = old.split("\n")
    if all(_NUMBERED.match(each) for each in wanted if each.strip()):
        return "old does not occur: it begins with the line numbers that read_file adds; leave them out"
    lines = text.split("\n")
    bare = [" ".join(each.split()) for each in lines]
    bare_wanted = [" ".join(each.split()) for each in wanted]
    if any(bare_wanted):
        begins = (start for start, each in enumerate(bare) if each == bare_wanted[0])
        for start in islice(begins, MAX_COUNTED):
            last = start + len(bare_wanted)
            if bare[start:last] == bare_wanted:
                return f"old does not occur exactly: {_named(start + 1, last)} only in blanks; copy them exactly"
    first = next((each for each in bare_wanted if each), "")
    near = [number for number, each in enumerate(bare, start=1) if each == first] if first else []
    if near:
        place = f"line {near[0]}" if len(near) == 1 else f"lines {', '.join(map(str, near[:MAX_LISTED]))}"
        return (
            f"old does not occur: its first line is {place}, but what follows there is different; read the file again"
        )
    size = plural(len(lines), "line")
    return f"old does not occur in the file, which has {size}; read it again, and copy from it exactly"


def _named(first: int, last: int) -> str:
    return f"line {first} differs" if first == last else f"lines {first}-{last} differ"


def _line_at(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
