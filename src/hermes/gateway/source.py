"""Where a message came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from hermes.errors import InvalidValue
from hermes.gateway.platform import Platform

_ALWAYS = ("chat_id", "chat_name", "chat_type", "user_id", "user_name", "thread_id", "chat_topic")
_WHEN_SET = (
    "user_id_alt",
    "chat_id_alt",
    "guild_id",
    "parent_chat_id",
    "message_id",
    "is_bot",
    "role_authorized",
)


@dataclass(frozen=True)
class SessionSource:
    """The chat, the user and the message that a turn comes from; used for routing, isolation and the prompt."""

    platform: Platform
    chat_id: str
    chat_name: str | None = None
    chat_type: str = "dm"
    user_id: str | None = None
    user_name: str | None = None
    thread_id: str | None = None
    chat_topic: str | None = None
    user_id_alt: str | None = None
    chat_id_alt: str | None = None
    is_bot: bool = False
    guild_id: str | None = None
    parent_chat_id: str | None = None
    message_id: str | None = None
    role_authorized: bool = False

    def __post_init__(self) -> None:
        """Turn numbers into text, as platforms give ids in both forms."""
        if isinstance(self.platform, str):
            object.__setattr__(self, "platform", Platform(self.platform))
        for name in (*_ALWAYS, *_WHEN_SET):
            value = getattr(self, name)
            if name not in ("is_bot", "role_authorized") and value is not None and not isinstance(value, str):
                object.__setattr__(self, name, str(value))
        if self.chat_id is None:
            object.__setattr__(self, "chat_id", "")
        if not self.chat_type:
            object.__setattr__(self, "chat_type", "dm")

    @property
    def description(self) -> str:
        """A summary for people, such as `DM with Alice` or `group: My Group, thread: 12345`."""
        if self.platform is Platform.LOCAL:
            return "CLI terminal"
        return describe_chat(
            self.chat_type,
            self.chat_name or self.chat_id,
            self.user_name or self.user_id or "user",
            self.thread_id,
        )

    @property
    def participant(self) -> str | None:
        """The id that isolates a user: the stable alternative id if there is one."""
        return self.user_id_alt or self.user_id or None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON; rare fields appear only if they are set."""
        data: dict[str, Any] = {"platform": self.platform.value}
        data.update((name, getattr(self, name)) for name in _ALWAYS)
        data.update((name, getattr(self, name)) for name in _WHEN_SET if getattr(self, name))
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SessionSource:
        """Return the source of `to_dict`; raise ValueError for a platform that is not known."""
        return cls._read(data, Platform(data["platform"]))

    @classmethod
    def from_stored(cls, data: Mapping[str, Any]) -> SessionSource:
        """Return the source of a stored row, also if the plugin of its platform is absent."""
        name = data.get("platform")
        if not isinstance(name, str) or not name:
            raise InvalidValue(f"origin.platform is {name!r}, expected the name of a platform")
        return cls._read(data, Platform.from_stored(name))

    @classmethod
    def _read(cls, data: Mapping[str, Any], platform: Platform) -> SessionSource:
        if "chat_id" not in data:
            raise InvalidValue("the chat_id of the origin is missing")
        values: dict[str, Any] = {"chat_id": _text(data["chat_id"], "chat_id") or ""}
        for each in fields(cls):
            if each.name in ("platform", "chat_id") or data.get(each.name) is None:
                continue
            is_flag = each.name in ("is_bot", "role_authorized")
            values[each.name] = bool(data[each.name]) if is_flag else _text(data[each.name], each.name)
        return cls(platform=platform, **values)


def describe_chat(chat_type: str, chat: str, user: str, thread_id: str | None) -> str:
    """Return the summary of a chat from the names to show."""
    if chat_type == "dm":
        text = f"DM with {user}"
    elif chat_type in ("group", "channel"):
        text = f"{chat_type}: {chat}"
    else:
        text = chat
    return f"{text}, thread: {thread_id}" if thread_id else text


def _text(value: object, name: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidValue(f"{name} is {value!r}, expected text")
    return str(value)
