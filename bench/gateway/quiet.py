"""A node that has nothing to do: its start with many lanes, its memory after work, and its writes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import apsw
import psycopg

from bench.gateway.processes import NodeProcess, put_message, running_nodes, wait_for
from bench.gateway.synthetic import PLATFORM, write_settings
from bench.job import Result
from bench.lanes import key_of
from hermes.config import load_config
from hermes.state.lanes.types import ImportedLane, NewSession
from hermes.state.provider import SessionDBProvider, open_session_db

_HOUR_S = 3600.0
_TURNS = 4
"""Turns at a time where only what they leave behind is measured: each one searches, which keeps a core busy."""
SETTLE_S = 2.0
"""How long a node may need after its start until it only waits."""


def measure_start(home: Path, lanes: int, repeats: int) -> Result:
    """Start a node with the offline model several times; return the slowest start."""
    write_settings(home)
    os.environ["HERMES_HOME"] = str(home)
    with open_session_db(load_config(home)) as store:
        _fill_lanes(store, lanes)
    whole, inner = [], []
    for _ in range(repeats):
        with running_nodes([home], None) as (node,):
            whole.append(node.ready_s * 1000)
            inner.append(node.start_s * 1000)
            node.stop()
    return {"ready": max(whole), "start": max(inner), "load": os.getloadavg()[0]}


def measure_memory(home: Path, few: int, many: int) -> Result:
    """Serve few lanes, then many, then as many others; return what each idle lane of the last ones has cost."""
    write_settings(home, max_turns=_TURNS)
    os.environ["HERMES_HOME"] = str(home)
    with open_session_db(load_config(home)) as store, running_nodes([home], None) as (node,):
        served, figures = 0, []
        for lanes in (few, many, many):
            for lane in range(served, served + lanes):
                put_message(store, lane, lane + 1)
            served += lanes
            wait_for(partial(_is_idle, node, served), f"{served} turns", 0.2)
            time.sleep(SETTLE_S)  # the replies are recorded, and sessions.json is written
            figures.append(node.command("objects"))
        node.stop()
    first, second, third = figures
    return {
        "few": first["rss"],
        "growth": (second["rss"] - first["rss"]) / many,
        "per_lane": (third["rss"] - second["rss"]) / many,
        "sqlite": (third["sqlite"] - second["sqlite"]) / many,
        "objects": (third["objects"] - second["objects"]) / many,
        "actors": third["actors"],
        "cached": third["cached"],
        "load": os.getloadavg()[0],
    }


def measure_idle(home: Path, seconds: float, dsn: str | None = None) -> Result:
    """Count the write transactions of a node without work: those that it runs, and those that the database sees."""
    write_settings(home, dsn=dsn)
    with running_nodes([home], None) as (node,):
        time.sleep(SETTLE_S)
        changes = _file_changes(home / "state.db") if dsn is None else _server_changes(dsn)
        before, seen = node.command("figures"), next(changes)
        time.sleep(seconds)
        after, seen_after = node.command("figures"), next(changes)
        node.stop()
    return {
        "writes": _total(after, "write ") - _total(before, "write "),
        "changes": seen_after - seen,
        "reads": (_total(after, "read ") - _total(before, "read ")) / seconds,
        "cpu": (after["cpu"] - before["cpu"]) / seconds * 1000,
        "load": os.getloadavg()[0],
    }


def _fill_lanes(store: SessionDBProvider, count: int) -> None:
    """Create lanes that were last active at some time of the last month, but not just now."""
    now = time.time()
    store.lanes.import_once(
        [
            ImportedLane(
                key_of(number),
                NewSession(f"session-{number}", PLATFORM, user_id=str(number)),
                {
                    "platform": PLATFORM,
                    "origin": {"platform": PLATFORM, "chat_id": str(number)},
                    "updated_at": now - _HOUR_S - number % 720 * _HOUR_S,
                },
            )
            for number in range(count)
        ]
    )


def _is_idle(node: NodeProcess, turns: int) -> bool:
    figures = node.command("figures")
    return figures.get("turns_finished", 0) >= turns and figures["sent"] >= turns and not figures["actors"]


def _total(figures: dict[str, float], prefix: str) -> float:
    return sum(value for name, value in figures.items() if name.startswith(prefix))


def _file_changes(path: Path) -> Iterator[float]:
    """Yield a number that changes with every commit of other connections to a file."""
    connection = apsw.Connection(str(path))
    while True:
        yield float(connection.pragma("data_version"))


def _server_changes(dsn: str) -> Iterator[float]:
    """Yield a number that grows with every transaction that writes to the server."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        while True:
            row = connection.execute("SELECT txid_snapshot_xmax(txid_current_snapshot())").fetchone()
            assert row is not None
            yield float(row[0])
