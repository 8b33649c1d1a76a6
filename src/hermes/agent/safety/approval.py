"""Approval: a person decides what an agent may do, once, for a session, or for good."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock
from typing import TYPE_CHECKING, Literal, assert_never

from hermes.agent.safety.permits import Permit, Permits
from hermes.errors import HermesError
from hermes.log import warn

if TYPE_CHECKING:
    from hermes.agent.safety.commands import Risk

Mode = Literal["ask", "allow", "deny"]

_GO_ON = "Do not try it again, not in another form either; go on without it, or tell the person what you would need."


class Decision(StrEnum):
    """What a person answers to a request."""

    ONCE = "once"
    SESSION = "session"
    ALWAYS = "always"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Request:
    """What an agent wants to do, as it is shown to the person who decides."""

    tool: str
    summary: str
    """One line."""
    detail: str
    """All of it, on as many lines as it takes; nothing in it can hide or act on a terminal."""
    risk: Risk
    subject: str
    """What exactly is asked for: a command, a path."""
    prefix: str | None = None
    """The words with which all begins that a lasting permission would cover; None for the subject alone."""

    @property
    def permit(self) -> Permit:
        """What `session` and `always` would allow from now on."""
        if self.prefix is not None and self.risk == "normal":
            return Permit(self.tool, self.prefix, is_prefix=True)
        return Permit(self.tool, self.subject)

    def is_covered_by(self, permit: Permit) -> bool:
        """Whether a permission that was given earlier holds for this."""
        if permit.tool != self.tool:
            return False
        if permit.is_prefix:
            from hermes.agent.safety.commands import begins_alike

            return self.risk == "normal" and begins_alike(self.subject, permit.text)
        return permit.text == self.subject


Approve = Callable[[Request], Decision]
"""Asks a person; supplied by whatever the conversation is shown on."""


class Approvals:
    """What may be done without asking, and whom to ask for the rest."""

    def __init__(self, mode: Mode, permits: Permits) -> None:
        self._mode = mode
        self._permits = permits
        self._of_sessions: dict[str, set[Permit]] = {}
        self._lock = Lock()

    def refusal(self, request: Request, *, session_id: str, owner: str | None, approve: Approve | None) -> str | None:
        """Why something may not be done, in words for the model, or None when it may."""
        if self._mode == "allow":
            return None
        if self._mode == "deny":
            return f"This is not allowed here (approvals.mode is deny in config.yaml). {_GO_ON}"
        if self._is_permitted(request, session_id, owner):
            return None
        if approve is None:
            return (
                "This needs the permission of a person, and there is nobody to ask in this conversation. "
                f"{_GO_ON} They can allow such things with `approvals.mode: allow` in config.yaml."
            )
        match approve(request):
            case Decision.ONCE:
                return None
            case Decision.SESSION:
                self._permit_in(session_id, request.permit)
                return None
            case Decision.ALWAYS:
                self._permit_in(session_id, request.permit)
                self._permit_for_good(owner, request.permit)
                return None
            case Decision.DENY:
                return f"The person has not allowed this. {_GO_ON}"
            case never:
                assert_never(never)

    def move(self, session_id: str, successor_id: str) -> None:
        """Let the permissions of a session hold for the session that continues it."""
        with self._lock:
            self._of_sessions.setdefault(successor_id, set()).update(self._of_sessions.pop(session_id, ()))

    def forget(self, session_id: str) -> None:
        """Drop the permissions of a session that has ended."""
        with self._lock:
            self._of_sessions.pop(session_id, None)

    def _is_permitted(self, request: Request, session_id: str, owner: str | None) -> bool:
        with self._lock:
            given = list(self._of_sessions.get(session_id, ()))
        return any(map(request.is_covered_by, given)) or any(map(request.is_covered_by, self._permits.of(owner)))

    def _permit_for_good(self, owner: str | None, permit: Permit) -> None:
        try:
            self._permits.add(owner, permit)
        except (HermesError, OSError) as error:
            # The person has said yes, so it is done now; they are asked again in another session.
            warn(__name__, "a permission holds for this session only: %s", error)

    def _permit_in(self, session_id: str, permit: Permit) -> None:
        with self._lock:
            self._of_sessions.setdefault(session_id, set()).add(permit)
