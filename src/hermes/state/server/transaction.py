"""A connection while one thread has it, and the transaction on it."""

from __future__ import annotations

from typing import Any, Protocol

from hermes.state.engine import Transaction, Values


class ServerTransaction(Transaction, Protocol):
    """Runs the statements of one transaction after the other."""

    newest_message: int
    """The highest id among the messages that this transaction added; 0: none."""

    def begin(self, *, read_only: bool, timeout_s: float | None, is_repeat: bool = False) -> None:
        """Start a transaction whose statements wait no longer than this; one that only reads sees one moment."""
        ...

    def commit(self) -> None:
        """End it and keep what it did; raises `CommitUnknown` where that is not known to have been done."""
        ...

    def roll_back(self) -> None:
        """End it and undo what it did; whatever state it is in, this raises nothing."""
        ...

    def row(self, sql: str, /, **values: Any) -> Values | None:
        """The first row of a query."""
        rows = self.rows(sql, **values)
        return rows[0] if rows else None

    def value(self, sql: str, /, **values: Any) -> Any:
        """The first column of the first row, or None."""
        rows = self.rows(sql, **values)
        return rows[0][0] if rows else None

    def note_added_message(self, message_id: int, /) -> None:
        """Hear of a new message, so that the search index can follow."""
        self.newest_message = max(self.newest_message, message_id)
