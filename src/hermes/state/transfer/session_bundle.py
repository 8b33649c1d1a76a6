"""A session with its usage, undo history, tools and links, as it is copied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hermes.state.engine import Values
from hermes.state.import_export.message_pages import group_by_messages
from hermes.state.sessions import title_rules

TOGETHER = 500
"""How many messages of several sessions are processed together."""


@dataclass(frozen=True, slots=True)
class Rewind:
    """An undo, or the restore of undone messages."""

    action: str
    target_id: int
    target_uid: str | None
    message_count: int
    at: float

    def target_in(self, ids: Mapping[str, int] | None) -> int:
        """Return the id of its target message, from `ids` by uid, or the original id."""
        return self.target_id if ids is None else ids.get(self.target_uid or "", 0)


@dataclass(frozen=True, slots=True)
class SessionBundle:
    """A session with all its rows except its messages."""

    row: Mapping[str, Any]
    usage: Sequence[Values]
    """Usage events, in the order of `EVENT_COLUMNS`."""
    rewinds: Sequence[Rewind]
    tools: Sequence[tuple[str, int]]
    pending_parent: tuple[str, str | None] | None
    """The parent that is not imported yet, and the kind of this child."""
    messages: int
    """How many messages it has, including undone ones."""

    @property
    def id(self) -> str:
        """The id of the session."""
        session_id: str = self.row["id"]
        return session_id

    @property
    def rewinds_by_uid(self) -> Sequence[Values]:
        """Its undo history with uids, which are the same in every store."""
        return [(each.action, each.target_uid, each.message_count, each.at) for each in self.rewinds]

    @property
    def comparable(self) -> Values:
        """The values that are the same in every copy."""
        return (*self.row.values(), *self.usage, *self.rewinds_by_uid, *self.tools, self.pending_parent, self.messages)

    def with_title_of(self, other: SessionBundle) -> SessionBundle:
        """Return it with the title of another, if the two differ only in their numbers because the title was taken."""
        title = other.row["title"]
        return replace(self, row={**self.row, "title": title}) if are_variants(self.row["title"], title) else self


def are_variants(one: str | None, other: str | None) -> bool:
    """Whether two titles differ only in their numbers, because one was taken."""
    return bool(one and other) and title_rules.strip_suffix(one or "") == title_rules.strip_suffix(other or "")


def parents_first(parents: Mapping[str, str | None]) -> list[str]:
    """Return the sessions in an order in which parents come before their children."""
    ordered: dict[str, None] = {}
    for session_id in parents:
        line: dict[str, None] = {}
        current: str | None = session_id
        while current is not None and current in parents and current not in ordered and current not in line:
            line[current] = None
            current = parents[current]
        ordered.update(dict.fromkeys(reversed(line)))
    return list(ordered)


def group_bundles(bundles: Sequence[SessionBundle]) -> Iterator[list[SessionBundle]]:
    """Yield groups of short sessions; a long session is a group of its own."""
    return group_by_messages(bundles, lambda each: each.messages, TOGETHER)
