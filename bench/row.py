"""A row of the table: one measurement of every store, and the limit for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from bench.rounds import Rounds

OURS, RAW, COUNTING, LEAN, WORDS = "ours", "raw", "counting", "lean", "words"


class Unit(StrEnum):
    """The format of a value."""

    RATE = "/s"
    MS = "ms"
    BYTES = "B"
    TIMES = "x"
    COUNT = ""


@dataclass(slots=True)
class Row:
    """One line of the table."""

    workload: str
    label: str
    unit: Unit
    values: dict[str, float] = field(default_factory=dict)
    ratio: float | None = None
    noise: float | None = None
    bar: str = ""
    met: bool | None = None
    remarks: dict[str, list[str]] = field(default_factory=dict)


def row_of(workload: str, label: str, unit: Unit, rounds: Rounds, key: str) -> Row:
    """The row of one measurement, without a limit."""
    row = Row(workload, label, unit, noise=rounds.spread(RAW, key), ratio=rounds.ratio(OURS, RAW, key))
    for store in rounds.results:
        value = rounds.middle(store, key)
        if value is not None:
            row.values[store] = value
        row.remarks[store] = rounds.remarks(store)
    return row


def all_of(*conditions: bool | None) -> bool | None:
    """True if all hold, False if one does not, None if that is unknown."""
    if False in conditions:
        return False
    return None if None in conditions else True


def any_of(*conditions: bool | None) -> bool | None:
    """True if one holds, False if none does, None if that is unknown."""
    if True in conditions:
        return True
    return None if None in conditions else False


def at_least(value: float | None, limit: float) -> bool | None:
    """Whether a value that may be missing reaches the limit."""
    return None if value is None else value >= limit


def at_most(value: float | None, limit: float) -> bool | None:
    """Whether a value that may be missing stays within the limit."""
    return None if value is None else value <= limit
