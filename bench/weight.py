"""How large a store's file is."""

from __future__ import annotations

import tempfile
from pathlib import Path

import apsw

from bench.job import Job, Result
from bench.processes import Processes


def weigh(processes: Processes, store: str, job: Job) -> Result:
    """Fill a file, close it, and return its bytes per message; a log that a store left is checkpointed first."""
    with tempfile.TemporaryDirectory(dir=processes.directory) as home:
        result = processes.run_in(Path(home), store, job)
        if "text" not in result:
            return result
        stored = job.messages // job.sessions * job.sessions
        return {**result, "bytes": file_bytes(Path(home) / "state.db") / stored}


def file_bytes(path: Path) -> int:
    """The bytes of a closed database, after a checkpoint of its log."""
    database = apsw.Connection(str(path))
    database.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    database.close()
    return path.stat().st_size
