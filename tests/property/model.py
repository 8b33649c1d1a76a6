"""A session store that is too simple to be wrong: dicts and lists, with everything computed on each call."""

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
    """One session, without computed values."""

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
        """The messages that are not undone."""
        return [message for message in self.messages if message.active]

    @property
    def last_active(self) -> float:
        """The time of the newest message, else the start."""
        return max((message.timestamp for message in self.messages), default=self.started_at)

    @property
    def latest(self) -> float:
        """The latest time in the session."""
        return max(self.started_at, self.ended_at or 0.0, *(message.timestamp for message in self.messages), 0.0)

    @property
    def preview(self) -> str:
        """The first text of the user."""
        user_texts = [m.content for m in self.active if m.role == "user" and m.content is not None]
        return user_texts[0] if user_texts else ""

    @property
    def is_listed(self) -> bool:
        """Whether it is an entry of its own in lists."""
        return self.kind != "delegate" and (self.parent is None or self.kind in LISTED_KINDS)


class Model:
    """All sessions by id."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}

    def create(self, session: Session) -> None:
        """Create a session; an existing one stays unchanged."""
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
        """Return all sessions of a session's compression chain."""
        root = self.root(session)
        return [each for each in self.sessions.values() if self.root(each) is root]

    def continuations(self, session_id: str) -> list[Session]:
        """The compression children of a session."""
        return [each for each in self.sessions.values() if each.parent == session_id and each.kind == "compression"]

    def tip(self, session: Session) -> Session:
        """Return the newest session that continues this one."""
        while True:
            continuations = self.continuations(session.id)
            if not continuations:
                return session
            session = max(continuations, key=lambda each: (each.started_at, each.id))

    def listed(self, *, by_activity: bool, archived: bool = False, **wanted: Any) -> list[Session]:
        """Return the conversations of a list, newest first, each as its first session."""

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
        """Set or clear the archive or pin flag of a whole conversation."""
        for each in self.chain(session):
            setattr(each, name, value)

    def delete(self, ids: list[str]) -> None:
        """Delete sessions with their delegates; other children lose their parent."""
        helpers: set[str] = set()
        while more := {
            session.id
            for session in self.sessions.values()
            if (session.kind == "delegate" and session.parent in {*ids, *helpers})
            or (session.kind == "compression" and session.parent in helpers)
        } - {*ids, *helpers}:
            helpers |= more
        deleted = {*ids, *helpers}
        for each in deleted:
            del self.sessions[each]
        for session in self.sessions.values():
            if session.parent in deleted:
                session.parent = None
                session.kind = None if session.kind == "compression" else session.kind

    def prunable(self, now: float, days: float, source: str | None) -> list[str]:
        """Return the ended sessions of conversations that were idle for so long."""
        return [
            session.id
            for session in self.sessions.values()
            if session.ended_at is not None
            and not session.pinned
            and max(each.last_active for each in self.chain(session)) < now - days * DAY_S
            and source in (None, session.source)
        ]

    def holder_of(self, title: str, owner: str | None) -> Session | None:
        """Return the session of an owner with this title."""
        own = (session for session in self.sessions.values() if session.owner == owner)
        return next((session for session in own if session.title == title), None)

    def copy_of(self, session: Session, **changes: Any) -> Session:
        """Return a copy of a session with its own list of messages."""
        return replace(session, messages=[replace(message) for message in session.messages], **changes)
