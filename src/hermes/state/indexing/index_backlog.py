"""Index the messages of a bulk import at its end, in slices between which others can write."""

from __future__ import annotations

import time

from hermes.state.engine import CATCH_UP, Reading, Report, Transaction
from hermes.state.operations import Operations, read

PAUSE_S = 0.05
PATIENCE_S = 15.0
"""How long to wait without progress before giving up."""


class WithoutIndexing:
    """A transaction that does not notify the indexer of added messages."""

    def __init__(self, tx: Transaction) -> None:
        self.dialect, self.is_repeat = tx.dialect, tx.is_repeat
        self.rows, self.row, self.value = tx.rows, tx.row, tx.value
        self.table, self.tables = tx.table, tx.tables
        self.run, self.send, self.lock_and_number, self.run_many = tx.run, tx.send, tx.lock_and_number, tx.run_many
        self.insert_messages, self.lock_and_read, self.require = tx.insert_messages, tx.lock_and_read, tx.require
        self.add_plain = tx.add_plain

    def note_added_message(self, message_id: int, /) -> None:
        """Do nothing: messages of a bulk import are indexed at the end."""


def index_backlog(store: Operations, report: Report | None = None) -> int:
    """Index all unindexed messages, and return how many remain; a search finds those too."""
    first = indexed = _indexed_upto(store)
    newest = read(store, lambda tx: int(tx.value("SELECT MAX(id) FROM messages") or 0))
    deadline = time.monotonic() + PATIENCE_S
    while indexed < newest and time.monotonic() < deadline:
        store._engine.heal_index(CATCH_UP)
        time.sleep(PAUSE_S)
        if (now_indexed := _indexed_upto(store)) != indexed:
            indexed, deadline = now_indexed, time.monotonic() + PATIENCE_S
        if report is not None:
            report("indexing", indexed - first, newest - first)
    return max(0, newest - indexed)


def _indexed_upto(store: Operations) -> int:
    def coverage(tx: Reading) -> int:
        return store._engine.index.coverage(tx, 0).upto

    return read(store, coverage)
