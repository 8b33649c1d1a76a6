"""The active record of a lane: which session it has, since when, and the flags that decide about the next access."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermes.errors import InvalidValue
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource

COUNTERS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "total_tokens")
FLAGS = ("expiry_finalized", "suspended", "resume_pending", "is_fresh_reset", "was_auto_reset", "reset_had_activity")


@dataclass
class SessionEntry:
    """The session of a lane. Times without a zone are local times."""

    session_key: str
    session_id: str
    created_at: datetime
    updated_at: datetime
    origin: SessionSource | None = None
    display_name: str | None = None
    platform: Platform | None = None
    chat_type: str = "dm"
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    total_tokens: int = 0
    estimated_cost_usd: float = 0.0
    cost_status: str = "unknown"
    last_prompt_tokens: int = 0
    was_auto_reset: bool = False
    auto_reset_reason: str | None = None
    reset_had_activity: bool = False
    is_fresh_reset: bool = False
    expiry_finalized: bool = False
    suspended: bool = False
    resume_pending: bool = False
    resume_reason: str | None = None
    last_resume_marked_at: datetime | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for `sessions.json`, in the documented order; `origin` only if there is one."""
        marked = self.last_resume_marked_at
        data: dict[str, Any] = {
            "session_key": self.session_key,
            "session_id": self.session_id,
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
            "display_name": self.display_name,
            "platform": self.platform.value if self.platform else None,
            "chat_type": self.chat_type,
            **{name: getattr(self, name) for name in COUNTERS},
            "last_prompt_tokens": self.last_prompt_tokens,
            "estimated_cost_usd": self.estimated_cost_usd,
            "cost_status": self.cost_status,
            "expiry_finalized": self.expiry_finalized,
            "suspended": self.suspended,
            "resume_pending": self.resume_pending,
            "resume_reason": self.resume_reason,
            "last_resume_marked_at": marked.isoformat() if marked else None,
            "is_fresh_reset": self.is_fresh_reset,
            "was_auto_reset": self.was_auto_reset,
            "auto_reset_reason": self.auto_reset_reason,
            "reset_had_activity": self.reset_had_activity,
        }
        if self.origin is not None:
            data["origin"] = self.origin.to_dict()
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SessionEntry:
        """Return the entry of `to_dict`; raise ValueError for a bad value and for an origin on an unknown platform."""
        origin = data.get("origin")
        return cls._read(data, SessionSource.from_dict(origin) if origin else None)

    @classmethod
    def from_stored(cls, data: Mapping[str, Any]) -> SessionEntry:
        """Return the entry of a stored row, also if the plugin of its platform is absent."""
        if not isinstance(data, Mapping):
            raise InvalidValue(f"the row is {type(data).__name__}, expected an object")
        origin, platform = data.get("origin"), data.get("platform")
        if origin is not None and not isinstance(origin, Mapping):
            raise InvalidValue(f"origin is {origin!r}, expected an object")
        entry = cls._read(data, SessionSource.from_stored(origin) if origin else None)
        if entry.platform is None and isinstance(platform, str) and platform:
            entry.platform = Platform.from_stored(platform)
        return entry

    @classmethod
    def _read(cls, data: Mapping[str, Any], origin: SessionSource | None) -> SessionEntry:
        try:
            finalized = data.get("expiry_finalized", data.get("memory_flushed", False))
            flags = {name: bool(data.get(name, False)) for name in FLAGS}
            counts = {name: int(data.get(name) or 0) for name in (*COUNTERS, "last_prompt_tokens")}
            entry = cls(
                session_key=_required_text(data, "session_key"),
                session_id=_required_text(data, "session_id"),
                created_at=datetime.fromisoformat(data["created_at"]),
                updated_at=datetime.fromisoformat(data["updated_at"]),
                origin=origin,
                display_name=data.get("display_name"),
                platform=_known_platform(data.get("platform")),
                chat_type=data.get("chat_type") or "dm",
                estimated_cost_usd=float(data.get("estimated_cost_usd") or 0.0),
                cost_status=data.get("cost_status") or "unknown",
                auto_reset_reason=data.get("auto_reset_reason"),
                resume_reason=data.get("resume_reason"),
                last_resume_marked_at=_time_or_none(data.get("last_resume_marked_at")),
            )
            for name, value in {**counts, **flags, "expiry_finalized": bool(finalized)}.items():
                setattr(entry, name, value)
        except KeyError as error:
            raise InvalidValue(f"{error.args[0]} is missing") from None
        except (TypeError, AttributeError, OverflowError) as error:
            raise InvalidValue(f"a field has the wrong type: {error}") from None
        return entry


def _required_text(data: Mapping[str, Any], name: str) -> str:
    value = data[name]
    if not isinstance(value, str) or not value:
        raise InvalidValue(f"{name} is {value!r}, expected text")
    return value


def _known_platform(name: object) -> Platform | None:
    try:
        return Platform(name) if name else None
    except ValueError:
        return None


def _time_or_none(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None
