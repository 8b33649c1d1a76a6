"""A fault: its name, its line in the table, and the function that damages a new store and checks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.torture.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Trial:
    """The directory and the random numbers of one round."""

    directory: Path
    """Empty, and this round's own."""
    random: Random
    is_quick: bool
    """Whether to run a shorter form, which can still fail."""

    @property
    def store(self) -> Path:
        """The database file that the fault damages."""
        return self.directory / "state.db"


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to damage a store."""

    name: str
    title: str
    """What the fault does, for the table."""
    strike: Callable[[Trial], Outcome]
    """One round, in a process that has no thread and no open store."""
    rounds: int
    """How many rounds make the fault's part of a run of ten minutes."""
