"""Numbers of messages as people write them: 3k, 100k, 5M."""

from __future__ import annotations

import argparse

REFERENCE = 100_000
"""The size that larger ones are compared with."""

_UNITS = {"k": 1_000, "M": 1_000_000}


def label(size: int) -> str:
    """A size in its largest whole unit."""
    for unit, factor in reversed(_UNITS.items()):
        if size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def parse_all(text: str) -> tuple[int, ...]:
    """Sizes between commas, the smallest first."""
    return tuple(sorted({_parse(part.strip()) for part in text.split(",")}))


def _parse(text: str) -> int:
    unit = _UNITS.get(text[-1:], 1)
    digits = text[:-1] if unit > 1 else text
    if not digits.isdecimal() or int(digits) * unit < 1_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 100k or 1M, at least 1k")
    return int(digits) * unit
