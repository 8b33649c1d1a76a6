"""The preview and the result of a deletion."""

from __future__ import annotations

from typing import NamedTuple


class Outlook(NamedTuple):
    """What a prune would delete now."""

    sessions: int = 0
    delegates: int = 0
    """Sessions that agents created for those; they are deleted too."""
    messages: int = 0
    titled: int = 0
    archived: int = 0
    oldest: float | None = None
    """The last activity of the session that has been idle longest."""
    newest: float | None = None
    """The last activity of the most recently active session."""
    by_source: tuple[tuple[str, int], ...] = ()


class Receipt(NamedTuple):
    """What a deletion removed."""

    sessions: int = 0
    """How many of the selected sessions were deleted."""
    delegates: int = 0
    messages: int = 0
    files: int = 0
    is_erased: bool = False
    """Whether the deleted rows were also erased from the store's files."""

    def __add__(self, other: Receipt) -> Receipt:  # type: ignore[override]  # a sum, not a longer tuple
        """Add two deletions; `is_erased` is set only once, after the last."""
        return self._replace(
            sessions=self.sessions + other.sessions,
            delegates=self.delegates + other.delegates,
            messages=self.messages + other.messages,
            files=self.files + other.files,
        )
