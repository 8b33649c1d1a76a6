"""Take-over: a node is killed while a turn runs, and another one continues the lane."""

from __future__ import annotations

import os
import time
from pathlib import Path
from statistics import median

from bench.gateway.processes import NodeProcess, put_message, wait_for
from bench.gateway.synthetic import write_settings
from bench.job import Result
from hermes.config import load_config
from hermes.state.lanes.types import TurnRow
from hermes.state.provider import SessionDBProvider, open_session_db

LEASE_S = 2.0
TURN_S = 600.0
"""Longer than the measurement."""


def measure_takeover(home: Path, repeats: int, dsn: str | None = None) -> Result:
    """Kill the node of a running turn several times; return how long it took until another node ran the turn.

    Each kill comes at another moment of the lease, also right after its renewal, when it lasts longest.
    """
    write_settings(home, lease_s=LEASE_S, dsn=dsn)
    os.environ["HERMES_HOME"] = str(home)
    times = []
    with open_session_db(load_config(home)) as store:
        nodes = [_start(home, 0)]
        try:
            key = put_message(store, 0, 1)
            for number in range(1, repeats + 1):
                first = _wait_for_turn(store, key, number - 1)
                nodes.append(_start(home, number))
                time.sleep(LEASE_S / 3 * (1 + number / repeats))
                killed_at = time.time()
                nodes[number - 1].kill()
                then = _wait_for_turn(store, key, number)
                assert then["turn_id"] != first["turn_id"]
                times.append(then["started_at"] - killed_at)
                if number % 2 == 0:  # a message is tried three times without progress
                    key = put_message(store, number, number + 1)
        finally:
            for node in nodes:
                if node.process.poll() is None:
                    node.kill()
    return {"median": median(times) * 1000, "max": max(times) * 1000, "load": os.getloadavg()[0]}


def _start(home: Path, number: int) -> NodeProcess:
    node = NodeProcess(home, f"node-{number}", TURN_S)
    node.wait_until_ready()
    return node


def _wait_for_turn(store: SessionDBProvider, key: str, node: int) -> TurnRow:
    """Return the turn of a lane that a node runs, as soon as it does."""
    found: list[TurnRow] = []

    def runs() -> bool:
        found[:] = [
            each
            for each in store.turns.running()
            if each["session_key"] == key and each["node"].startswith(f"node-{node}/")
        ]
        return bool(found)

    wait_for(runs, f"a turn on node {node}")
    return found[0]
