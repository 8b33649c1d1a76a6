"""Replaces the file that processes are writing to."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from hermes.state.sqlite.files import swap
from hermes_state import SessionDB
from tests.support.plainsql import plain
from tests.support.waiting import wait_until
from tests.torture.fault import Fault, Trial
from tests.torture.forked import Forked
from tests.torture.outcome import Outcome
from tests.torture.supervisor import Supervisor

if TYPE_CHECKING:
    from _typeshed import TraceFunction

WRITERS = 3
EXCHANGES = 6
LONGEST_S = 0.25
PATIENCE_S = 20.0
LINES = 30
"""More lines than `replace_database` runs."""


def copy_as_one_file(path: Path) -> Path:
    """Copy a store whose writer lock is held; its log is moved into the database first."""
    wait_until(lambda: swap.checkpoint_fully(path), "the log to be moved into the database")
    copy = path.with_name("copy.db")
    copy.unlink(missing_ok=True)
    with plain(path) as connection:
        connection.execute("VACUUM INTO ?", (str(copy),)).fetchall()
    return copy


def exchange_file(trial: Trial) -> Outcome:
    """Replace the file by a copy again and again, under the writer lock, while processes write and read."""
    with Supervisor(trial.store, trial.random) as supervisor:
        for _ in range(WRITERS):
            supervisor.start_writer()
        for _ in range(EXCHANGES):
            supervisor.listen(trial.random.uniform(0, LONGEST_S))
            with swap.writer_lock_held(trial.store, PATIENCE_S):
                swap.replace_database(trial.store, copy_as_one_file(trial.store))
        supervisor.listen(LONGEST_S)
        supervisor.kill_all_writers()
        return supervisor.judge(EXCHANGES)


def kill_exchange(trial: Trial) -> Outcome:
    """Kill the process that replaces the file before one of its steps, while others write and read."""
    with Supervisor(trial.store, trial.random) as supervisor:
        supervisor.start_long_reader()
        for _ in range(WRITERS):
            supervisor.start_writer()
        for _ in range(EXCHANGES):
            supervisor.listen(trial.random.uniform(0, LONGEST_S))
            left = trial.random.randint(1, LINES)
            with Forked(lambda _, left=left: _exchange_and_die(trial.store, left)) as victim:  # type: ignore[misc]
                assert victim.end() in (0, -signal.SIGKILL), "the exchange itself failed"
        supervisor.kill_all_writers()
        # The next process that opens the store finishes the swap.
        SessionDB(trial.store).close()
        return supervisor.judge(EXCHANGES)


def _exchange_and_die(path: Path, left: int) -> None:
    """Replace a file, and die before the `left`-th line of that code."""

    def step(frame: FrameType, event: str, _: object) -> TraceFunction | None:
        nonlocal left
        if frame.f_code.co_filename != swap.__file__:
            return None
        left -= event == "line"
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return step

    with swap.writer_lock_held(path, PATIENCE_S):
        copy = copy_as_one_file(path)
        sys.settrace(step)
        swap.replace_database(path, copy)
        sys.settrace(None)


FAULTS = (
    Fault("exchanged-file", "the file replaced by a copy while processes write", exchange_file, 6),
    Fault("kill-exchange", "killed while it replaces the file by a copy", kill_exchange, 8),
)
