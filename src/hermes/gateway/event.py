"""A message as a platform delivers it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

from hermes.gateway.source import SessionSource

_DASHES = (("\u2014\u2014", "--"), ("\u2014", "--"), ("\u2013", "-"))
"""Phones replace the dashes of options by longer ones."""


class MessageType(Enum):
    """What a message contains."""

    TEXT = "text"
    LOCATION = "location"
    PHOTO = "photo"
    VIDEO = "video"
    AUDIO = "audio"
    VOICE = "voice"
    DOCUMENT = "document"
    STICKER = "sticker"
    COMMAND = "command"


def _now() -> datetime:
    return datetime.now().astimezone().replace(tzinfo=None)


@dataclass
class MessageEvent:
    """An inbound message. `internal` marks one that the gateway itself made."""

    text: str
    message_type: MessageType = MessageType.TEXT
    source: SessionSource | None = None
    raw_message: Any = None
    message_id: str | None = None
    platform_update_id: int | None = None
    media_urls: list[str] = field(default_factory=list)
    media_types: list[str] = field(default_factory=list)
    reply_to_message_id: str | None = None
    reply_to_text: str | None = None
    auto_skill: str | list[str] | None = None
    channel_prompt: str | None = None
    channel_context: str | None = None
    internal: bool = False
    timestamp: datetime = field(default_factory=_now)

    @property
    def skills(self) -> tuple[str, ...]:
        """The names in `auto_skill`; a text is one name."""
        names = [self.auto_skill] if isinstance(self.auto_skill, str) else self.auto_skill or []
        return tuple(each for each in names if each.strip())

    def is_command(self) -> bool:
        """Whether the text begins with a slash."""
        return (self.text or "").startswith("/")

    def get_command(self) -> str | None:
        """Return the command's name without slash and bot suffix; None if this is no command but text or a path."""
        if not self.is_command():
            return None
        name = self.text.split(maxsplit=1)[0][1:].lower().split("@", 1)[0]
        return None if "/" in name else name

    def get_command_args(self) -> str:
        """Return the text after the command's name, with the dashes that a phone replaced; all text if it is none."""
        if not self.is_command():
            return self.text
        _, _, rest = self.text.partition(self.text.split(maxsplit=1)[0])
        rest = rest.strip()
        for typed, meant in _DASHES:
            rest = rest.replace(typed, meant)
        return rest
