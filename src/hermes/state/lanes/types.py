"""The values that operations on lanes accept and return."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from hermes.state.row_types import GivenChildKind

MessageKind = Literal["normal", "queue", "steer", "command", "internal"]
MessageState = Literal["accepted", "held", "running", "done", "failed", "discarded", "parked", "dead"]
TurnState = Literal["running", "finished", "failed", "discarded", "parked", "interrupted", "lost"]
DeliveryState = Literal["draft", "pending", "sending", "sent", "unknown", "expired", "dead"]


class LaneFields(TypedDict, total=False):
    """The columns of a lane that callers set."""

    created_at: float
    updated_at: float
    platform: str | None
    chat_type: str
    display_name: str | None
    origin: dict[str, Any] | None
    last_prompt_tokens: int
    suspended: bool
    resume_pending: bool
    resume_reason: str | None
    last_resume_marked_at: float | None
    is_fresh_reset: bool
    was_auto_reset: bool
    auto_reset_reason: str | None
    reset_had_activity: bool
    expiry_finalized: bool
    expiry_failures: int
    restart_count: int
    extra: dict[str, Any]


class LaneRow(TypedDict):
    """A lane, and some columns of the session that it uses."""

    session_key: str
    session_id: str
    created_at: float
    updated_at: float
    platform: str | None
    chat_type: str
    display_name: str | None
    origin: dict[str, Any] | None
    last_prompt_tokens: int
    suspended: bool
    resume_pending: bool
    resume_reason: str | None
    last_resume_marked_at: float | None
    is_fresh_reset: bool
    was_auto_reset: bool
    auto_reset_reason: str | None
    reset_had_activity: bool
    expiry_finalized: bool
    expiry_failures: int
    restart_count: int
    extra: dict[str, Any]
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    estimated_cost_usd: float | None
    cost_status: str | None
    message_count: int
    owner: str | None
    ended_at: float | None
    cursor: str


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session that a lane starts with."""

    session_id: str
    source: str
    user_id: str | None = None
    owner: str | None = None
    """None: it follows from the source and the user."""
    model: str | None = None
    parent_session_id: str | None = None
    child_kind: GivenChildKind | None = None


@dataclass(frozen=True, slots=True)
class Keep:
    """The decision to use a lane's session; `touch` notes activity: `updated_at`, and that it is not finalized."""

    changes: LaneFields = field(default_factory=LaneFields)
    touch: bool = True


@dataclass(frozen=True, slots=True)
class Start:
    """The decision to start a new session in a lane: its flags are cleared, then `fields` are set.

    The session that the lane used before ends with `end_reason`; with None it stays open.
    """

    session: NewSession
    fields: LaneFields = field(default_factory=LaneFields)
    end_reason: str | None = "session_reset"


Decision = Keep | Start
Decide = Callable[[LaneRow | None, float], Decision]
"""Decides what becomes of a lane (None: it does not exist) at a time. It may be called again, so it has no effects."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A lane after a decision."""

    lane: LaneRow
    before: LaneRow | None
    is_new_session: bool


@dataclass(frozen=True, slots=True)
class ImportedLane:
    """A lane from a file, with its session, which is created if it does not exist."""

    key: str
    session: NewSession
    fields: LaneFields = field(default_factory=LaneFields)


class InboxRow(TypedDict):
    """A message from a platform."""

    id: int
    uid: str
    session_key: str
    kind: MessageKind
    state: MessageState
    reason: str | None
    attempts: int
    starts: int
    platform: str
    account: str
    chat_id: str | None
    message_id: str | None
    delivery_id: str | None
    turn_id: str | None
    accepted_at: float
    started_at: float | None
    finished_at: float | None
    payload: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Accepted:
    """Whether a message is new or was accepted before, and how many messages wait in its lane."""

    state: Literal["accepted", "known"]
    message: InboxRow
    waiting: int


@dataclass(frozen=True, slots=True)
class QueueTotals:
    """How many lanes have waiting messages, how many messages wait in them, and how many lanes a node has or rest."""

    lanes: int
    waiting: int
    leased: int


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of a node to work on a lane; `until` is a time of the database."""

    session_key: str
    node: str
    token: int
    until: float


class TurnRow(TypedDict):
    """A turn of a lane."""

    turn_id: str
    session_key: str
    session_id: str | None
    node: str
    token: int
    state: TurnState
    reason: str | None
    progress: int
    note: dict[str, Any] | None
    started_at: float
    progressed_at: float | None
    finished_at: float | None


Choose = Callable[[Sequence[InboxRow]], Sequence[int]]
"""Chooses the messages of the next turn, by their ids. It may be called again, so it has no effects."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A lane that a node has leased, and its waiting messages."""

    lease: Lease
    messages: tuple[InboxRow, ...]
    """The messages that wait, oldest first, at most as many as requested; without the started ones."""
    waiting: int
    """How many messages wait, also those that were not requested."""
    turn_id: str | None = None
    started: tuple[InboxRow, ...] = ()
    """The messages of the turn that was started with the lease."""
    lost: TurnRow | None = None
    """The turn of a node that died or lost its lease; its messages wait again, or are dead."""
    dead: tuple[InboxRow, ...] = ()
    """Messages of the lost turn that were tried too often and do not wait any more."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How many messages wait in a lane after a turn, and the lease if the node keeps it."""

    waiting: int
    lease: Lease | None
    dead: tuple[int, ...] = ()
    """Messages that were tried too often and do not wait any more."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """What there is to do: the oldest ready message, and when the first and the last lease end; 0: none."""

    newest_id: int
    """The newest message of the inbox."""
    ready_id: int
    first_lease_until: float
    last_lease_until: float
    now: float


@dataclass(frozen=True, slots=True)
class Intent:
    """A message that is to be sent. The same key is never sent twice."""

    key: str
    payload: Mapping[str, Any]
    platform: str
    account: str = ""
    session_key: str | None = None
    kind: str = "reply"
    delay_seconds: float = 0.0
    ttl_seconds: float | None = None
    """After this time it is not sent any more, but listed as expired."""
    draft: bool = False
    """Whether it is not complete yet: it is sent when it is intended again without this."""


class OutboxRow(TypedDict):
    """A message to a platform."""

    id: int
    key: str
    session_key: str | None
    turn_id: str | None
    platform: str
    account: str
    kind: str
    state: DeliveryState
    reason: str | None
    attempts: int
    holder: str | None
    created_at: float
    due_at: float
    expires_at: float | None
    finished_at: float | None
    receipt: dict[str, Any] | None
    payload: dict[str, Any] | None
    was_sending: bool


@dataclass(frozen=True, slots=True)
class ConnectorLease:
    """The right of a node to poll an account; `until` is a time of the database."""

    name: str
    holder: str
    token: int
    until: float
