"""Several nodes on one PostgreSQL: how many turns they run together, and what each turn costs."""

from __future__ import annotations

import itertools
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.gateway.processes import put_message, running_nodes
from bench.gateway.synthetic import write_settings
from bench.job import Result
from hermes.config import load_config
from hermes.state.provider import open_session_db

FILLERS = 8
WARM_S = 1.0


def measure_nodes(
    place: Path, dsn: str, server_pid: int, *, nodes: int, turn_s: float, max_turns: int, messages: int, seconds: float
) -> Result:
    """Let nodes work on waiting messages, each in a lane of its own, and count the turns that end."""
    homes = [place / f"node-{number}" for number in range(nodes)]
    for home in homes:
        write_settings(home, dsn=dsn, max_turns=max_turns)
    os.environ["HERMES_HOME"] = str(homes[0])
    with running_nodes(homes, turn_s) as running, ThreadPoolExecutor(FILLERS) as fillers:
        for node in running:
            node.command("drain")
        with open_session_db(load_config(homes[0])) as store:
            list(fillers.map(lambda number: put_message(store, number, number), range(messages)))
        for node in running:
            node.command("undrain")
        time.sleep(WARM_S)
        before, server_before, began = _sum([each.command("figures") for each in running]), _cpu_s(server_pid), _now()
        time.sleep(seconds)
        after, server_after, ended = _sum([each.command("figures") for each in running]), _cpu_s(server_pid), _now()
        for node in running:
            node.stop()
    wall_s, turns = ended - began, max(1.0, after["turns_finished"] - before["turns_finished"])
    return {
        "turns": turns / wall_s,
        "node_cpu": (after["cpu"] - before["cpu"]) / turns * 1000,
        "server_cpu": (server_after - server_before) / turns * 1000,
        "busy": (after["cpu"] - before["cpu"] + server_after - server_before) / wall_s,
        "left": messages - after["turns_finished"],
        "load": os.getloadavg()[0],
        **{
            name: (after[name] - before.get(name, 0.0)) / turns
            for name in sorted(after)
            if name.startswith(("read ", "write "))
        },
    }


def _sum(figures: list[dict[str, float]]) -> dict[str, float]:
    return {name: sum(each.get(name, 0.0) for each in figures) for name in {*itertools.chain(*figures)}}


def _now() -> float:
    return time.perf_counter()


def _cpu_s(pid: int) -> float:
    """CPU time of a server: its process, and those of its connections, also of ended ones."""
    total = 0
    children = (Path(f"/proc/{pid}/task/{pid}/children")).read_text().split()
    for number in (str(pid), *children):
        try:
            fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(each) for each in fields[11 : 15 if number == str(pid) else 13])
    return total / os.sysconf("SC_CLK_TCK")
