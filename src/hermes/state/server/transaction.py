"""A connection while one thread uses it, and the transaction on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from hermes.state.engine import Transaction, Values

if TYPE_CHECKING:
    from hermes.state.owner import Asker


class ServerTransaction(Transaction, Protocol):
    """Runs the statements of one transaction at a time."""

    newest_message: int
    """The highest id among the messages that this transaction added; 0 if it added none."""

    def begin(self, *, read_only: bool, timeout_s: float | None, is_repeat: bool = False) -> None:
        """Start a transaction with a time limit for its statements; a read-only one sees one moment."""
        ...

    def commit(self) -> None:
        """Commit the transaction; raise `CommitUnknown` if it is not known whether that was done."""
        ...

    def roll_back(self) -> None:
        """Roll back the transaction, whatever state it is in; never raises."""
        ...

    def row(self, sql: str, /, **values: Any) -> Values | None:
        """The first row of a query."""
        rows = self.rows(sql, **values)
        return rows[0] if rows else None

    def value(self, sql: str, /, **values: Any) -> Any:
        """The first column of the first row, or None."""
        rows = self.rows(sql, **values)
        return rows[0][0] if rows else None

    def add_plain(
        self, session_id: str, rows: Sequence[Mapping[str, Any]], preview: str | None, calls: int, asker: Asker, /
    ) -> Sequence[int] | None:
        """Return None: the session's row is locked and read in one round trip."""
        return None

    def note_added_message(self, message_id: int, /) -> None:
        """Note that a message was added, so that the search index is updated after the commit."""
        self.newest_message = max(self.newest_message, message_id)
