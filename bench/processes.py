"""Starts worker processes and collects their results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from bench.job import READY, Job, Result
from bench.peers import Environment
from bench.remarks import without_places

ROOT = Path(__file__).resolve().parent.parent
WORKER_TIMEOUT_S = 3 * 3600


@dataclass(frozen=True, slots=True)
class Processes:
    """Runs jobs in fresh processes, on fresh files below `directory`."""

    directory: Path
    environments: dict[str, Environment]

    def run(self, store: str, job: Job) -> Result:
        """Run one job on its own file, which is removed afterwards."""
        with tempfile.TemporaryDirectory(dir=self.directory) as home:
            return self.run_in(Path(home), store, job)

    def run_in(self, home: Path, store: str, job: Job) -> Result:
        """Run one job on the file `state.db` in `home`, which stays."""
        missing = self.missing(store)
        if missing:
            return {"unsupported": missing}
        return self._start(store, replace(job, path=str(home / "state.db"))).result()

    def run_together(self, store: str, job: Job, members: int) -> Result:
        """Run the same job in several processes on one file, released at once."""
        with tempfile.TemporaryDirectory(dir=self.directory) as name:
            home, shared = Path(name), replace(job, path=f"{name}/state.db", sessions=members)
            prepared = self.run_in(home, store, replace(shared, workload="prepare"))
            if prepared:
                return prepared
            workers = [self._start(store, replace(shared, member=member)) for member in range(members)]
            for worker in workers:
                worker.wait_until_ready()
            for worker in workers:
                worker.release()
            results = [worker.result(show_talk=worker is workers[0]) for worker in workers]
            errors = [result for result in results if "error" in result]
            found = self.run_in(home, store, replace(shared, workload="verify"))
        return errors[0] if errors else _together(results, found)

    def missing(self, store: str) -> str | None:
        """Why a store cannot run here, or None."""
        environment = self.environments.get(store)
        return environment.missing if environment else None

    def python(self, store: str) -> str:
        """The interpreter of a store's environment."""
        environment = self.environments.get(store)
        return str(environment.python) if environment else sys.executable

    def variables(self, store: str, home: Path | None = None) -> dict[str, str]:
        """The environment variables of a store's processes; a peer never sees our source."""
        paths = [str(ROOT)] if store in self.environments else [str(ROOT), str(ROOT / "src")]
        variables = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "HERMES"))}
        home_text = str(home or self.directory)
        return {**variables, "PYTHONPATH": os.pathsep.join(paths), "HOME": home_text, "HERMES_HOME": home_text}

    def _start(self, store: str, job: Job) -> _Worker:
        command = [self.python(store), "-m", "bench.workers", store, job.to_json()]
        return _Worker(command, self.variables(store))


class _Worker:
    """One running worker; its output goes to a file, so that it never waits for a reader."""

    def __init__(self, command: list[str], variables: dict[str, str]) -> None:
        self._talk: IO[str] = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - read after the worker ended
        self._process = subprocess.Popen(
            command,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._talk,
            text=True,
        )

    def wait_until_ready(self) -> None:
        """Return once the worker waits at the barrier, or has died before."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line and line.strip() != READY:
            raise RuntimeError(f"a worker said {line.strip()!r} instead of {READY!r}")

    def release(self) -> None:
        """Let the worker pass the barrier; `result` reports one that died."""
        assert self._process.stdin is not None
        if self._process.poll() is None:
            self._process.stdin.write("go\n")
            self._process.stdin.flush()

    def result(self, *, show_talk: bool = True) -> Result:
        """Wait for the end and return the measurements, or the error."""
        try:
            output, _ = self._process.communicate(timeout=WORKER_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return {"error": f"no answer within {WORKER_TIMEOUT_S} s"}
        lines = output.splitlines()
        if self._process.returncode == 0 and lines:
            result: Result = json.loads(lines[-1])
            return result
        self._talk.seek(0)
        talk = self._talk.read().strip()
        if show_talk:
            print(talk, file=sys.stderr)
        return {"error": without_places(talk.splitlines()[-1]) if talk else f"exit code {self._process.returncode}"}


def _together(results: list[Result], found: Result) -> Result:
    """Merge the results of several processes."""
    stored = sum(float(result["stored"]) for result in results)
    seconds = max(float(result["ended"]) for result in results) - min(float(result["started"]) for result in results)
    result: Result = {
        "rate": stored / seconds,
        "max": max(float(result["max"]) for result in results),
        "failures": sum(float(result["failures"]) for result in results),
    }
    if "messages" in found:
        result["lost"] = stored - float(found["messages"])
    for part in results:
        if "first_failure" in part:
            result.setdefault("first_failure", part["first_failure"])
    return result
