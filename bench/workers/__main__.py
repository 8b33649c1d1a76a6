"""`python -m bench.workers STORE JOB`: run one job and print its result."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

from bench import searches, workloads
from bench.job import READY, Job, Result
from bench.store import Store, Unsupported

STORES = {
    "ours": ("bench.ours", "OurStore"),
    "raw": ("bench.floor", "RawStore"),
    "counting": ("bench.floor", "CountingStore"),
    "lean": ("bench.floor", "LeanStore"),
    "postgresql": ("bench.postgresstore", "PostgresStore"),
    "postgresql, indexed": ("bench.postgresstore", "IndexedPostgresStore"),
    "psycopg": ("bench.postgresstore", "PsycopgStore"),
    "mysql": ("bench.mysqlstore", "MySQLStore"),
    "mysql, indexed": ("bench.mysqlstore", "IndexedMySQLStore"),
    "pymysql": ("bench.mysqlstore", "PymysqlStore"),
    "words": ("bench.wordfloor", "WordStore"),
    "hermes-agent": ("bench.workers.hermes_agent", "HermesAgentStore"),
    "openai-agents": ("bench.workers.openai_agents", "OpenAIAgentsStore"),
}


def main() -> None:
    """Print the result on the real standard output, whatever the store itself prints there."""
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    name, job = sys.argv[1], Job.from_json(sys.argv[2])
    disk = import_module("bench.slowdisk").SlowDisk(job.fsync_ms) if job.fsync_ms else None

    def wait_for_start() -> None:
        print(READY, file=output, flush=True)
        sys.stdin.readline()

    print(json.dumps(run(name, job, wait_for_start)), file=output, flush=True)
    del disk


def run(name: str, job: Job, wait_for_start: workloads.Wait) -> Result:
    """Measure, or say why this store has nothing to measure."""
    workload = (workloads.WORKLOADS | searches.WORKLOADS | _lane_workloads(job))[job.workload]
    if workload is workloads.member:
        workload = partial(workloads.member, wait_for_start=wait_for_start)
    try:
        return workload(partial(open_store, name), job)
    except Unsupported as reason:
        return {"unsupported": str(reason)}


def _lane_workloads(job: Job) -> dict[str, workloads.Workload]:
    """The workloads of lanes; they need our own modules unless a peer runs them."""
    if job.workload == "record":
        return {"record": import_module("bench.lanes").record}
    return {"touch": import_module("bench.lane_touch").touch} if job.workload == "touch" else {}


def open_store(name: str, path: Path) -> Store:
    """Open a store by its name; only its own modules are imported."""
    module, class_name = STORES[name]
    store: Store = getattr(import_module(module), class_name)(path)
    return store


if __name__ == "__main__":
    main()
