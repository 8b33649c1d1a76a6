"""A gateway that dies when Slack has an answer: `python -m tests.platforms.slack.dying HOME BASE_URL`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from hermes.gateway.engine.ports import Adapter
from hermes.gateway.node.runner import GatewayRunner
from hermes.platforms.base.adapter import Part
from hermes.platforms.slack.adapter import SlackAdapter
from tests.gateway.reliability.node import Options, make_node
from tests.platforms.slack.adapters import make_adapter


class DyingAdapter(SlackAdapter):
    """Kills its process when Slack has a message, before the gateway learns it."""

    async def post(self, part: Part) -> str:
        """Send, and die."""
        await super().post(part)
        os.kill(os.getpid(), signal.SIGKILL)
        return "not reached"


def main(home: str, base_url: str) -> None:
    """Run a gateway until it dies."""
    os.environ["HERMES_HOME"] = home

    def adapters(_: GatewayRunner) -> list[Adapter]:
        return [make_adapter(Path(home), base_url, kind=DyingAdapter)]

    asyncio.run(make_node(Options(Path(home)), adapters).run())


if __name__ == "__main__":
    main(*sys.argv[1:])
