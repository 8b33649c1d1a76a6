"""A gateway that no user may talk to."""

from __future__ import annotations

from hermes.gateway.source import SessionSource


async def no_user_may_talk(_: SessionSource) -> bool:
    """Return False."""
    return False
