"""Approval: the user decides what an agent may do, once, for a session, or always."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from threading import Lock
from typing import TYPE_CHECKING, assert_never, get_args

from hermes.agent.safety.permits import Permit, Permits
from hermes.config import CHAT_MODE_HINT, ChatMode, Mode
from hermes.errors import ConfigError, HermesError, InvalidValue
from hermes.log import warn
from hermes.state.owner import TERMINAL, Owner, is_terminal_source

if TYPE_CHECKING:
    from hermes.agent.models.model import ToolCall
    from hermes.agent.safety.commands import Risk
    from hermes.agent.safety.diffs import FileDiff
    from hermes.agent.safety.scanning.findings import Verdict

_ADVICE = "Do not try it again in any form; continue without it, or tell the user what you need."
_NO_OTHER_WAY = "; do not try another way"
_DENIED = "The user has not allowed this."
_INSTEAD = "The user has not allowed this, and wants this instead: "
_MAX_INSTEAD = 2_000

_CHANGED = (
    "This is not what the operator has allowed: the same call would act on another file or directory now. It has not"
    " been done."
)


class Decision(StrEnum):
    """The user's answer to a request."""

    ONCE = "once"
    SESSION = "session"
    ALWAYS = "always"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Answer:
    """A decision of the user with what belongs to it."""

    decision: Decision
    is_for_kind: bool = False
    """Whether a permission for the session covers all commands of the same kind."""
    instead: str = ""
    """What the agent should do instead of what was denied."""


_SCOPES = (Decision.DENY, Decision.ONCE, Decision.SESSION, Decision.ALWAYS)
"""Decisions in the order of what they allow."""


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """Something that an agent wants to do, as displayed to the user."""

    tool: str
    summary: str
    """The request in one line."""
    detail: str
    """The whole request, on several lines; nothing in it can hide or act on a terminal."""
    risk: Risk
    subject: str
    """The exact command or path."""
    directory: str = ""
    """The directory of the action, with links resolved; empty if the directory does not matter."""
    bare: str | None = None
    """The command without harmless options; None if a permission can cover only the identical command."""
    kind: str | None = None
    """The kind of the command (`similar_commands`); None if it has none."""
    findings: str = ""
    """What makes it dangerous: the end of `detail`."""
    note: str = ""
    """A remark for the user, if any."""
    verdict: Verdict = "allow"
    """What a scan says; a blocked request needs an explicit yes each time, also if everything else is allowed."""
    longest: Decision = Decision.ALWAYS
    """The longest permission that this request can get; a longer one counts as this one."""
    diff: FileDiff | None = None
    """What would change in a file; its text is the end of `detail`."""

    @property
    def about(self) -> str:
        """The detail without the difference."""
        return self.detail if self.diff is None else self.detail.removesuffix(self.diff.text)

    @property
    def longest_scope(self) -> Decision:
        """The longest permission: once for a blocked request, a session for one with a warning."""
        limits = {"block": Decision.ONCE, "warn": Decision.SESSION}
        return min((self.longest, limits.get(self.verdict, Decision.ALWAYS)), key=_SCOPES.index)

    @property
    def permit(self) -> Permit:
        """The permission that `session` and `always` would store."""
        if self.bare is not None and self.risk == "normal":
            return Permit(self.tool, self.bare, self.directory, with_options=True)
        return Permit(self.tool, self.subject, self.directory)

    @property
    def kind_permit(self) -> Permit | None:
        """The permission for all commands of its kind, which `session` can store instead; None if there is none."""
        if self.kind is None or self.risk != "normal" or self.longest_scope in (Decision.DENY, Decision.ONCE):
            return None
        return Permit(self.tool, self.kind, self.directory, is_for_kind=True)

    def is_covered_by(self, permit: Permit) -> bool:
        """Whether an earlier permission covers this request."""
        if (permit.tool, permit.directory) != (self.tool, self.directory):
            return False
        if permit.is_for_kind:
            return permit == self.kind_permit
        if permit.with_options:
            return self.risk == "normal" and permit.text == self.bare
        return permit.text == self.subject


