"""The sections of `config.yaml` about chat platforms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from hermes.section import Section, setting


def is_time_zone(name: str) -> bool:
    """Whether this machine knows the time zone `name`."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # late: most commands need no zone

    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


class SessionResetConfig(Section):
    """`session_reset`: when a chat starts a new session by itself."""

    mode: Literal["none", "idle", "daily", "both"] = "both"
    at_hour: int = setting(default=4, at_least=0, at_most=23)
    idle_minutes: int = setting(default=1440, at_least=1)
    notify: bool = True
    notify_exclude_platforms: tuple[str, ...] = setting(default_factory=lambda: ("api_server", "webhook"))
    bg_process_max_age_hours: float | None = setting(default=None, above=0)


class HomeChannelConfig(Section):
    """`platforms.<name>.home_channel`: the chat for messages that are no reply."""

    chat_id: str | None = setting(default=None, is_id=True)
    name: str = "Home"
    thread_id: str | None = setting(default=None, is_id=True)


class PlatformStreamingSettings(Section):
    """`platforms.<name>.streaming`: what differs on this platform from `streaming`."""

    enabled: bool | None = None
    transport: Literal["auto", "draft", "edit", "off"] | None = None
    edit_interval: float | None = setting(default=None, above=0)
    buffer_threshold: int | None = setting(default=None, at_least=1)
    cursor: str | None = None


class PlatformSettings(Section):
    """`platforms.<name>`: one chat platform."""

    enabled: bool = False
    token: str | None = setting(default=None, secret=True, is_id=True)
    api_key: str | None = setting(default=None, secret=True, is_id=True)
    home_channel: HomeChannelConfig | None = None
    session_reset: SessionResetConfig | None = None
    reply_to_mode: Literal["off", "first", "all"] = "first"
    allow_all: bool = False
    allowed_users: tuple[str, ...] = setting(default_factory=tuple, is_id=True)
    allowed_chats: tuple[str, ...] = setting(default_factory=tuple, is_id=True)
    group_policy: Literal["allowed", "open", "disabled"] = "allowed"
    unauthorized_dm_behavior: Literal["pair", "ignore"] | None = None
    streaming: PlatformStreamingSettings | None = None
    gateway_restart_notification: bool = True
    extra: Mapping[str, Any] = setting(default_factory=dict, is_id=True, secret=True)


class StreamingSettings(Section):
    """`streaming`: whether an answer appears in a chat while the model writes it."""

    enabled: bool = False
    transport: Literal["auto", "draft", "edit", "off"] = "auto"
    edit_interval: float = setting(default=0.8, above=0)
    buffer_threshold: int = setting(default=24, at_least=1)
    cursor: str = " \u2589"
    fresh_final_after_seconds: float = setting(default=0.0, at_least=0)


class PrivacyConfig(Section):
    """`privacy`: what a model learns about users."""

    redact_pii: bool = False


class LimitsConfig(Section):
    """`gateway.limits`: how much one user or one chat may use in a day. A key that is not set is no limit."""

    turns_per_user: int | None = setting(default=None, at_least=1)
    turns_per_chat: int | None = setting(default=None, at_least=1)
    tokens_per_user: int | None = setting(default=None, at_least=1)
    tokens_per_chat: int | None = setting(default=None, at_least=1)
    cost_per_user: float | None = setting(default=None, above=0)
    cost_per_chat: float | None = setting(default=None, above=0)
    message_characters: int = setting(default=32_000, at_least=1, at_most=200_000)
    waiting_messages: int = setting(default=100, at_least=1)


class GatewaySettings(Section):
    """`gateway`: how chats are served and stored."""

    node: str | None = setting(default=None, is_id=True)
    jsonl_transcripts: bool = False
    dedupe_days: float = setting(default=7.0, above=0)
    lease_seconds: float = setting(default=30.0, at_least=0.5, at_most=600)
    max_turns: int = setting(default=50, at_least=1, at_most=1000)
    reply_ttl_hours: float = setting(default=24.0, above=0)
    metrics_port: int | None = setting(default=None, at_least=1, at_most=65535)
    admins: tuple[str, ...] = setting(default_factory=tuple)
    approvers: tuple[str, ...] = setting(default_factory=tuple)
    approval_hours: float = setting(default=24.0, above=0)
    memory_turn_seconds: float = setting(default=60.0, at_least=0)
    limits: LimitsConfig = setting(default_factory=LimitsConfig)


class ApiServerConfig(Section):
    """`api_server`: the HTTP server for webhooks and the API."""

    enabled: bool = False
    host: str = "127.0.0.1"
    port: int = setting(default=8642, at_least=0, at_most=65535)
    keys: Mapping[str, str] = setting(default_factory=dict, is_id=True, secret=True)
    max_body_bytes: int = setting(default=10_485_760, at_least=1024, at_most=104_857_600)


class ChatSettings(Section):
    """The top-level settings about chats."""

    timezone: str | None = setting(default=None, check=is_time_zone, expected="a time zone such as Europe/Berlin")
    session_reset: SessionResetConfig = setting(default_factory=SessionResetConfig)
    reset_by_type: Mapping[str, SessionResetConfig] = setting(default_factory=dict)
    reset_by_platform: Mapping[str, SessionResetConfig] = setting(default_factory=dict)
    reset_triggers: tuple[str, ...] = setting(default_factory=lambda: ("/new", "/reset"))
    group_sessions_per_user: bool = True
    thread_sessions_per_user: bool = False
    max_concurrent_sessions: int | None = setting(default=None, at_least=1)
    session_store_max_age_days: int = setting(default=0, at_least=0)
    unauthorized_dm_behavior: Literal["pair", "ignore"] = "pair"
    platforms: Mapping[str, PlatformSettings] = setting(default_factory=dict)
    channel_skills: Mapping[str, tuple[str, ...]] = setting(default_factory=dict)
    streaming: StreamingSettings = setting(default_factory=StreamingSettings)
    privacy: PrivacyConfig = setting(default_factory=PrivacyConfig)
    gateway: GatewaySettings = setting(default_factory=GatewaySettings)
    api_server: ApiServerConfig = setting(default_factory=ApiServerConfig)
