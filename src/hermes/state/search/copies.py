"""Copies: messages that compression carries over into the session that continues a conversation.

A copy has the uid and the time of its original. Within a chain of compressions one uid is one message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hermes.state.engine import Reading
from hermes.state.operations import chunks, placeholders
from hermes.state.rows import uid_of
from hermes.state.search.scope import Scope
from hermes.state.sessions.lineage.kinds import ChildKind, descent, follow


class MessagePlace(NamedTuple):
    """A message with its session and time."""

    message_id: int
    session_id: str
    timestamp: float


class _Member(NamedTuple):
    """A session of a chain."""

    parent_id: str | None
    kind: str | None
    source: str
    owner: str | None


@dataclass
class Copies:
    """Distinguishes originals from copies, for one search on one snapshot of the store."""

    tx: Reading
    scope: Scope
    _chains: dict[str, str | None] = field(default_factory=dict)
    """The root of each session's chain; None for a session without a chain."""
    _members: dict[str, dict[str, _Member]] = field(default_factory=dict)

    def left_out(self, places: Sequence[MessagePlace]) -> set[int]:
        """Return the ids of messages that a search does not show.

        Their original is in the scope too, or their newest copy was undone, so that the conversation no longer has
        them.
        """
        found: set[int] = set()
        for session_id, some in self._in_chains(places).items():
            found |= self._copies_in(session_id, some)
            if not self.scope.include_inactive:
                found |= self._undone_in(session_id, some)
        return found

    def _in_chains(self, places: Sequence[MessagePlace]) -> dict[str, list[MessagePlace]]:
        """Return the messages of sessions that are in a chain, by session."""
        self._learn({place.session_id for place in places} - self._chains.keys())
        by_session: dict[str, list[MessagePlace]] = {}
        for place in places:
            if self._chains[place.session_id] is not None:
                by_session.setdefault(place.session_id, []).append(place)
        return by_session

    def remember(self, chains: Mapping[str, str | None]) -> None:
        """Store the chains of sessions, so that the store need not be read."""
        self._chains.update(chains)

    def _learn(self, session_ids: Iterable[str]) -> None:
        for some in chunks(sorted(session_ids)):
            self._chains.update(dict.fromkeys(some))
            listed, values = placeholders("id", some)
            self._chains.update(
                self.tx.rows(
                    f"""SELECT id, chain_root FROM sessions WHERE id IN ({listed}) AND chain_root IS NOT NULL
                        UNION SELECT chain_root, chain_root FROM sessions WHERE chain_root IN ({listed})""",
                    **values,
                )
            )

    def _copies_in(self, session_id: str, places: Sequence[MessagePlace]) -> set[int]:
        earlier = self._continued_by(session_id)
        found: set[int] = set()
        for some in chunks(places if earlier else ()):
            uids = self._uids(some)
            originals = self._originals(earlier, some, set(uids.values()))
            found |= {message_id for message_id, uid in uids.items() if uid in originals}
        return found

    def _undone_in(self, session_id: str, places: Sequence[MessagePlace]) -> set[int]:
        later = self._continuations(session_id)
        found: set[int] = set()
        for some in chunks(places if later else ()):
            uids = self._uids(some)
            is_active = self._newest_copies(later, some)
            at = {place.message_id: place.timestamp for place in some}
            found |= {each for each, uid in uids.items() if not is_active.get((uid, at[each]), True)}
        return found

    def _continued_by(self, session_id: str) -> list[str]:
        """Return the sessions that a session continues and that the scope admits."""
        members = self._chain(self._chains[session_id] or session_id)
        parents = {
            each: member.parent_id
            for each, member in members.items()
            if member.kind == ChildKind.COMPRESSION and member.parent_id in members and member.parent_id
        }
        return [each for each in follow(parents, session_id)[1:] if self._admits(each, members[each])]

    def _continuations(self, session_id: str) -> list[str]:
        """Return the sessions that continue a session and have the same owner, in order."""
        members = self._chain(self._chains[session_id] or session_id)
        children: dict[str, list[str]] = {}
        for each, member in members.items():
            parent = members.get(member.parent_id or "")
            if parent is not None and (member.kind, member.owner) == (ChildKind.COMPRESSION, parent.owner):
                children.setdefault(member.parent_id or "", []).append(each)
        return descent(session_id, children)[1:]

    def _newest_copies(
        self, session_ids: Sequence[str], places: Sequence[MessagePlace]
    ) -> dict[tuple[str, float], bool]:
        """Return whether the newest message of each uid and time is active; `session_ids` are in order."""
        moments, at = placeholders("at", list({place.timestamp for place in places}))
        found: dict[str, list[tuple[str, float, bool]]] = {}
        for some in chunks(session_ids):
            listed, values = placeholders("session", some)
            for session_id, uid, timestamp, active in self.tx.rows(
                f"""SELECT session_id, uid, timestamp, active FROM messages
                    WHERE session_id IN ({listed}) AND timestamp IN ({moments}) AND uid IS NOT NULL""",
                **values,
                **at,
            ):
                found.setdefault(session_id, []).append((uid, timestamp, bool(active)))
        return {(uid, moment): active for each in session_ids for uid, moment, active in found.get(each, ())}

    def _admits(self, session_id: str, member: _Member) -> bool:
        # A copy has the role of its original, so the role filter admits both or neither.
        roles = self.scope.roles
        return self.scope.admits(roles[0] if roles else "", session_id, member.source, member.owner)

    def _chain(self, root: str) -> dict[str, _Member]:
        if root not in self._members:
            rows = self.tx.rows(
                """SELECT id, parent_session_id, child_kind, source, owner FROM sessions
                   WHERE id = :root OR chain_root = :root""",
                root=root,
            )
            self._members[root] = {row[0]: _Member(*row[1:]) for row in rows}
        return self._members[root]

    def _uids(self, places: Sequence[MessagePlace]) -> dict[int, str]:
        listed, values = placeholders("id", [place.message_id for place in places])
        rows = self.tx.rows(f"SELECT id, uid FROM messages WHERE id IN ({listed}) AND uid IS NOT NULL", **values)
        return dict(rows)

    def _originals(self, session_ids: Sequence[str], places: Sequence[MessagePlace], uids: set[str]) -> set[str]:
        """Return the uids that visible messages of those sessions and times have."""
        moments, at = placeholders("at", list({place.timestamp for place in places}))
        found: set[str] = set()
        for some in chunks(session_ids):
            listed, values = placeholders("session", some)
            rows = self.tx.rows(
                f"""SELECT id, uid, timestamp, role, CASE WHEN uid IS NULL THEN content END FROM messages
                    WHERE session_id IN ({listed}) AND timestamp IN ({moments})
                      {"" if self.scope.include_inactive else "AND active = 1"}""",
                **values,
                **at,
            )
            found |= {uid_of(*row) for row in rows} & uids
        return found
