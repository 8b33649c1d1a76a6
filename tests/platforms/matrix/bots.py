"""A gateway with the account of a bot, for tests on a real homeserver."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from hermes.gateway.engine.ports import Adapter
from hermes.gateway.node.runner import GatewayRunner
from hermes.gateway.platform_config import PlatformConfig
from hermes.gateway.source import SessionSource
from hermes.platforms.base.adapter import Part
from hermes.platforms.base.context import AdapterContext, everyone_may_talk
from hermes.platforms.base.media import MediaFolder
from hermes.platforms.matrix.adapter import MatrixAdapter
from hermes.platforms.matrix.settings import read_settings
from tests.gateway.reliability.node import Node

POLL_S = 2.0


def make_adapter(
    home: Path,
    base_url: str,
    token: str,
    kind: type[MatrixAdapter] = MatrixAdapter,
    *,
    may_talk: Callable[[SessionSource], Awaitable[bool]] = everyone_may_talk,
    unauthorized_dm_behavior: str | None = None,
    **extra: Any,
) -> MatrixAdapter:
    """Make the adapter of an account."""
    config = PlatformConfig(
        enabled=True,
        token=token,
        extra={"base_url": base_url, **extra},
        unauthorized_dm_behavior=unauthorized_dm_behavior,
    )
    context = AdapterContext(config, home, MediaFolder(home, "matrix"), may_talk=may_talk)
    return kind(context, read_settings(config), poll_s=POLL_S)


class DyingAdapter(MatrixAdapter):
    """Kills its process when the homeserver has a reply, before the gateway learns it."""

    async def post(self, part: Part) -> str:
        """Send, and die."""
        await super().post(part)
        os.kill(os.getpid(), signal.SIGKILL)
        return "not reached"


def main(home: str, base_url: str, token: str, dies: str) -> None:
    """Run a gateway in this process until it dies or is killed."""
    os.environ["HERMES_HOME"] = home
    kind = DyingAdapter if dies == "dies" else MatrixAdapter

    def adapters(_: GatewayRunner) -> list[Adapter]:
        return [make_adapter(Path(home), base_url, token, kind)]

    asyncio.run(Node(home=Path(home), adapters=adapters).run())


if __name__ == "__main__":
    main(*sys.argv[1:])
