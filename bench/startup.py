"""The cost of a start: the import of a store, and the first list on a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from bench.job import Job, Result
from bench.peers import PEERS
from bench.processes import Processes

OUR_IMPORT = "import hermes_state"
COMMAND_TIMEOUT_S = 60
HOME_SESSIONS, HOME_MESSAGES = 200, 2_000


def import_cost(processes: Processes, store: str, starts: int) -> Result:
    """CPU milliseconds of an import over those of a bare interpreter, measured in turns."""
    missing = processes.missing(store)
    if missing:
        return {"unsupported": missing}
    statement = {peer.name: peer.import_statement for peer in PEERS}.get(store, OUR_IMPORT)
    python, variables = processes.python(store), processes.variables(store)
    bare: list[float] = []
    full: list[float] = []
    for _ in range(starts + 1):
        for samples, code in ((bare, "pass"), (full, statement)):
            milliseconds, exit_code = _cpu_ms([python, "-c", code], variables)
            if exit_code:
                return {"error": f"`{statement}` ended with exit code {exit_code}"}
            samples.append(milliseconds)
    return {"ms": median(full[1:]) - median(bare[1:]), "bare": median(bare[1:])}


def first_list(processes: Processes, store: str, starts: int) -> Result:
    """Wall milliseconds of `hermes sessions list` in a fresh process, on a home with some sessions."""
    missing = processes.missing(store)
    if missing:
        return {"unsupported": missing}
    environment = processes.environments.get(store)
    command = environment.command if environment else Path(sys.executable).parent / "hermes"
    if command is None or not command.exists():
        return {"unsupported": "no `hermes` command in this environment"}
    with tempfile.TemporaryDirectory(dir=processes.directory) as name:
        home = Path(name)
        filled = processes.run_in(home, store, Job("fill", "", messages=HOME_MESSAGES, sessions=HOME_SESSIONS))
        if "error" in filled:
            return filled
        return _wall_ms([str(command), "sessions", "list"], processes.variables(store, home), starts)


def _wall_ms(command: list[str], variables: dict[str, str], starts: int) -> Result:
    samples: list[float] = []
    for _ in range(starts + 1):
        started = time.perf_counter()
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S)
        samples.append((time.perf_counter() - started) * 1000)
        if done.returncode or not done.stdout.strip():
            last = (done.stderr.strip() or "it printed nothing").splitlines()[-1]
            return {"error": f"`hermes sessions list` ended with exit code {done.returncode}: {last}"}
    return {"ms": median(samples[1:])}


def _cpu_ms(command: list[str], variables: dict[str, str]) -> tuple[float, int]:
    process = subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return (usage.ru_utime + usage.ru_stime) * 1000, process.returncode
