"""A migration in a fresh process: from a file of ours to an empty database on a server."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.job import Result
from bench.processes import Processes
from bench.row import OURS

TIMEOUT_S = 3_600


def migrate(processes: Processes, origin: Path, target: str) -> Result:
    """Messages a second until all are copied and compared, and until all are indexed."""
    hermes = str(Path(sys.executable).parent / "hermes")
    with tempfile.TemporaryDirectory(dir=processes.directory) as name:
        home = Path(name)
        command = [hermes, "sessiondb", "migrate", "--from", str(origin), "--to", target, "--json"]
        done = subprocess.run(
            command, env=processes.variables(OURS, home), capture_output=True, text=True, timeout=TIMEOUT_S
        )
    if done.returncode:
        return {"error": done.stderr.strip()[-500:]}
    item = json.loads(done.stdout)["item"]
    return {"rate": item["messages"] / item["seconds"], "indexed": item["fts_entries"] / item["index_seconds"]}
