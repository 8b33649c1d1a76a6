"""A session store that is too simple to be wrong: dicts and lists, everything worked out anew whenever it is asked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

DAY_S = 86_400.0
LISTED_KINDS = ("branch", "reset", "import")
KIND_OF_END = {"compression": "compression", "branched": "branch", "session_reset": "reset"}


@dataclass
class Message:
    """One message."""

    id: int
    uid: str
    role: str
    content: str | None
    timestamp: float
    calls: int = 0
    active: bool = True


@dataclass
class Session:
    """One session, with nothing that could be worked out."""

    id: str
    source: str
    started_at: float
    parent: str | None = None
    kind: str | None = None
    owner: str | None = None
    ended_at: float | None = None
    end_reason: str | None = None
    title: str | None = None
    archived: bool = False
    pinned: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    messages: list[Message] = field(default_factory=list)

    @property
    def active(self) -> list[Message]:
        """The messages that are not rewound."""
        return [message for message in self.messages if message.active]

    @property
    def last_active(self) -> float:
        """The time of the newest message, else the start."""
        return max((message.timestamp for message in self.messages), default=self.started_at)

    @property
    def latest(self) -> float:
        """The latest moment that the session tells of."""
        return max(self.started_at, self.ended_at or 0.0, *(message.timestamp for message in self.messages), 0.0)

    @property
    def preview(self) -> str:
        """The first thing a person said."""
        said = [m.content for m in self.active if m.role == "user" and m.content is not None]
        return said[0] if said else ""

    @property
    def is_listed(self) -> bool:
        """Whether it stands in lists by itself."""
        return self.kind != "delegate" and (self.parent is None or self.kind in LISTED_KINDS)


class Model:
    """All sessions by id."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}

    def create(self, session: Session) -> None:
        """A session begins; one that is there stays as it is."""
        if session.id in self.sessions:
            return
        if session.parent is not None and session.kind is None:
            session.kind = KIND_OF_END.get(self.sessions[session.parent].end_reason or "")
        if session.parent is not None and session.kind == "compression":
            parent = self.sessions[session.parent]
            session.archived, session.pinned = parent.archived, parent.pinned
            session.owner = session.owner or parent.owner
        self.sessions[session.id] = session

    def root(self, session: Session) -> Session:
        """The first session of a compression chain."""
        while session.kind == "compression" and session.parent is not None:
            session = self.sessions[session.parent]
        return session

    def chain(self, session: Session) -> list[Session]:
        """Everything in the compression chain that a session is part of."""
        root = self.root(session)
        return [each for each in self.sessions.values() if self.root(each) is root]

    def tip(self, session: Session) -> Session:
        """The newest session of the chain that goes on from here."""
        while True:
            going_on = [s for s in self.sessions.values() if s.parent == session.id and s.kind == "compression"]
            if not going_on:
                return session
            session = max(going_on, key=lambda each: (each.started_at, each.id))

    def listed(self, *, by_activity: bool, archived: bool = False, **wanted: Any) -> list[Session]:
        """The conversations of a list, newest first, each as its first session."""

        def order(session: Session) -> tuple[Any, ...]:
            newest = max(each.last_active for each in self.chain(session)) if self.root(session) is session else 0.0
            activity = (newest,) if by_activity else ()
            return (*activity, session.started_at, session.id)

        chosen = [
            session
            for session in self.sessions.values()
            if session.is_listed
            and session.archived == archived
            and all(getattr(session, name) == value for name, value in wanted.items())
        ]
        return sorted(chosen, key=order, reverse=True)

    def set_for_chain(self, session: Session, name: str, value: bool) -> None:
        """Archive or pin a whole conversation, or take it back."""
        for each in self.chain(session):
            setattr(each, name, value)

    def delete(self, ids: list[str]) -> None:
        """Sessions go with the delegates that worked for them; other children stand for themselves from now on."""
        helpers: set[str] = set()
        while more := {
            session.id
            for session in self.sessions.values()
            if (session.kind == "delegate" and session.parent in {*ids, *helpers})
            or (session.kind == "compression" and session.parent in helpers)
        } - {*ids, *helpers}:
            helpers |= more
        doomed = {*ids, *helpers}
        for each in doomed:
            del self.sessions[each]
        for session in self.sessions.values():
            if session.parent in doomed:
                session.parent = None
                session.kind = None if session.kind == "compression" else session.kind

    def prunable(self, now: float, days: float, source: str | None) -> list[str]:
        """The ended sessions of conversations that have seen nothing for so long."""
        return [
            session.id
            for session in self.sessions.values()
            if session.ended_at is not None
            and not session.pinned
            and max(each.last_active for each in self.chain(session)) < now - days * DAY_S
            and source in (None, session.source)
        ]

    def holder_of(self, title: str, owner: str | None) -> Session | None:
        """The session of an owner that has a title."""
        own = (session for session in self.sessions.values() if session.owner == owner)
        return next((session for session in own if session.title == title), None)

    def copy_of(self, session: Session, **changes: Any) -> Session:
        """A session with messages of its own."""
        return replace(session, messages=[replace(message) for message in session.messages], **changes)
