"""Copies: messages that a compressed conversation carries over into the session in which it goes on.

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
from hermes.state.sessions.kinds import ChildKind


class MessagePlace(NamedTuple):
    """Where a message was found."""

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
    """Tells originals from copies, for one search on one snapshot of the store."""

    tx: Reading
    scope: Scope
    _chains: dict[str, str | None] = field(default_factory=dict)
    """The first session of the chain that a session is of, by session; None for one that is of no chain."""
    _members: dict[str, dict[str, _Member]] = field(default_factory=dict)

    def among(self, places: Sequence[MessagePlace]) -> set[int]:
        """The ids of those messages whose original is in the scope too."""
        found: set[int] = set()
        for session_id, some in self._in_chains(places).items():
            found |= self._copies_in(session_id, some)
        return found

    def undone(self, places: Sequence[MessagePlace]) -> set[int]:
        """The ids of those messages whose newest copy was rewound: where it goes on, they were not said."""
        found: set[int] = set()
        if self.scope.include_inactive:
            return found
        for session_id, some in self._in_chains(places).items():
            later = self._continuing(session_id)
            for few in chunks(some if later else ()):
                uids = self._uids(few)
                is_active = self._newest_copies(later, few)
                at = {place.message_id: place.timestamp for place in few}
                found |= {each for each, uid in uids.items() if not is_active.get((uid, at[each]), True)}
        return found

    def _in_chains(self, places: Sequence[MessagePlace]) -> dict[str, list[MessagePlace]]:
        """Those places whose session is of a chain, by session."""
        self._learn({place.session_id for place in places} - self._chains.keys())
        by_session: dict[str, list[MessagePlace]] = {}
        for place in places:
            if self._chains[place.session_id] is not None:
                by_session.setdefault(place.session_id, []).append(place)
        return by_session

    def remember(self, chains: Mapping[str, str | None]) -> None:
        """Keep of which chains sessions are, so that the store need not be asked."""
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

    def _continued_by(self, session_id: str) -> list[str]:
        """The sessions that a session continues, as far as the scope admits them."""
        members = self._chain(self._chains[session_id] or session_id)
        found: list[str] = []
        current = members.get(session_id)
        while current is not None and current.kind == ChildKind.COMPRESSION and current.parent_id not in found:
            parent = members.get(current.parent_id or "")
            if parent is None:
                break
            found.append(current.parent_id or "")
            current = parent
        return [each for each in found if self._admits(each, members[each])]

    def _continuing(self, session_id: str) -> list[str]:
        """The sessions that continue a session and are its owner's, in their order."""
        members = self._chain(self._chains[session_id] or session_id)
        found = [session_id]
        for each in found:
            found += [
                child
                for child, member in members.items()
                if (member.parent_id, member.kind, member.owner) == (each, ChildKind.COMPRESSION, members[each].owner)
                and child not in found
            ]
        return found[1:]

    def _newest_copies(
        self, session_ids: Sequence[str], places: Sequence[MessagePlace]
    ) -> dict[tuple[str, float], bool]:
        """Whether the newest message of each uid and moment in those sessions, which are in their order, is active."""
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
        # A copy has the role of its original, and so the scope admits both or neither for that.
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
        """Which of the uids those sessions have, in messages of the same moments that may be shown."""
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