@dataclass(frozen=True, slots=True)
class ConversationOrigin:
    """The conversation that a request comes from."""

    session_id: str
    source: str
    owner: Owner
    """The owner of the conversation."""
    call: ToolCall | None = None
    """The tool call that is being run, with its arguments exactly as the model wrote them."""
    directory: str = ""
    """The session's current directory, to which the arguments are relative; empty if it has none."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A permission for one run of one tool call, given after the call was deferred.

    It covers only the request that the operator has seen: another subject or detail is refused.
    """

    subject: str
    detail: str
    directory: str = ""
    """The directory of the `ConversationOrigin` at the time of the request."""
    scope: Decision = Decision.ONCE
    """Whether the permission also holds for later requests."""

    def __post_init__(self) -> None:
        if self.scope is Decision.DENY:
            raise InvalidValue("a denied request cannot be run")

    def covers(self, request: ApprovalRequest) -> bool:
        """Whether a request is the one that the operator has seen."""
        return (request.subject, request.detail) == (self.subject, self.detail)


class ApprovalDeferred(Exception):
    """The operator has been asked, and the answer will come later; raised by an `AskOperator`."""

    def __init__(self, approval_id: str, summary: str = "") -> None:
        self.approval_id = approval_id
        self.summary = summary
        super().__init__(approval_id, summary)

    @property
    def for_model(self) -> str:
        """The result of the tool call, in words for the model."""
        what = f" to {self.summary}" if self.summary else ""
        return (
            f"This needs the operator's permission{what}, which was requested as {self.approval_id}. It has not been"
            " done. Do not wait for it, do not repeat the call and do not try another way: the result will arrive as a"
            " new message. Tell the user what is waiting, and continue with what does not depend on it."
        )


Approve = Callable[[ApprovalRequest], Decision | Answer]
"""Asks the user at the terminal; supplied by the user interface."""

AskOperator = Callable[[ApprovalRequest, ConversationOrigin], Decision | Answer]
"""Asks the operator about a conversation of a chat platform; supplied by the program that runs the platforms.

It may raise `ApprovalDeferred` instead of waiting for a decision.
"""


