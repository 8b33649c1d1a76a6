"""What came of a fault: how often it struck, and what the store lost by it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields


@dataclass(slots=True)
class Outcome:
    """The sum of some rounds of one fault."""

    times: int = 0
    """How often the fault struck."""
    acknowledged: int = 0
    """Messages that a call had answered for and nobody had taken away since."""
    lost: int = 0
    doubled: int = 0
    torn: int = 0
    """Sessions that are neither as they were before an operation nor as they should be after it."""
    unfound: int = 0
    """Searches that did not find just what a naive scan of the rows finds."""
    corrupt: int = 0
    """Files that SQLite finds fault with."""
    recovered: int = 0
    """Faults after which the store was opened, was written to and found what was written."""
    slowest_ms: float = 0.0
    notes: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    not_run: str = ""
    """Why the fault could not be made here."""

    @property
    def is_unhurt(self) -> bool:
        """Whether nothing was found that should not be."""
        return not any((self.lost, self.doubled, self.torn, self.unfound, self.corrupt, self.complaints))

    @property
    def is_clean(self) -> bool:
        """Whether every promise was kept, every time."""
        return self.is_unhurt and self.recovered == self.times

    def add(self, other: Outcome) -> None:
        """Count another round in."""
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
