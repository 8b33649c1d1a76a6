"""All measurements of the gateway, one after the other."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import psycopg
from psycopg.conninfo import make_conninfo

from bench.gateway import report as lines
from bench.gateway.floor import file_turns_per_s, server_turns_per_s
from bench.gateway.load import measure_load
from bench.gateway.processes import put_message
from bench.gateway.quiet import measure_idle, measure_memory, measure_start
from bench.gateway.report import GatewayReport
from bench.gateway.scaling import measure_nodes
from bench.gateway.takeover import LEASE_S, measure_takeover
from bench.job import Result
from bench.lanes import measure_turns
from bench.machine import fsync_ms
from bench.processes import ROOT
from bench.remarks import without_places
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB
from tests.support.servers import NoServer, Server, private_server

DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}


@dataclass(frozen=True, slots=True)
class Setup:
    """The turns of several nodes."""

    turn_s: float
    max_turns: int

    @property
    def label(self) -> str:
        """The turns in words."""
        return f"turns of {self.turn_s * 1000:.0f} ms, {self.max_turns} at a time per node"


SETUPS = (Setup(0.05, 4), Setup(0.5, 8))
"""Short turns show what the machine can do; longer ones are more like those of a model."""


@dataclass(frozen=True, slots=True)
class GatewaySizes:
    """The sizes of a run."""

    lanes: int = 1_000
    turns: int = 50
    seconds: float = 10.0
    turn_s: float = 2.0
    many_lanes: int = 100_000
    memory_lanes: int = 1_000
    repeats: int = 6
    idle_s: float = 65.0
    """Longer than the first pass of the expiry watcher."""
    nodes: int = 8
    messages: int = 3_000
    floor_turns: int = 300
    """In each round."""


QUICK = GatewaySizes(100, 10, 2.0, 0.5, 2_000, 60, 2, 3.0, 2, 300, 30)
FLOOR_ROUNDS = 7


@dataclass(slots=True)
class Gateway:
    """Measures the gateway in fresh processes, on fresh stores below a directory."""

    directory: Path
    sizes: GatewaySizes
    report: Callable[[str], None]
    results: GatewayReport = field(default_factory=GatewayReport)

    def measure(self) -> GatewayReport:
        """Measure everything; without PostgreSQL the report says why."""
        sizes, found = self.sizes, self.results
        self._add("load", self._load, lambda result: lines.load_lines(result, sizes.turns))
        self._add("floor", lambda home: self._floor(home), lambda result: [lines.floor_line(result, "SQLite")])
        takeover = lambda result: [lines.takeover_line(result, "SQLite", LEASE_S)]  # noqa: E731
        self._add("takeover", lambda home: measure_takeover(home, sizes.repeats), takeover)
        started = self._run("start", lambda home: measure_start(home, sizes.many_lanes, 3))
        memory = self._run("memory", lambda home: measure_memory(home, 10, sizes.memory_lanes))
        found.lines += lines.quiet_lines(started, memory, sizes.many_lanes)
        idle = lambda result: [lines.idle_line(result, "SQLite", sizes.idle_s)]  # noqa: E731
        self._add("idle", lambda home: measure_idle(home, sizes.idle_s), idle)
        try:
            with private_server("postgresql", **DURABLE) as server:
                self._measure_server(server)
            # A server that vacuums would write, too.
            with private_server("postgresql", **DURABLE, autovacuum="off") as server:
                self._measure_idle_server(server)
        except NoServer as error:
            found.missing = without_places(str(error))
        return found

    def _measure_server(self, server: Server) -> None:
        sizes, name = self.sizes, "PostgreSQL"
        self._add(
            "floor on PostgreSQL",
            lambda home: self._floor(home, _database(server, "floor")),
            lambda result: [lines.floor_line(result, name)],
        )
        self._add(
            "takeover on PostgreSQL",
            lambda home: measure_takeover(home, sizes.repeats, _database(server, "takeover")),
            lambda result: [lines.takeover_line(result, name, LEASE_S)],
        )
        for setup in SETUPS:
            one, many = (self._nodes(server, setup, nodes) for nodes in (1, sizes.nodes))
            self.results.lines += lines.nodes_lines(one, many, sizes.nodes, setup.label)

    def _nodes(self, server: Server, setup: Setup, nodes: int) -> Result:
        sizes, dsn = self.sizes, _database(server, f"nodes_{setup.max_turns}_{nodes}")
        return self._run(
            f"{nodes} nodes, {setup.label}",
            lambda home: measure_nodes(
                home,
                dsn,
                server.pid,
                nodes=nodes,
                turn_s=setup.turn_s,
                max_turns=setup.max_turns,
                messages=sizes.messages,
                seconds=sizes.seconds / 2,
            ),
        )

    def _measure_idle_server(self, server: Server) -> None:
        seconds = self.sizes.idle_s
        self._add(
            "idle on PostgreSQL",
            lambda home: measure_idle(home, seconds, _database(server, "idle")),
            lambda result: [lines.idle_line(result, "PostgreSQL", seconds)],
        )

    def _load(self, home: Path) -> Result:
        """Measure a busy node in a process whose event loop refuses store calls."""
        sizes = self.sizes
        arguments = [str(home), str(sizes.lanes), str(sizes.turns), str(sizes.seconds), str(sizes.turn_s)]
        variables = {
            **os.environ,
            "HERMES_LOOP_GUARD": "1",
            "HERMES_HOME": str(home),
            "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}",
        }
        done = subprocess.run(
            [sys.executable, "-m", "bench.gateway.measurement", *arguments],
            env=variables,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        result: Result = json.loads(done.stdout.splitlines()[-1])
        return result

    def _floor(self, home: Path, dsn: str | None = None) -> Result:
        """Measure the turns of the store without a gateway and those of plain drivers, in turn.

        The time of an fsync changes within seconds, so only figures of one round are compared.
        """
        turns = self.sizes.floor_turns
        store: SessionDBProvider = SessionDB(home / "state.db") if dsn is None else PostgreSQLSessionDBProvider(dsn)
        ours, floors = [], []
        with store:
            for number in range(FLOOR_ROUNDS):
                for message in range(number * turns, (number + 1) * turns):
                    put_message(store, message, message)
                ours.append(measure_turns(store, 1).per_second)
                path = home / f"floor-{number}.db"
                floors.append(file_turns_per_s(path, turns) if dsn is None else server_turns_per_s(dsn, turns))
        ratios = [mine / floor for mine, floor in zip(ours, floors, strict=True)]
        return {
            "ours": median(ours),
            "floor": median(floors),
            "ratio": median(ratios),
            "lowest": min(ratios),
            "highest": max(ratios),
            "fsync": fsync_ms(home),
            "load": os.getloadavg()[0],
        }

    def _add(
        self, name: str, measure: Callable[[Path], Result], lines_of: Callable[[Result], list[lines.Line]]
    ) -> None:
        self.results.lines += lines_of(self._run(name, measure))

    def _run(self, name: str, measure: Callable[[Path], Result]) -> Result:
        self.report(f"gateway: {name}")
        with tempfile.TemporaryDirectory(dir=self.directory) as place:
            home = Path(place) / "home"
            home.mkdir()
            result = self.results.results[name] = measure(home)
        return result


def _database(server: Server, name: str) -> str:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE gateway_{name} TEMPLATE template0".encode())
    return make_conninfo(server.dsn, dbname=f"gateway_{name}")


def _main() -> None:
    home, lanes, turns, seconds, turn_s = sys.argv[1:]
    measured = measure_load(
        Path(home), lanes=int(lanes), turns=int(turns), seconds=float(seconds), turn_s=float(turn_s)
    )
    print(json.dumps(asyncio.run(measured)))


if __name__ == "__main__":
    _main()
