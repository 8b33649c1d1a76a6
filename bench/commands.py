"""The command line in fresh processes, on a home with a year of conversations."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from statistics import median

from bench import corpus
from bench.job import Result
from bench.processes import Processes
from bench.row import OURS
from hermes.interop.detection import find
from hermes.interop.importer import Importer, ImportOptions
from hermes.state.indexing.index_backlog import index_backlog
from hermes_state import SessionDB

TIMEOUT_S = 600
YEAR_S, BETWEEN_MESSAGES_S = 365 * 86_400.0, 20.0
COMMANDS = {
    "hi": ["-Q", "-q", "hi"],
    "list": ["sessions", "list"],
    "search": ["sessions", "search", "docker"],
    "insights": ["insights"],
}


def measure_commands(processes: Processes, sessions: int, messages: int, starts: int) -> Result:
    """Wall milliseconds of some commands, and messages a second of an export and an import of everything."""
    hermes = str(Path(sys.executable).parent / "hermes")
    with tempfile.TemporaryDirectory(dir=processes.directory) as name:
        home, other = Path(name) / "home", Path(name) / "other"
        for each in (home, other):
            each.mkdir(mode=0o700)
        _fill(home, sessions, messages)
        variables = processes.variables(OURS, home)
        result: Result = {}
        for key, arguments in COMMANDS.items():
            result[key] = median([_seconds([hermes, *arguments], variables) * 1000 for _ in range(starts + 1)][1:])
        export = Path(name) / "all.jsonl"
        result["export"] = messages / _seconds([hermes, "sessions", "export", str(export)], variables)
        result |= _bring_in(export, other / "state.db")
        return result


def _bring_in(export: Path, database: Path) -> Result:
    """Messages a second until all are stored, and until all are indexed too, like `hermes sessions import`."""
    with SessionDB(database) as store:
        importer = Importer(store, ImportOptions(), time.time())
        started = time.perf_counter()
        importer.import_files(list(find([export], set())))
        stored = time.perf_counter() - started
        if index_backlog(store):
            raise RuntimeError("the index was not filled")
        indexed = time.perf_counter() - started
    messages = importer.tally.messages
    return {"import": messages / stored, "import_indexed": messages / indexed}


def _fill(home: Path, sessions: int, messages: int) -> None:
    with SessionDB(home / "state.db") as store:
        first = time.time() - YEAR_S
        for session in corpus.sessions(sessions):
            started = first + YEAR_S * session.number / sessions
            store.create_session(session.session_id, session.source, started_at=started)
            chosen = islice(_dated(session, started), messages // sessions)
            store.append_messages(session.session_id, [{**message} for message in chosen])


def _dated(session: corpus.Session, started: float) -> Iterator[corpus.Message]:
    for number, message in enumerate(corpus.conversation(session.number)):
        yield {**message, "timestamp": started + number * BETWEEN_MESSAGES_S}


def _seconds(command: list[str], variables: dict[str, str]) -> float:
    started = time.perf_counter()
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=TIMEOUT_S)
    seconds = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError(f"`{' '.join(command)}` ended with exit code {done.returncode}: {done.stderr[-500:]}")
    return seconds
