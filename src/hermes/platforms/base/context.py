"""What the gateway gives to an adapter when it makes one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hermes.gateway.engine.ports import Adapter
from hermes.gateway.platform_config import PlatformConfig
from hermes.platforms.base.http import Routes
from hermes.platforms.base.media import MediaFolder


@dataclass(frozen=True, slots=True)
class AdapterContext:
    """The settings of the platform, and what an adapter may use of the gateway."""

    config: PlatformConfig
    home: Path
    media: MediaFolder
    routes: Routes | None = None
    """The gateway's HTTP server, for webhooks; None if it is off."""


MakeAdapter = Callable[[AdapterContext], Adapter]
"""Makes the adapter of a platform without connecting it; raises `ConfigError` if a setting is missing or wrong."""
