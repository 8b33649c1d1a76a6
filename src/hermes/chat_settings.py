"""The sections of `config.yaml` about chat platforms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

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


class PlatformSettings(Section):
    """`platforms.<name>`: one chat platform."""

    enabled: bool = False
    token: str | None = setting(default=None, secret=True, is_id=True)
    api_key: str | None = setting(default=None, secret=True, is_id=True)
    home_channel: HomeChannelConfig | None = None
    session_reset: SessionResetConfig | None = None
    reply_to_mode: Literal["off", "first", "all"] = "first"
    gateway_restart_notification: bool = True
    extra: Mapping[str, str] = setting(default_factory=dict, is_id=True, secret=True)


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


class GatewaySettings(Section):
    """`gateway`: how chats are stored."""

    jsonl_transcripts: bool = False
    dedupe_days: float = setting(default=7.0, above=0)


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
    streaming: StreamingSettings = setting(default_factory=StreamingSettings)
    privacy: PrivacyConfig = setting(default_factory=PrivacyConfig)
    gateway: GatewaySettings = setting(default_factory=GatewaySettings)
