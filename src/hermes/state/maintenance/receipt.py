"""What a deletion would take, and what it took."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a pruning would take if it began now."""

    sessions: int = 0
    delegates: int = 0
    """Sessions that agents made for those, which go with them."""
    messages: int = 0
    titled: int = 0
    archived: int = 0
    oldest: float | None = None
    """The last activity of the session that has been idle longest."""
    newest: float | None = None
    """The last activity of the one that has been idle shortest."""
    by_source: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a deletion took."""

    sessions: int = 0
    """Of those that were named, or that a rule named."""
    delegates: int = 0
    messages: int = 0
    files: int = 0
    is_erased: bool = False
    """Whether what was deleted can no longer be read from the store's files either."""

    def __add__(self, other: Receipt) -> Receipt:
        """Both deletions as one; erased is said once, at the end of all of them."""
        return replace(
            self,
            sessions=self.sessions + other.sessions,
            delegates=self.delegates + other.delegates,
            messages=self.messages + other.messages,
            files=self.files + other.files,
        )
