"""`hermes gateway` with a database server, as processes: nothing that it does blocks the event loop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Hermes
from tests.cli.gateway.running import ask, configure, explain, gateway, live, status
from tests.server.kinds import KINDS


@pytest.fixture(params=sorted(KINDS))
def kind(request: pytest.FixtureRequest, hermes: Hermes, tmp_path: Path) -> Iterator[str]:
    """A home that uses an empty place on a server of this kind."""
    with KINDS[request.param].place(tmp_path) as dsn:
        configure(hermes, f"sessiondb: {{provider: {request.param}, dsn: '{dsn}'}}\n")
        yield request.param


def test_a_gateway_on_a_server_answers_and_can_be_looked_at(hermes: Hermes, kind: str) -> None:
    with gateway(hermes, "--node", "desk") as running:
        assert f"Store:     {kind}, " in running.output
        assert "offline model" in ask(hermes, "hello", "m1").text
        assert status(hermes)["queue"]["lanes"] == 1
        assert live(hermes)["counters"]["turns_finished"] == 1
        assert [turn["node"] for turn in explain(hermes, "m1")["turns"]] == ["desk"]
        assert hermes("gateway", "restart").returncode == 0
        running.ready(2)
        assert ask(hermes, "hello again", "m2").answers == ("m2",)
        running.signal()
        assert running.wait() == 0
    assert "blocks the event loop" not in running.errors
    assert "Traceback" not in running.errors