class Approvals:
    """Decides what an agent may do, from the settings, earlier permissions and the answer of a person.

    At the terminal the user is asked. On a chat platform the operator is asked, never the user of the chat.
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
            self._chat_modes[_fold_name(source)] = mode_there  # of two spellings, `deny` wins
        self._permits = permits
        self._operator = operator
        self._of_sessions: dict[str, set[Permit]] = {}
        self._lock = Lock()
        for source, chat_mode in self._chat_modes.items():
            _check_chat_mode(source, chat_mode)

    def refusal(
        self,
        request: ApprovalRequest,
        origin: ConversationOrigin,
        approve: Approve | None,
        grant: Grant | None = None,
    ) -> str | None:
        """Return why an action is not allowed, in words for the model, or None if it is allowed.

        With a grant no person is asked: it covers the request, or the request is refused.
        """
        is_terminal = is_terminal_source(origin.source)
        mode: Mode = self._mode if is_terminal else self._chat_modes.get(_fold_name(origin.source), "ask")
        if mode == "allow" and request.verdict != "block":
            return None
        if mode == "deny":
            key = "mode" if is_terminal else f"sources.{origin.source}"
            return f"This is not allowed here (approvals.{key} is deny in config.yaml). {_ADVICE}"
        if grant is not None:
            return self._apply(Answer(grant.scope), request, origin) if grant.covers(request) else _CHANGED
        if self._is_permitted(request, origin):
            return None
        note = self._permits.note(origin.owner) if _has_file(origin) else ""
        decision = self._decision(replace(request, note=note), origin, approve, is_terminal=is_terminal)
        if decision is None:
            who = "the user" if is_terminal else "the operator"
            is_allowable = is_terminal and request.verdict != "block"
            hint = " The user can allow it with `approvals.mode: allow` in config.yaml." if is_allowable else ""
            refusal = f"This needs the permission of {who}, who cannot be asked in this conversation. {_ADVICE}{hint}"
            return f"{refusal} {note}" if note else refusal
        return self._apply(decision if isinstance(decision, Answer) else Answer(decision), request, origin)

    def _decision(
        self, request: ApprovalRequest, origin: ConversationOrigin, approve: Approve | None, *, is_terminal: bool
    ) -> Decision | Answer | None:
        """Ask the user or the operator; return None if neither can be asked."""
        if is_terminal:
            return None if approve is None else approve(request)
        return None if self._operator is None else self._operator(request, origin)

    def _apply(self, answer: Answer, request: ApprovalRequest, origin: ConversationOrigin) -> str | None:
        match min((answer.decision, request.longest_scope), key=_SCOPES.index):
            case Decision.ONCE:
                return None
            case Decision.SESSION:
                for_kind = request.kind_permit if answer.is_for_kind else None
                self._add_to_session(origin.session_id, for_kind or request.permit)
                return None
            case Decision.ALWAYS:
                self._add_to_session(origin.session_id, request.permit)
                if _has_file(origin):
                    self._add_lasting(origin.owner, request.permit)
                return None
            case Decision.DENY:
                if instead := answer.instead.strip()[:_MAX_INSTEAD]:
                    return f"{_INSTEAD}{instead}"
                return f"{_DENIED} {_ADVICE}"
            case never:
                assert_never(never)

    def move(self, session_id: str, successor_id: str) -> None:
        """Move the permissions of a session to the session that continues it."""
        with self._lock:
            self._of_sessions.setdefault(successor_id, set()).update(self._of_sessions.pop(session_id, ()))

    def forget(self, session_id: str) -> None:
        """Drop the permissions of a session that has ended."""
        with self._lock:
            self._of_sessions.pop(session_id, None)

    def _is_permitted(self, request: ApprovalRequest, origin: ConversationOrigin) -> bool:
        if request.longest_scope is Decision.ONCE:
            return False
        with self._lock:
            permits = list(self._of_sessions.get(origin.session_id, ()))
        if _has_file(origin) and request.longest_scope is Decision.ALWAYS:
            permits += self._permits.of(origin.owner)
        return any(map(request.is_covered_by, permits))

    def _add_lasting(self, owner: Owner, permit: Permit) -> None:
        try:
            self._permits.add(owner, permit)
        except (HermesError, OSError) as error:
            # The user has said yes, so the action runs now; another session asks again.
            warn(__name__, "a permission holds for this session only: %s", error)

    def _add_to_session(self, session_id: str, permit: Permit) -> None:
        with self._lock:
            self._of_sessions.setdefault(session_id, set()).add(permit)


def refusal_for_user(text: str) -> str:
    """Return a refusal without the sentences that only the model needs."""
    if text.startswith((_DENIED, _INSTEAD)):
        return "not allowed"
    text = text.replace(_ADVICE, "").replace(_NO_OTHER_WAY, "").replace("the user stopped", "you stopped")
    return text.replace("  ", " ").strip()


def _fold_name(source: str) -> str:
    """Return a platform's name for comparison: `Telegram: deny` denies telegram."""
    return source.strip().casefold()


def _has_file(origin: ConversationOrigin) -> bool:
    """Whether a conversation has lasting permissions; those of the terminal apply to the terminal only."""
    return origin.owner != TERMINAL or is_terminal_source(origin.source)


def _check_chat_mode(source: str, mode: str) -> None:
    if is_terminal_source(source):
        raise ConfigError(
            f"approvals.sources has {source}, which is the terminal",
            hint="use approvals.mode for the terminal; sources are chat platforms",
        )
    if mode not in get_args(ChatMode):
        raise ConfigError(
            f"approvals.sources.{source} is {mode}; expected one of {', '.join(get_args(ChatMode))}",
            hint=CHAT_MODE_HINT,
        )
