"""The result of a fault: how often it happened, and what the store lost."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields


@dataclass(slots=True)
class Outcome:
    """The sum of some rounds of one fault."""

    times: int = 0
    """How often the fault happened."""
    acknowledged: int = 0
    """Messages whose append call returned and that were not deleted afterwards."""
    lost: int = 0
    doubled: int = 0
    torn: int = 0
    """Sessions that are neither in the state before an operation nor in the state after it."""
    unfound: int = 0
    """Searches whose results differ from a naive scan of the rows."""
    corrupt: int = 0
    """Files in which SQLite's integrity check finds an error."""
    recovered: int = 0
    """Faults after which the store could be opened, written to and searched."""
    slowest_ms: float = 0.0
    notes: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    not_run: str = ""
    """Why the fault could not run here."""

    @property
    def is_unhurt(self) -> bool:
        """Whether no loss and no error was found."""
        return not any((self.lost, self.doubled, self.torn, self.unfound, self.corrupt, self.complaints))

    @property
    def is_clean(self) -> bool:
        """Whether every promise was kept every time."""
        return self.is_unhurt and self.recovered == self.times

    def add(self, other: Outcome) -> None:
        """Add the numbers of another round."""
        for each in fields(self):
            mine, its = getattr(self, each.name), getattr(other, each.name)
            if each.name == "slowest_ms":
                self.slowest_ms = max(mine, its)
            elif each.name == "notes":
                self.notes = list(dict.fromkeys([*mine, *its]))
            else:
                setattr(self, each.name, mine + its)

    def to_json(self) -> str:
        """The outcome on one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Outcome:
        """The outcome that `to_json` wrote."""
        return cls(**json.loads(text))
