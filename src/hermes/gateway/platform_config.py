"""The settings of a platform, its home channel, and streaming."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hermes.gateway.platform import Platform

_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
_NEEDS_NOTHING: Final = frozenset({Platform.LOCAL, Platform.API_SERVER, Platform.WEBHOOK, Platform.WHATSAPP})
"""Platforms without credentials: the WhatsApp bridge keeps its own, callers of the others bring theirs."""
_CREDENTIALS: Final = {
    Platform.SIGNAL: ("http_url",),
    Platform.EMAIL: ("address",),
    Platform.FEISHU: ("app_id",),
    Platform.DINGTALK: ("client_id", "client_secret"),
}
"""Platforms whose credentials have other names, and which of `extra` they need."""
_LISTS: Final = ("allowed_users", "allowed_chats")


@dataclass
class HomeChannel:
    """The chat of a platform that gets messages which are no reply."""

    platform: Platform
    chat_id: str
    name: str = "Home"
    thread_id: str | None = None

    def __post_init__(self) -> None:
        self.chat_id = str(self.chat_id)
        self.thread_id = None if self.thread_id in (None, "") else str(self.thread_id)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON; the thread only if there is one."""
        data = {"platform": self.platform.value, "chat_id": self.chat_id, "name": self.name}
        return {**data, "thread_id": self.thread_id} if self.thread_id else data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> HomeChannel:
        """Return the home channel of `to_dict`."""
        return cls(
            platform=Platform(data["platform"]),
            chat_id=data["chat_id"],
            name=data.get("name", "Home"),
            thread_id=data.get("thread_id"),
        )


@dataclass
class PlatformConfig:
    """The settings of one platform."""

    enabled: bool = False
    token: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    home_channel: HomeChannel | None = None
    reply_to_mode: str = "first"
    gateway_restart_notification: bool = True
    extra: dict[str, Any] = field(default_factory=dict, repr=False)
    allow_all: bool = False
    allowed_users: tuple[str, ...] = ()
    allowed_chats: tuple[str, ...] = ()
    group_policy: str = "allowed"
    unauthorized_dm_behavior: str | None = None
    streaming: dict[str, Any] = field(default_factory=dict)
    """What differs on this platform from the settings of all."""

    def is_connected(self, platform: Platform) -> bool:
        """Return whether `platform` is enabled, known, and has the credentials that it needs."""
        if not self.enabled or not platform.is_known:
            return False
        if self.token or self.api_key or platform in _NEEDS_NOTHING:
            return True
        names = _CREDENTIALS.get(platform, ())
        return bool(names) and all(self.extra.get(name) for name in names)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON; credentials and home channel only if they are set."""
        data: dict[str, Any] = {
            "enabled": self.enabled,
            "extra": self.extra,
            "reply_to_mode": self.reply_to_mode,
            "gateway_restart_notification": self.gateway_restart_notification,
        }
        data.update((name, list(getattr(self, name))) for name in _LISTS if getattr(self, name))
        if self.allow_all:
            data["allow_all"] = True
        if self.group_policy != "allowed":
            data["group_policy"] = self.group_policy
        if self.unauthorized_dm_behavior:
            data["unauthorized_dm_behavior"] = self.unauthorized_dm_behavior
        if self.streaming:
            data["streaming"] = dict(self.streaming)
        if self.token:
            data["token"] = self.token
        if self.api_key:
            data["api_key"] = self.api_key
        if self.home_channel:
            data["home_channel"] = self.home_channel.to_dict()
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PlatformConfig:
        """Return the settings of `to_dict`."""
        home = data.get("home_channel")
        return cls(
            enabled=read_bool(data.get("enabled"), default=False),
            token=data.get("token"),
            api_key=data.get("api_key"),
            home_channel=HomeChannel.from_dict(home) if home else None,
            reply_to_mode=data.get("reply_to_mode") or "first",
            gateway_restart_notification=read_bool(data.get("gateway_restart_notification"), default=True),
            extra=dict(data.get("extra") or {}),
            allow_all=read_bool(data.get("allow_all"), default=False),
            allowed_users=tuple(map(str, data.get("allowed_users") or ())),
            allowed_chats=tuple(map(str, data.get("allowed_chats") or ())),
            group_policy=data.get("group_policy") or "allowed",
            unauthorized_dm_behavior=data.get("unauthorized_dm_behavior"),
            streaming=dict(data.get("streaming") or {}),
        )


@dataclass
class StreamingConfig:
    """How an answer appears in a chat while the model writes it."""

    enabled: bool = False
    transport: str = "auto"
    edit_interval: float = 0.8
    buffer_threshold: int = 24
    cursor: str = " \u2589"
    fresh_final_after_seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | None) -> StreamingConfig:
        """Return the settings of `to_dict`; a number that cannot be read is the default."""
        data = data or {}
        cursor, usual = data.get("cursor"), cls()
        return cls(
            enabled=read_bool(data.get("enabled"), default=usual.enabled),
            transport=str(data.get("transport") or usual.transport).strip().lower(),
            edit_interval=_number(data.get("edit_interval"), usual.edit_interval),
            buffer_threshold=int(_number(data.get("buffer_threshold"), usual.buffer_threshold)),
            cursor=cursor if isinstance(cursor, str) else usual.cursor,
            fresh_final_after_seconds=_number(data.get("fresh_final_after_seconds"), usual.fresh_final_after_seconds),
        )


def read_bool(value: object, *, default: bool) -> bool:
    """Return a truth value, also from words such as `yes` and `off`; `default` for None and unknown words."""
    if isinstance(value, str):
        word = value.strip().lower()
        return True if word in _TRUE else False if word in _FALSE else default
    return default if value is None else bool(value)


def _number(value: object, default: float) -> float:
    try:
        return float(value) if isinstance(value, str | int | float) else default
    except ValueError:
        return default
