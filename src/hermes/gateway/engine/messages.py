"""Messages of the inbox as the engine reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hermes.errors import InvalidValue
from hermes.gateway.engine.ports import Inbound
from hermes.gateway.source import SessionSource
from hermes.state.lanes.types import InboxRow, MessageKind


@dataclass(frozen=True, slots=True)
class Message:
    """A message that waits in a lane."""

    id: int
    uid: str
    kind: MessageKind
    text: str
    source: SessionSource
    message_id: str | None
    accepted_at: float
    attempts: int = 0
    starts: int = 0
    command: str | None = None
    args: str = ""
    has_media: bool = False
    media: Sequence[Mapping[str, str]] = ()
    reply_to_text: str | None = None
    skills: Sequence[str] = ()
    internal: str | None = None
    approval_id: str | None = None
    is_background: bool = False
    row: InboxRow | None = None

    @property
    def sender(self) -> str:
        """The user who wrote it; in a private chat without a user id, the chat."""
        return self.source.participant or f"chat:{self.source.chat_id}"

    @property
    def account(self) -> str:
        """The account of the platform that has received it."""
        return "" if self.row is None else self.row["account"]


def encode_payload(
    inbound: Inbound, *, command: str | None = None, args: str = "", text: str | None = None
) -> dict[str, Any]:
    """Return the payload of an inbound message for the inbox."""
    payload: dict[str, Any] = {
        "text": inbound.text if text is None else text,
        "source": inbound.source.to_dict(),
        "type": inbound.message_type,
    }
    if inbound.media:
        payload["media"] = [dict(each) for each in inbound.media]
    if inbound.reply_to_text:
        payload["reply_to_text"] = inbound.reply_to_text
    if inbound.skills:
        payload["skills"] = list(inbound.skills)
    if command is not None:
        payload |= {"command": command, "args": args}
    return payload


def decode_message(row: InboxRow) -> Message:
    """Return a message of the inbox; raise `InvalidValue` if its payload is none of a gateway."""
    payload = row["payload"]
    if not isinstance(payload, dict) or not isinstance(payload.get("source"), dict):
        raise InvalidValue(f"message {row['id']} of the inbox has no source")
    media = payload.get("media") or []
    if not isinstance(media, list) or not all(isinstance(each, dict) for each in media):
        raise InvalidValue(f"the media of message {row['id']} of the inbox cannot be read")
    return Message(
        id=row["id"],
        uid=row["uid"],
        kind=row["kind"],
        text=str(payload.get("text") or ""),
        source=SessionSource.from_stored(payload["source"]),
        message_id=row["message_id"],
        accepted_at=row["accepted_at"],
        attempts=row["attempts"],
        starts=row["starts"],
        command=_text(payload, "command"),
        args=str(payload.get("args") or ""),
        has_media=bool(media) or payload.get("type", "text") not in ("text", "command"),
        media=media,
        reply_to_text=_text(payload, "reply_to_text"),
        skills=_texts(payload, "skills"),
        internal=_text(payload, "internal"),
        approval_id=_text(payload, "approval_id"),
        is_background=bool(payload.get("background")),
        row=row,
    )


def _text(payload: Mapping[str, Any], name: str) -> str | None:
    value = payload.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidValue(f"{name} of a message of the inbox is {type(value).__name__}, expected text")
    return value


def _texts(payload: Mapping[str, Any], name: str) -> tuple[str, ...]:
    values = payload.get(name) or []
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise InvalidValue(f"{name} of a message of the inbox are not a list of texts")
    return tuple(values)
