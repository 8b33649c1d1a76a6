"""What is carried: a session with all that hangs on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hermes.state.engine import Values
from hermes.state.sessions import title_rules

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
class SessionBundle:
    """A session with all that hangs on it but its messages."""

    row: Mapping[str, Any]
    usage: Sequence[Values]
    """Bookings, in the order of `EVENT_COLUMNS`."""
    rewinds: Sequence[Rewind]
    tools: Sequence[tuple[str, int]]
    pending_parent: tuple[str, str | None] | None
    """The parent that has not come here yet, and what kind of a child this is."""
    messages: int
    """How many messages it has, hidden ones too."""

    @property
    def id(self) -> str:
        """The id of the session."""
        session_id: str = self.row["id"]
        return session_id

    @property
    def rewinds_by_uid(self) -> Sequence[Values]:
        """Its rewinds, as they are the same in every store."""
        return [(each.action, each.target_uid, each.message_count, each.at) for each in self.rewinds]

    @property
    def comparable(self) -> Values:
        """What of it is the same in every store that it is carried to."""
        return (*self.row.values(), *self.usage, *self.rewinds_by_uid, *self.tools, self.pending_parent, self.messages)

    def with_title_of(self, other: SessionBundle) -> SessionBundle:
        """The same under the title of another, if the two differ only in their numbers: here that title was taken."""
        title = other.row["title"]
        return replace(self, row={**self.row, "title": title}) if are_variants(self.row["title"], title) else self


def are_variants(one: str | None, other: str | None) -> bool:
    """Whether two titles differ only in their numbers, as they do when a title was taken."""
    return bool(one and other) and title_rules.strip_suffix(one or "") == title_rules.strip_suffix(other or "")


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


def grouped(bundles: Sequence[SessionBundle]) -> Iterator[list[SessionBundle]]:
    """Sessions that are short enough to be looked at together, one by one where they are long."""
    group: list[SessionBundle] = []
    count = 0
    for each in bundles:
        if group and count + each.messages > TOGETHER:
            yield group
            group, count = [], 0
        group.append(each)
        count += each.messages
    if group:
        yield group
