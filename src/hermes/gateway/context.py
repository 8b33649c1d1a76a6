"""What an agent learns about the chat that it is in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermes.gateway.config import GatewayConfig
from hermes.gateway.entry import SessionEntry
from hermes.gateway.keys import is_shared_multi_user_session
from hermes.gateway.platform import Platform
from hermes.gateway.platform_config import HomeChannel
from hermes.gateway.source import SessionSource


@dataclass
class SessionContext:
    """Where a message came from, which platforms are connected, and where results can be delivered."""

    source: SessionSource
    connected_platforms: list[Platform]
    home_channels: dict[Platform, HomeChannel]
    shared_multi_user_session: bool = False
    session_key: str = ""
    session_id: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return {
            "source": self.source.to_dict(),
            "connected_platforms": [platform.value for platform in self.connected_platforms],
            "home_channels": {platform.value: home.to_dict() for platform, home in self.home_channels.items()},
            "shared_multi_user_session": self.shared_multi_user_session,
            "session_key": self.session_key,
            "session_id": self.session_id,
            "created_at": self.created_at.isoformat() if self.created_at else None,
            "updated_at": self.updated_at.isoformat() if self.updated_at else None,
        }


def build_session_context(
    source: SessionSource, config: GatewayConfig, session_entry: SessionEntry | None = None
) -> SessionContext:
    """Return the context of a message; `session_entry` adds the lane's key, session and times."""
    connected = config.get_connected_platforms()
    homes = {platform: config.get_home_channel(platform) for platform in connected}
    context = SessionContext(
        source=source,
        connected_platforms=connected,
        home_channels={platform: home for platform, home in homes.items() if home is not None},
        shared_multi_user_session=is_shared_multi_user_session(
            source,
            group_sessions_per_user=config.group_sessions_per_user,
            thread_sessions_per_user=config.thread_sessions_per_user,
        ),
    )
    if session_entry is not None:
        context.session_key = session_entry.session_key
        context.session_id = session_entry.session_id
        context.created_at = session_entry.created_at
        context.updated_at = session_entry.updated_at
    return context
