"""Which keys on a damaged page are right, and what the others may have been."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from hermes.state.sqlite.repair.fileformat.btrees import LOWEST


def are_in_order(keys: Sequence[int], low: int, high: int) -> bool:
    """Whether keys ascend, as they do on a page, and `low` < key <= `high`."""
    if not keys:
        return True
    return low < keys[0] and keys[-1] <= high and all(a < b for a, b in pairwise(keys))


def correct_rowids(keys: Sequence[int], low: int, high: int) -> list[int]:
    """Return the keys that a page may have had: keys that contradict the others are replaced, if there is a free one.

    If no key is free, the old one stays.
    """
    right = _right_ones(keys, low, high)
    found: list[int | None] = [key if number in right else None for number, key in enumerate(keys)]
    for number in range(len(found)):
        if found[number] is None:
            found[number] = _between(found, number, low, high)
    return [keys[number] if key is None else key for number, key in enumerate(found)]


def _right_ones(keys: Sequence[int], low: int, high: int) -> set[int]:
    """The positions of keys that fit each other, and that fit `low` and `high` unless these seem wrong."""
    inside = [number for number, key in enumerate(keys) if low < key <= high]
    right = _longest_ascending(keys, range(len(keys)))
    outside = len(keys) - len(inside)
    if len(right) == len(keys) and outside > 1:
        return right  # one key is wrong more easily than two of them in the same direction
    return _longest_ascending(keys, inside) if len(inside) > outside else right


def _between(keys: Sequence[int | None], number: int, low: int, high: int) -> int | None:
    """A free key for a position, between those of its neighbours."""
    before = next((key for key in reversed(keys[:number]) if key is not None), low)
    following = next(((at, key) for at, key in enumerate(keys) if at > number and key is not None), None)
    if before > LOWEST:
        limit = high if following is None else following[1] - 1
        return before + 1 if before < limit else None
    if following is None:
        return None
    at, after = following
    return after - (at - number)


def _longest_ascending(keys: Sequence[int], numbers: Sequence[int]) -> set[int]:
    """The positions of the longest ascending sequence of keys."""
    ends: list[int] = []
    end_numbers: list[int] = []
    previous: dict[int, int | None] = {}
    for number in numbers:
        length = bisect_left(ends, keys[number])
        previous[number] = end_numbers[length - 1] if length else None
        ends[length:] = [keys[number], *ends[length + 1 :]]
        end_numbers[length:] = [number, *end_numbers[length + 1 :]]
    found = set()
    last = end_numbers[-1] if end_numbers else None
    while last is not None:
        found.add(last)
        last = previous[last]
    return found
