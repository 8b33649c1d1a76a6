"""The filters of a search."""

from __future__ import annotations

from dataclasses import dataclass

from hermes.lazy import lazy
from hermes.state.operations import can_see_owner
from hermes.state.owner import EVERYBODY, Asker


@dataclass(frozen=True)
class Scope:
    """Conditions on a message and its session, all of which must hold."""

    owner: Asker = EVERYBODY
    sources: tuple[str, ...] | None = None
    not_sources: tuple[str, ...] = ()
    roles: tuple[str, ...] | None = None
    sessions: tuple[str, ...] | None = None
    not_sessions: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    include_inactive: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether no message can match."""
        return () in (self.sources, self.sessions) or (
            self.since is not None and self.until is not None and self.since > self.until
        )

    def admits_time(self, timestamp: float) -> bool:
        """Whether the scope includes a message of this time."""
        return (self.since is None or timestamp >= self.since) and (self.until is None or timestamp <= self.until)

    def admits(self, role: str, session_id: str, source: str | None, owner: str | None) -> bool:
        """Whether the scope includes a message of this role and session."""
        return (
            can_see_owner(self.owner, owner)
            and (self.sources is None or source in self.sources)
            and source not in self.not_sources
            and (self.roles is None or role in self.roles)
            and (self._sessions is None or session_id in self._sessions)
            and session_id not in self._not_sessions
        )

    @lazy
    def _sessions(self) -> frozenset[str] | None:
        return None if self.sessions is None else frozenset(self.sessions)

    @lazy
    def _not_sessions(self) -> frozenset[str]:
        return frozenset(self.not_sessions)
