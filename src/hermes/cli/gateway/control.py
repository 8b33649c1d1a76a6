"""`hermes gateway stop`, `restart` and `drain`: control the gateways of this home."""

from __future__ import annotations

import signal
from typing import Any

import click

from hermes.cli.display.terminal import write_stdout
from hermes.cli.gateway.processes import GatewayProcess, require_processes, wait_for_end, wait_for_next
from hermes.cli.gateway.wording import span
from hermes.errors import HermesError
from hermes.home import get_hermes_home
from hermes.phrases import plural

DRAIN_S = 180.0
MORE_S = 60.0
"""How much longer than its time for draining a gateway may take to end or to start again."""
NODE = click.option("--node", metavar="NAME", help="Only the gateway with this name. Default: all of this home.")


@click.command()
@NODE
@click.option("--now", "is_now", is_flag=True, help="Do not wait for running turns; they are continued later.")
def stop(node: str | None, is_now: bool) -> None:
    """Drain and stop the gateway of this home.

    Turns that run may end, for at most `agent.restart_drain_timeout` seconds. The exit code is 3 if no gateway runs.
    """
    for process in require_processes(get_hermes_home(), node):
        result = process.request("stop", now=is_now)
        if result is None:
            process.signal(signal.SIGTERM)
        limit_s = _say(process, "Stopping", result)
        if not wait_for_end(process, limit_s):
            raise _too_slow(process)
        write_stdout(f"Stopped {process.name}.")


@click.command()
@NODE
def restart(node: str | None) -> None:
    """Drain and restart the gateway of this home.

    The process keeps its number and its command line. The exit code is 3 if no gateway runs.
    """
    for process in require_processes(get_hermes_home(), node):
        result = process.request("restart")
        if result is None:
            process.signal(signal.SIGUSR1)
        limit_s = _say(process, "Restarting", result)
        if not wait_for_end(process, limit_s):
            raise _too_slow(process)
        new = wait_for_next(process, MORE_S)
        if new is None:
            raise HermesError(
                f"the gateway {process.name} has stopped, but did not start again",
                hint="start it with `hermes gateway run`, which says what is wrong",
            )
        write_stdout(f"Restarted {new.name}.")


@click.command()
@NODE
@click.option("--off", "is_off", is_flag=True, help="Start turns again.")
def drain(node: str | None, is_off: bool) -> None:
    """Start no more turns; messages are still accepted.

    They wait until `hermes gateway drain --off`, or until another node answers them. The exit code is 3 if no gateway
    runs.
    """
    for process in require_processes(get_hermes_home(), node):
        result = process.request("undrain" if is_off else "drain")
        if result is None:
            raise HermesError(f"the gateway {process.name} does not respond", hint="look at its log")
        if is_off:
            write_stdout(f"{process.name} starts turns again.")
        else:
            write_stdout(f"{process.name} starts no more turns; {_running(result)}.")


def _say(process: GatewayProcess, doing: str, result: dict[str, Any] | None) -> float:
    """Write what a gateway does now, and return how long it may take."""
    limit_s = DRAIN_S if result is None else float(result.get("drain_timeout_s", DRAIN_S))
    running = "" if result is None or not result.get("running") else f": {_running(result)}, at most {span(limit_s)}"
    write_stdout(f"{doing} {process.name}{running}.")
    return limit_s + MORE_S


def _running(result: dict[str, Any]) -> str:
    number = int(result.get("running", 0))
    return f"{plural(number, 'turn')} still {'runs' if number == 1 else 'run'}" if number else "no turn runs"


def _too_slow(process: GatewayProcess) -> HermesError:
    return HermesError(
        f"the gateway {process.name} has not ended yet",
        hint=f"`hermes gateway stop --now` does not wait for turns; `kill -9 {process.pid}` loses no accepted message",
    )
