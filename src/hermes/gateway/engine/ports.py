"""What the engine needs from others: adapters that talk to platforms, and a brain that runs turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from hermes.errors import HermesError
from hermes.gateway.source import SessionSource
from hermes.state.lanes.types import InboxRow, Lease
from hermes.state.owner import Owner

# --- adapters ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message for a chat, as an adapter sends it."""

    key: str
    """The idempotency key, the same at every attempt; the platform gets it where it can use it."""
    chat_id: str
    text: str
    kind: Literal["reply", "notice"] = "reply"
    thread_id: str | None = None
    reply_to: str | None = None
    """The message that this answers."""
    answers: Sequence[str] = ()
    """All messages that this answers."""
    chat_type: str = "dm"
    preview: Mapping[str, Any] | None = None
    """The receipt of a preview that this completes."""
    is_final: bool = True


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a platform returned for a message that it has."""

    message_ids: Sequence[str] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


class NotSent(Exception):
    """The platform does not have the message; `is_final` if trying again is useless."""

    def __init__(self, reason: str, *, retry_after_s: float | None = None, is_final: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.is_final = is_final


class MaybeSent(Exception):
    """The platform may have the message: the connection was lost after it was sent."""


class Adapter(Protocol):
    """A connection to one account of a platform."""

    @property
    def platform(self) -> str:
        """The name of the platform."""

    @property
    def account(self) -> str:
        """The account, if a platform can have several; else an empty string."""

    @property
    def delivers_itself(self) -> bool:
        """Whether the adapter takes its messages from the outbox itself, as the local socket does."""

    @property
    def can_edit(self) -> bool:
        """Whether a message can be changed after it was sent, as previews need it."""

    @property
    def needs_one_poller(self) -> bool:
        """Whether only one node may receive for this account at a time."""

    async def start(self, receive: Receive) -> None:
        """Connect, and pass every inbound message to `receive`."""

    async def stop(self) -> None:
        """Disconnect."""

    async def send(self, delivery: Delivery) -> Receipt:
        """Send a message; raise `NotSent` or `MaybeSent`."""

    async def find(self, delivery: Delivery) -> Receipt | None:
        """Return the receipt of a message that may have been sent before, if the platform can tell; else None.

        Raise `NotSent` if the platform can tell that it does not have the message.
        """

    async def typing(self, chat_id: str, thread_id: str | None) -> None:
        """Show that an answer is being written, where the platform can."""


@dataclass(frozen=True, slots=True)
class Inbound:
    """A message from a platform."""

    text: str
    source: SessionSource
    message_id: str | None = None
    delivery_id: str | None = None
    account: str = ""
    message_type: str = "text"
    media: Sequence[Mapping[str, str]] = ()
    reply_to_text: str | None = None
    is_reply: bool = False
    """Whether it answers another message, also if that has no text."""
    skills: Sequence[str] = ()
    """The skills that the adapter has bound to the chat or the topic."""


@dataclass(frozen=True, slots=True)
class Admission:
    """What became of an inbound message; it is `accepted` or `known` only after the commit."""

    state: Literal["accepted", "known", "refused"]
    code: str = ""
    message: str = ""
    uid: str = ""


class Receive(Protocol):
    """Accepts a message from an adapter."""

    async def __call__(self, inbound: Inbound) -> Admission:
        """Store a message and return what became of it."""


# --- turns ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TurnMessage:
    """A message of a user in a turn."""

    uid: str
    text: str
    """With the name of the sender, if users share the session; empty if there are only files."""
    media: Sequence[Mapping[str, Any]] = ()
    """The stored files of the message, as its adapter described them; the brain reads them."""


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """One turn of a lane."""

    session_key: str
    session_id: str
    owner: Owner
    source: SessionSource
    lease: Lease
    turn_id: str
    messages: Sequence[TurnMessage]
    rows: Sequence[InboxRow] = ()
    notes: Sequence[str] = ()
    """What the model learns in this turn only."""
    context: str = ""
    """The section of the system prompt about the chat, for a session that starts."""
    skills: Sequence[str] = ()
    """The skills that belong to the chat; a session that starts gets their text."""
    approval_id: str | None = None
    """An approved tool call that is run first."""
    is_retry: bool = False
    """Whether the last answer is generated again."""

    @property
    def account(self) -> str:
        """The account of the platform that has received the messages."""
        return self.rows[-1]["account"] if self.rows else ""


TurnStatus = Literal["done", "interrupted", "failed"]


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended."""

    status: TurnStatus
    text: str = ""
    session_id: str = ""
    error: HermesError | None = None
    notices: Sequence[str] = ()
    """Sentences for the user, such as that the conversation was compressed."""
    tokens: int = 0
    cost_usd: float = 0.0
    prompt_tokens: int = 0
    tools: Sequence[str] = ()
    untaken: Sequence[str] = ()
    """The uids of steering messages that the turn accepted but did not use."""


class RunningTurn(Protocol):
    """A turn that runs; it is used on the event loop."""

    async def result(self) -> TurnResult:
        """Wait for the end of the turn."""

    def cancel(self) -> None:
        """Stop the turn; what it has written so far stays."""

    def steer(self, message: TurnMessage) -> bool:
        """Add a message to the turn; False if it cannot take any more."""

    @property
    def text(self) -> str:
        """The answer so far."""

    @property
    def progress(self) -> int:
        """A number that grows with every complete step, such as a result of a tool."""

    @property
    def active_at(self) -> float:
        """When the turn last did anything, on the loop's clock."""

    @property
    def activity(self) -> str:
        """What the turn does now, in a few words."""


class Brain(Protocol):
    """Runs turns."""

    def start(self, request: TurnRequest) -> RunningTurn:
        """Start a turn and return at once."""

    def forget(self, session_key: str) -> None:
        """Drop what is cached for a lane."""

    def set_model(self, session_key: str, name: str | None) -> None:
        """Use this model for the next turns of a lane; None: the configured one."""
