"""A real gateway with the HTTP API, a real store and the test model server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import openai

from hermes.chat_settings import ApiServerConfig
from hermes.config import Config
from hermes.gateway.node.runner import GatewayRunner
from hermes.platforms.http.adapter import make
from hermes.platforms.http.exchange import ApiAdapter
from hermes.platforms.http.server import HttpServer
from hermes_state import SessionDB

KEYS = {"ann": "key-of-ann-0123456789", "bob": "key-of-bob-0123456789"}


class ApiGateway:
    """One node and its server."""

    def __init__(self, home: Path, model_url: str, port: int = 0) -> None:
        config = Config()
        self.config = replace(
            config,
            model=replace(config.model, provider="custom", base_url=model_url, default="m", api_key="k", attempts=1),
            agent=replace(config.agent, auto_title=False),
            gateway=replace(config.gateway, lease_seconds=2.0),
            api_server=ApiServerConfig(enabled=True, port=port, keys=KEYS, max_body_bytes=200_000),
        )
        self.server: HttpServer
        self.adapter: ApiAdapter
        self.runner = GatewayRunner(
            self.config,
            home,
            node="n1",
            adapters=self._adapters,
            opener=lambda: SessionDB(home / "state.db"),
            variables={"HOME": str(home)},
        )

    def _adapters(self, runner: GatewayRunner) -> list[ApiAdapter]:
        self.server, self.adapter = make(runner, self.config.api_server)
        return [self.adapter]

    def client(self, name: str = "ann") -> openai.AsyncOpenAI:
        """The official client, unchanged."""
        return openai.AsyncOpenAI(
            api_key=KEYS.get(name, "wrong"), base_url=f"{self.server.url}/v1", max_retries=0, timeout=60
        )

    def plain_client(self, name: str = "ann") -> openai.OpenAI:
        """The official client for programs without an event loop."""
        return openai.OpenAI(
            api_key=KEYS.get(name, "wrong"), base_url=f"{self.server.url}/v1", max_retries=0, timeout=60
        )


@asynccontextmanager
async def serving(home: Path, model_url: str, port: int = 0) -> AsyncIterator[ApiGateway]:
    """A gateway that is started, and stopped at the end."""
    gateway = ApiGateway(home, model_url, port)
    await gateway.runner.start()
    try:
        await gateway.server.start()
        yield gateway
    finally:
        await gateway.server.stop()
        await gateway.runner.stop()
