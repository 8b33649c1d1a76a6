"""What a command does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hermes.state.lanes.types import MessageKind


@dataclass(frozen=True, slots=True)
class TurnSpec:
    """A turn that the actor runs for the message of a command."""

    text: str = ""
    is_retry: bool = False
    """Whether the last answer is generated again."""
    approval_id: str | None = None


@dataclass(frozen=True, slots=True)
class OtherMessage:
    """A message that is accepted in a lane, its own or another one, before the reply to the command is sent.

    Its delivery id is the same whenever the command runs again, so it is accepted once.
    """

    session_key: str
    payload: Mapping[str, Any]
    delivery_id: str
    platform: str
    kind: MessageKind = "internal"
    account: str = ""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The reply to a command, and what follows from it."""

    text: str = ""
    """The reply to the chat; empty for none."""
    notices: tuple[tuple[str, str], ...] = field(default=())
    """More notices to this chat: a key and a text each."""
    turn: TurnSpec | None = None
    other: tuple[OtherMessage, ...] = ()
