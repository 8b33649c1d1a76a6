"""Queries to a server's search index: its coverage, its time limit, and whether matches are frequent."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager

from hermes.query.match import Document, matches
from hermes.query.tree import Node
from hermes.state.engine import Coverage, IndexDamaged, OutOfTime, Reading, Values
from hermes.state.indexing.indexed_text import search_text
from hermes.state.operations import placeholders
from hermes.state.server.faults import ServerError

INDEXED_UPTO, EPOCH = "indexed_upto", "index_epoch"
_MARKS = {"upto": INDEXED_UPTO, "epoch": EPOCH}

SAMPLE, FREQUENT = 128, 3
"""If `FREQUENT` of `SAMPLE` messages match, reading messages is the fastest way to find some."""


def read_coverage(tx: Reading, max_stale: int, stale: str) -> Coverage:
    """Messages up to `indexed_upto` are indexed, except those that the query `stale` selects."""
    (_, marked), (_, rows) = tx.tables(
        [
            ('SELECT "key", value FROM state_meta WHERE "key" IN (:upto, :epoch)', _MARKS),
            (stale, {"upto": INDEXED_UPTO, "limit": max_stale}),
        ]
    )
    marks: dict[str, str] = dict(marked)
    return Coverage(int(marks.get(INDEXED_UPTO) or 0), tuple(row[0] for row in rows), int(marks.get(EPOCH) or 0))


@contextmanager
def within_deadline(deadline: float, out_of_time: Container[str], damaged: Container[str]) -> Iterator[float]:
    """Yield the seconds left for an index query; raise OutOfTime or IndexDamaged for these codes of the server."""
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise OutOfTime
    try:
        yield left_s
    except ServerError as exc:
        if exc.code in out_of_time:
            raise OutOfTime from None
        if exc.code in damaged:
            raise IndexDamaged from exc
        raise


def is_frequent(query: Node, ids: Sequence[int], run_query: Callable[..., list[Values]]) -> bool:
    """Whether so many of these messages match that reading the newest messages soon finds some."""
    listed, values = placeholders("id", ids)
    rows = run_query(f"SELECT role, content, tool_name, tool_calls FROM messages WHERE id IN ({listed})", **values)
    return sum(matches(query, Document(search_text(*row))) for row in rows) >= FREQUENT
