"""The outputs of tools that were folded, which `/output` shows."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from hermes.errors import NotFound

MAX_KEPT = 50
"""How many outputs are kept; each has at most as many characters as a result of a tool."""


@dataclass(frozen=True, slots=True)
class FoldedOutput:
    """An output and what it is of."""

    number: int
    title: str
    text: str


class FoldedOutputs:
    """The last outputs of a chat, numbered from 1 on."""

    def __init__(self) -> None:
        self._outputs: deque[FoldedOutput] = deque(maxlen=MAX_KEPT)
        self._count = 0

    def add(self, title: str, text: str) -> int:
        """Keep an output and return its number."""
        self._count += 1
        self._outputs.append(FoldedOutput(self._count, title, text))
        return self._count

    def get(self, number: int | None = None) -> FoldedOutput:
        """Return an output by its number, or the last one; raise `NotFound` if there is none."""
        if not self._outputs:
            raise NotFound("no tool has run in this chat yet")
        if number is None:
            return self._outputs[-1]
        found = next((each for each in self._outputs if each.number == number), None)
        if found is None:
            first, last = self._outputs[0].number, self._outputs[-1].number
            raise NotFound(f"there is no output {number}", hint=f"there are the outputs {first} to {last}")
        return found
