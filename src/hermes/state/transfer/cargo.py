"""What is carried: a session with all that hangs on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hermes.state import titling
from hermes.state.engine import Values

TOGETHER = 500
"""So many messages of several sessions are looked at together."""


@dataclass(frozen=True, slots=True)
class Rewind:
    """A rewind, or what took it back."""

    action: str
    target_id: int
    target_uid: str | None
    message_count: int
    at: float

    def target_in(self, ids: Mapping[str, int] | None) -> int:
        """The id of the message that it names, where messages have these ids by uid, or those that they had."""
        return self.target_id if ids is None else ids.get(self.target_uid or "", 0)


@dataclass(frozen=True, slots=True)
class Cargo:
    """A session with all that hangs on it but its messages."""

    row: Mapping[str, Any]
    usage: Sequence[Values]
    """Bookings, in the order of `BOOKING`."""
    rewinds: Sequence[Rewind]
    tools: Sequence[tuple[str, int]]
    awaited: tuple[str, str | None] | None
    """The parent that has not come here yet, and what kind of a child this is."""
    messages: int
    """How many messages it has, hidden ones too."""

    @property
    def id(self) -> str:
        """The id of the session."""
        session_id: str = self.row["id"]
        return session_id

    @property
    def trail(self) -> Sequence[Values]:
        """Its rewinds, as they are the same in every store."""
        return [(each.action, each.target_uid, each.message_count, each.at) for each in self.rewinds]

    @property
    def told(self) -> Values:
        """What of it is the same in every store that it is carried to."""
        return (*self.row.values(), *self.usage, *self.trail, *self.tools, self.awaited, self.messages)

    def titled_like(self, other: Cargo) -> Cargo:
        """The same under the title of another, if the two differ only in their numbers: here that title was taken."""
        title = other.row["title"]
        return replace(self, row={**self.row, "title": title}) if are_variants(self.row["title"], title) else self


def are_variants(one: str | None, other: str | None) -> bool:
    """Whether two titles differ only in their numbers, as they do when a title was taken."""
    return bool(one and other) and titling.without_suffix(one or "") == titling.without_suffix(other or "")


def parents_first(parents: Mapping[str, str | None]) -> list[str]:
    """The sessions in an order in which none comes before the one that it stems from."""
    ordered: dict[str, None] = {}
    for session_id in parents:
        line: dict[str, None] = {}
        current: str | None = session_id
        while current is not None and current in parents and current not in ordered and current not in line:
            line[current] = None
            current = parents[current]
        ordered.update(dict.fromkeys(reversed(line)))
    return list(ordered)


def grouped(cargos: Sequence[Cargo]) -> Iterator[list[Cargo]]:
    """Sessions that are short enough to be looked at together, one by one where they are long."""
    group: list[Cargo] = []
    count = 0
    for each in cargos:
        if group and count + each.messages > TOGETHER:
            yield group
            group, count = [], 0
        group.append(each)
        count += each.messages
    if group:
        yield group
