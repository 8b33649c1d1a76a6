"""The configuration of a gateway."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from hermes.chat_settings import is_time_zone
from hermes.errors import InvalidValue
from hermes.gateway.platform import Platform
from hermes.gateway.platform_config import HomeChannel, PlatformConfig, StreamingConfig, read_bool
from hermes.gateway.policy import SessionResetPolicy
from hermes.home import get_hermes_home

T = TypeVar("T")


def _sessions_dir() -> Path:
    return get_hermes_home() / "sessions"


@dataclass
class GatewayConfig:
    """Which platforms a gateway serves, who shares a session, and when sessions reset."""

    platforms: dict[Platform, PlatformConfig] = field(default_factory=dict)
    default_reset_policy: SessionResetPolicy = field(default_factory=SessionResetPolicy)
    reset_by_type: dict[str, SessionResetPolicy] = field(default_factory=dict)
    reset_by_platform: dict[Platform, SessionResetPolicy] = field(default_factory=dict)
    reset_triggers: list[str] = field(default_factory=lambda: ["/new", "/reset"])
    quick_commands: dict[str, Any] = field(default_factory=dict)
    sessions_dir: Path = field(default_factory=_sessions_dir)
    always_log_local: bool = True
    filter_silence_narration: bool = True
    stt_enabled: bool = True
    group_sessions_per_user: bool = True
    thread_sessions_per_user: bool = False
    max_concurrent_sessions: int | None = None
    unauthorized_dm_behavior: str = "pair"
    streaming: StreamingConfig = field(default_factory=StreamingConfig)
    session_store_max_age_days: int = 0
    timezone: str | None = None
    """The time zone of the daily reset; None is the machine's."""
    jsonl_transcripts: bool = False
    redact_pii: bool = False

    def __post_init__(self) -> None:
        self.sessions_dir = Path(self.sessions_dir)
        if self.timezone is not None and not is_time_zone(self.timezone):
            raise InvalidValue(f"timezone is {self.timezone!r}, expected a time zone such as Europe/Berlin")

    @property
    def zone(self) -> ZoneInfo | None:
        """The configured time zone, or None for the machine's."""
        return ZoneInfo(self.timezone) if self.timezone else None

    def get_reset_policy(self, platform: Platform | None = None, session_type: str | None = None) -> SessionResetPolicy:
        """Return the policy of a lane: the platform's, else that of its chat type, else the default."""
        if platform is not None and platform in self.reset_by_platform:
            return self.reset_by_platform[platform]
        if session_type is not None and session_type in self.reset_by_type:
            return self.reset_by_type[session_type]
        return self.default_reset_policy

    def get_connected_platforms(self) -> list[Platform]:
        """Return the platforms that are enabled and have credentials, by name."""
        connected = [platform for platform, settings in self.platforms.items() if settings.is_connected(platform)]
        return sorted(connected, key=lambda platform: str(platform.value))

    def get_home_channel(self, platform: Platform) -> HomeChannel | None:
        """Return the home channel of a platform, if it has one."""
        settings = self.platforms.get(platform)
        return settings.home_channel if settings else None

    def get_streaming(self, platform: Platform) -> StreamingConfig:
        """Return how answers appear on a platform: its own settings, and those of all for what it does not set."""
        settings = self.platforms.get(platform)
        changes = settings.streaming if settings else {}
        return StreamingConfig.from_dict({**self.streaming.to_dict(), **changes}) if changes else self.streaming

    @property
    def has_streaming(self) -> bool:
        """Whether answers appear while they are written on at least one platform."""
        return self.streaming.enabled or any(self.get_streaming(each).enabled for each in self.platforms)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON; our additions only if they are set."""
        data: dict[str, Any] = {
            "platforms": {platform.value: settings.to_dict() for platform, settings in self.platforms.items()},
            "default_reset_policy": self.default_reset_policy.to_dict(),
            "reset_by_type": {name: policy.to_dict() for name, policy in self.reset_by_type.items()},
            "reset_by_platform": {each.value: policy.to_dict() for each, policy in self.reset_by_platform.items()},
            "reset_triggers": list(self.reset_triggers),
            "quick_commands": self.quick_commands,
            "sessions_dir": str(self.sessions_dir),
            "streaming": self.streaming.to_dict(),
        }
        data.update((name, getattr(self, name)) for name in _PLAIN)
        data.update((name, getattr(self, name)) for name in _ADDED if getattr(self, name))
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GatewayConfig:
        """Return the configuration of `to_dict`, or of settings as `config.yaml` names them; raise ValueError if wrong.

        A platform's policy is `reset_by_platform.<name>`, or `platforms.<name>.session_reset`, which wins.
        """
        usual = cls()
        platforms = _by_platform(data.get("platforms"), PlatformConfig.from_dict)
        by_platform = _by_platform(data.get("reset_by_platform"), SessionResetPolicy.from_dict)
        for name, settings in (data.get("platforms") or {}).items():
            if isinstance(settings, Mapping) and settings.get("session_reset"):
                by_platform[Platform.from_stored(name)] = SessionResetPolicy.from_dict(settings["session_reset"])
        return cls(
            platforms=platforms,
            default_reset_policy=SessionResetPolicy.from_dict(
                data.get("default_reset_policy") or data.get("session_reset") or {}
            ),
            reset_by_type={
                name: SessionResetPolicy.from_dict(policy) for name, policy in (data.get("reset_by_type") or {}).items()
            },
            reset_by_platform=by_platform,
            reset_triggers=list(data.get("reset_triggers") or usual.reset_triggers),
            quick_commands=dict(data.get("quick_commands") or {}),
            sessions_dir=Path(data.get("sessions_dir") or usual.sessions_dir),
            always_log_local=read_bool(data.get("always_log_local"), default=True),
            filter_silence_narration=read_bool(data.get("filter_silence_narration"), default=True),
            stt_enabled=read_bool(data.get("stt_enabled"), default=True),
            group_sessions_per_user=read_bool(data.get("group_sessions_per_user"), default=True),
            thread_sessions_per_user=read_bool(data.get("thread_sessions_per_user"), default=False),
            max_concurrent_sessions=data.get("max_concurrent_sessions"),
            unauthorized_dm_behavior=data.get("unauthorized_dm_behavior") or "pair",
            streaming=StreamingConfig.from_dict(data.get("streaming")),
            session_store_max_age_days=max(0, int(data.get("session_store_max_age_days") or 0)),
            timezone=data.get("timezone"),
            jsonl_transcripts=read_bool(data.get("jsonl_transcripts"), default=False),
            redact_pii=read_bool(data.get("redact_pii"), default=False),
        )


_PLAIN = (
    "always_log_local",
    "filter_silence_narration",
    "stt_enabled",
    "group_sessions_per_user",
    "thread_sessions_per_user",
    "max_concurrent_sessions",
    "unauthorized_dm_behavior",
    "session_store_max_age_days",
)
_ADDED = ("timezone", "jsonl_transcripts", "redact_pii")


def _by_platform(data: Mapping[str, Any] | None, read: Callable[[Mapping[str, Any]], T]) -> dict[Platform, T]:
    """Return settings by platform; the plugin of a platform may be loaded later."""
    return {Platform.from_stored(name): read(each or {}) for name, each in (data or {}).items()}
