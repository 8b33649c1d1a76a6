"""Approval: a person decides what an agent may do, once, for a session, or always."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from threading import Lock
from typing import TYPE_CHECKING, assert_never, get_args

from hermes.agent.safety.permits import Permit, Permits
from hermes.config import CHAT_MODE_HINT, ChatMode, Mode
from hermes.errors import ConfigError, HermesError
from hermes.log import warn
from hermes.state.owner import TERMINAL, Owner, is_terminal_source

if TYPE_CHECKING:
    from hermes.agent.safety.commands import Risk

_GO_ON = "Do not try it again, not in another form either; go on without it, or tell the person what you would need."


class Decision(StrEnum):
    """What a person answers to a request."""

    ONCE = "once"
    SESSION = "session"
    ALWAYS = "always"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What an agent wants to do, as it is shown to the person who decides."""

    tool: str
    summary: str
    """One line."""
    detail: str
    """All of it, on as many lines as it takes; nothing in it can hide or act on a terminal."""
    risk: Risk
    subject: str
    """What exactly is asked for: a command, a path."""
    directory: str = ""
    """Where it would be done, through all links; empty for what is the same everywhere."""
    bare: str | None = None
    """The command without the options that change nothing about what it may do; None if only itself is the same."""
    note: str = ""
    """What the person should know besides, if anything."""

    @property
    def permit(self) -> Permit:
        """What `session` and `always` would allow from now on."""
        if self.bare is not None and self.risk == "normal":
            return Permit(self.tool, self.bare, self.directory, with_options=True)
        return Permit(self.tool, self.subject, self.directory)

    def is_covered_by(self, permit: Permit) -> bool:
        """Whether a permission that was given earlier holds for this."""
        if (permit.tool, permit.directory) != (self.tool, self.directory):
            return False
        if permit.with_options:
            return self.risk == "normal" and permit.text == self.bare
        return permit.text == self.subject


@dataclass(frozen=True, slots=True)
class ConversationOrigin:
    """The conversation in which something is asked for."""

    session_id: str
    source: str
    owner: Owner
    """Whose conversation it is."""


Approve = Callable[[ApprovalRequest], Decision]
"""Asks the person at the terminal; supplied by whatever the conversation is shown on."""

AskOperator = Callable[[ApprovalRequest, ConversationOrigin], Decision]
"""Asks the operator about a conversation of a chat platform; supplied by the program that runs the platforms."""


class Approvals:
    """What may be done without asking, and who is asked for the rest.

    At the terminal that is the person there. On a chat platform it is the operator, never the person who talks.
    """

    def __init__(
        self,
        mode: Mode,
        permits: Permits,
        *,
        chat_modes: Mapping[str, ChatMode] | None = None,
        operator: AskOperator | None = None,
    ) -> None:
        self._mode = mode
        self._chat_modes: dict[str, ChatMode] = {}
        for source, mode_there in sorted((chat_modes or {}).items(), key=lambda each: each[1] == "deny"):
            self._chat_modes[_fold_name(source)] = mode_there  # of two spellings, `deny` counts
        self._permits = permits
        self._operator = operator
        self._of_sessions: dict[str, set[Permit]] = {}
        self._lock = Lock()
        for source, chat_mode in self._chat_modes.items():
            _check_chat_mode(source, chat_mode)

    def refusal(self, request: ApprovalRequest, origin: ConversationOrigin, approve: Approve | None) -> str | None:
        """Why something may not be done, in words for the model, or None when it may."""
        is_terminal = is_terminal_source(origin.source)
        mode: Mode = self._mode if is_terminal else self._chat_modes.get(_fold_name(origin.source), "ask")
        if mode == "allow":
            return None
        if mode == "deny":
            key = "mode" if is_terminal else f"sources.{origin.source}"
            return f"This is not allowed here (approvals.{key} is deny in config.yaml). {_GO_ON}"
        if self._is_permitted(request, origin):
            return None
        note = self._permits.note(origin.owner) if _has_file(origin) else ""
        decision = self._decision(replace(request, note=note), origin, approve, is_terminal=is_terminal)
        if decision is None:
            who = "a person, and there is nobody to ask" if is_terminal else "the operator, who cannot be asked"
            hint = " They can allow such things with `approvals.mode: allow` in config.yaml." if is_terminal else ""
            return " ".join(
                filter(None, [f"This needs the permission of {who} in this conversation. {_GO_ON}{hint}", note])
            )
        return self._heed(decision, request, origin)

    def _decision(
        self, request: ApprovalRequest, origin: ConversationOrigin, approve: Approve | None, *, is_terminal: bool
    ) -> Decision | None:
        """What the one who decides here says, or None if that one cannot be asked."""
        if is_terminal:
            return None if approve is None else approve(request)
        return None if self._operator is None else self._operator(request, origin)

    def _heed(self, decision: Decision, request: ApprovalRequest, origin: ConversationOrigin) -> str | None:
        match decision:
            case Decision.ONCE:
                return None
            case Decision.SESSION:
                self._permit_in(origin.session_id, request.permit)
                return None
            case Decision.ALWAYS:
                self._permit_in(origin.session_id, request.permit)
                if _has_file(origin):
                    self._permit_for_good(origin.owner, request.permit)
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

    def _is_permitted(self, request: ApprovalRequest, origin: ConversationOrigin) -> bool:
        with self._lock:
            given = list(self._of_sessions.get(origin.session_id, ()))
        if _has_file(origin):
            given += self._permits.of(origin.owner)
        return any(map(request.is_covered_by, given))

    def _permit_for_good(self, owner: Owner, permit: Permit) -> None:
        try:
            self._permits.add(owner, permit)
        except (HermesError, OSError) as error:
            # The person has said yes, so it is done now; they are asked again in another session.
            warn(__name__, "a permission holds for this session only: %s", error)

    def _permit_in(self, session_id: str, permit: Permit) -> None:
        with self._lock:
            self._of_sessions.setdefault(session_id, set()).add(permit)


def _fold_name(source: str) -> str:
    """A platform's name as it is compared: `Telegram: deny` denies telegram."""
    return source.strip().casefold()


def _has_file(origin: ConversationOrigin) -> bool:
    """Whether lasting permissions are kept for a conversation: those of the terminal are for nobody else."""
    return origin.owner != TERMINAL or is_terminal_source(origin.source)


def _check_chat_mode(source: str, mode: str) -> None:
    if is_terminal_source(source):
        raise ConfigError(
            f"approvals.sources has {source}, which is the terminal",
            hint="write approvals.mode for the terminal; sources are chat platforms",
        )
    if mode not in get_args(ChatMode):
        raise ConfigError(
            f"approvals.sources.{source} is {mode}; expected one of {', '.join(get_args(ChatMode))}",
            hint=CHAT_MODE_HINT,
        )
