"""`hermes gateway stop`, `restart` and `drain`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hermes.platforms.local.client import LocalClient
from tests.cli.conftest import Hermes
from tests.cli.gateway.running import answers, ask, explain, gated_model, gateway, live, send
from tests.support.waiting import LIMIT_S, wait_until


@pytest.mark.parametrize("command", ["stop", "restart", "drain"])
def test_without_a_gateway_the_exit_code_is_3(hermes: Hermes, command: str) -> None:
    done = hermes("gateway", command)
    assert (done.returncode, done.stdout) == (3, "")
    assert "Error: no gateway runs with the home" in done.stderr
    assert "`hermes gateway run`" in done.stderr


def test_unknown_node_is_not_found(hermes: Hermes) -> None:
    with gateway(hermes, "--node", "desk"):
        done = hermes("gateway", "stop", "--node", "kitchen")
        assert (done.returncode, "no gateway named 'kitchen' runs" in done.stderr) == (3, True)
        assert live(hermes)["node"] == "desk"


class TestStop:
    def test_gateway_has_ended_when_the_command_returns(self, hermes: Hermes) -> None:
        with gateway(hermes, "--node", "desk") as running:
            done = hermes("gateway", "stop")
            assert done.returncode == 0, done.stderr
            assert f"Stopped desk (process {running.pid})." in done.stdout
            assert running.wait() == 0

    def test_all_gateways_of_the_home_are_stopped(self, hermes: Hermes) -> None:
        with gateway(hermes, "--node", "one") as one, gateway(hermes, "--node", "two") as two:
            assert hermes("gateway", "stop").stdout.count("Stopped ") == 2
            assert (one.wait(), two.wait()) == (0, 0)

    def test_one_of_two_gateways_is_stopped(self, hermes: Hermes) -> None:
        with gateway(hermes, "--node", "one") as one, gateway(hermes, "--node", "two") as two:
            assert hermes("gateway", "stop", "--node", "two").returncode == 0
            assert (two.wait(), one.process.poll(), live(hermes)["node"]) == (0, None, "one")

    def test_without_its_socket_a_gateway_gets_a_signal(self, hermes: Hermes) -> None:
        with gateway(hermes, "--node", "desk") as running:
            (hermes.home / "gateway-desk.control").unlink()
            assert hermes("gateway", "stop").returncode == 0
            assert running.wait() == 0

    def test_now_does_not_wait_for_turns(self, hermes: Hermes) -> None:
        with gated_model(hermes) as gate, gateway(hermes) as running:
            send(hermes, "hello")
            assert gate.asked.wait(LIMIT_S)
            done = hermes("gateway", "stop", "--now")
            assert "1 turn still runs, at most 3 min" in done.stdout
            assert running.wait() == 1
        assert explain(hermes, "m1")["state"] == "accepted"


class TestRestart:
    def test_gateway_serves_again_when_the_command_returns(self, hermes: Hermes) -> None:
        with gateway(hermes, "--node", "desk") as running:
            before = live(hermes)["holder"]
            done = hermes("gateway", "restart")
            assert done.returncode == 0, done.stderr
            assert f"Restarted desk (process {running.pid})." in done.stdout
            assert live(hermes)["holder"] != before
            assert ask(hermes, "hello").text

    def test_without_its_socket_a_gateway_gets_a_signal(self, hermes: Hermes) -> None:
        with gateway(hermes, "--node", "desk") as running:
            (hermes.home / "gateway-desk.control").unlink()
            assert hermes("gateway", "restart").returncode == 0
            assert live(hermes)["pid"] == running.pid

    def test_gateway_that_cannot_start_again_is_an_error(self, hermes: Hermes) -> None:
        with gateway(hermes) as running:
            (hermes.home / "config.yaml").write_text("sessiondb: {provider: oracle9}")
            # The command itself needs no valid configuration.
            done = hermes("gateway", "restart")
            assert done.returncode == 1
            assert "did not start again" in done.stderr
            assert running.wait() == 1
            assert "oracle9" in running.errors


class TestDrain:
    def test_messages_wait_until_it_is_off(self, hermes: Hermes) -> None:
        with gateway(hermes, "--node", "desk") as running:
            done = hermes("gateway", "drain")
            assert done.stdout == f"desk (process {running.pid}) starts no more turns; no turn runs.\n"
            assert send(hermes, "hello") == "accepted"
            assert live(hermes)["is_draining"] is True
            assert explain(hermes, "m1")["state"] == "accepted"
            assert hermes("gateway", "drain", "--off").stdout == f"desk (process {running.pid}) starts turns again.\n"
            (answer,) = answers(hermes, 1)
            assert answer.answers == ("m1",)
            assert live(hermes)["is_draining"] is False

    def test_running_turn_ends(self, hermes: Hermes) -> None:
        with gated_model(hermes) as gate, gateway(hermes):
            send(hermes, "hello")
            assert gate.asked.wait(LIMIT_S)
            assert "1 turn still runs" in hermes("gateway", "drain").stdout
            gate.open.set()
            wait_until(lambda: explain(hermes, "m1")["state"] == "done", "the end of the turn")


def test_client_of_the_socket_can_control_the_gateway(hermes: Hermes) -> None:
    async def control() -> list[dict[str, Any]]:
        async with asyncio.timeout(LIMIT_S), await LocalClient.connect(hermes.home) as client:
            return [await client.control(each) for each in ("status", "drain", "undrain", "stop")]

    with gateway(hermes, "--node", "desk") as running:
        status, drained, undrained, stopped = asyncio.run(control())
        assert (status["node"], status["pid"], stopped["pid"]) == ("desk", running.pid, running.pid)
        assert (drained["is_draining"], undrained["is_draining"]) == (True, False)
        assert running.wait() == 0
