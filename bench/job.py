"""The job of a worker process, and its result."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

Result = dict[str, float | str]
"""The measurements of a worker by name; texts say why something could not be measured."""

READY = "ready"
"""The line that a worker prints when it waits at the barrier."""


@dataclass(frozen=True, slots=True)
class Job:
    """One workload on one file."""

    workload: str
    path: str
    messages: int = 0
    sessions: int = 1
    batch: int = 1
    threads: int = 1
    repeats: int = 1
    member: int = 0
    fsync_ms: float = 0.0
    questions: str = ""
    """The file with the queries."""
    unindexed: int = 0

    def to_json(self) -> str:
        """The job as a worker's argument."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        """The job that `to_json` wrote."""
        return cls(**json.loads(text))
