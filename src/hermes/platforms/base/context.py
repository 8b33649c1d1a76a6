"""What the gateway gives to an adapter when it makes one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from hermes.errors import HermesError
from hermes.gateway.engine.ports import Adapter
from hermes.gateway.platform_config import PlatformConfig
from hermes.gateway.source import SessionSource
from hermes.platforms.base.admissions import NotStored
from hermes.platforms.base.http import Routes
from hermes.platforms.base.media import MediaFolder


async def everyone_may_talk(_: SessionSource) -> bool:
    """Return True: a gateway without rules."""
    return True


@dataclass(frozen=True, slots=True)
class AdapterContext:
    """The settings of the platform, and what an adapter may use of the gateway."""

    config: PlatformConfig
    home: Path
    media: MediaFolder
    routes: Routes | None = None
    """The gateway's HTTP server, for webhooks; None if it is off."""
    may_talk: Callable[[SessionSource], Awaitable[bool]] = everyone_may_talk
    """Whether the sender of a message may talk."""

    async def wants_files_of(self, source: SessionSource) -> bool:
        """Whether files of a user are downloaded: of those who may talk. Raise `NotStored` if this is unknown now."""
        try:
            return await self.may_talk(source)
        except HermesError as error:
            raise NotStored(str(error)) from error


MakeAdapter = Callable[[AdapterContext], Adapter]
"""Makes the adapter of a platform without connecting it; raises `ConfigError` if a setting is missing or wrong."""
