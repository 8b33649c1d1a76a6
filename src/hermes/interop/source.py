"""Files that sessions can be brought in from: examined whole before anything is taken from one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from hermes.errors import HermesError
from hermes.state.import_export.session_checks import CheckedSession

Tell = Callable[[int], None]
"""Hears how many bytes more have been gone through."""


class Examined(NamedTuple):
    """What there is in a file."""

    ids: list[str]
    """Of the sessions, in their order."""
    skipped_lines: int = 0
    """Lines that are whole, but of no kind that is known here."""
    trouble: HermesError | None = None
    """Why the file cannot be read to its end; the sessions are those before that."""


class Source(Protocol):
    """A file in one of the known forms."""

    def examine(self, now: float, tell: Tell) -> Examined:
        """Go through the whole file and check all that is in it."""
        ...

    def sessions(self, now: float, tell: Tell) -> Iterator[CheckedSession]:
        """The sessions that were found; only after they were."""
        ...
