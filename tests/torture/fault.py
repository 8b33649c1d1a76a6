"""What a fault is: a name, a line for the table, and a round that strikes a fresh store and judges it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.torture.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Place:
    """Where a round takes place, and how."""

    directory: Path
    """Empty, and this round's own."""
    random: Random
    is_quick: bool
    """Whether a shorter form is wanted, which still can fail."""

    @property
    def store(self) -> Path:
        """The file that is to suffer."""
        return self.directory / "state.db"


@dataclass(frozen=True, slots=True)
class Fault:
    """One way in which a store is hurt."""

    name: str
    title: str
    """What is done, as the table says it."""
    strike: Callable[[Place], Outcome]
    """One round, in a process that has no thread and no open store."""
    rounds: int
    """How many rounds make the fault's part of a run of ten minutes."""
