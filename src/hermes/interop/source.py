"""The interface of files that sessions can be imported from; each is checked whole before anything is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from hermes.errors import HermesError
from hermes.state.import_export.session_checks import CheckedSession

ByteProgress = Callable[[int], None]
"""Called with the number of bytes read since the last call."""


class Examined(NamedTuple):
    """The content of a checked file."""

    ids: list[str]
    """The ids of the sessions, in file order."""
    skipped_lines: int = 0
    """How many complete lines are of an unknown kind."""
    trouble: HermesError | None = None
    """Why the file cannot be read to its end; `ids` are the sessions before that point."""


class Source(Protocol):
    """A file in one of the known formats."""

    def examine(self, now: float, progress: ByteProgress) -> Examined:
        """Read and check the whole file."""
        ...

    def sessions(self, now: float, progress: ByteProgress) -> Iterator[CheckedSession]:
        """Yield the sessions that `examine` found; call `examine` first."""
        ...
