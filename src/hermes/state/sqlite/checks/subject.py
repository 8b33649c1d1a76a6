"""The file that a checkup reads, and how long each check may take."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw

from hermes.state.engine import OutOfTime, Report
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.files.long_read import LogWatch

STEPS_BETWEEN_LOOKS, STEPS_OF_A_DEEP_LOOK = 200, 10_000
"""How many steps SQLite takes before it checks the clock: reading a page of an index is one step."""

REPAIR_HINT = "`hermes sessions repair --check` shows what can be saved, `hermes sessions repair` saves it"
DEEP_HINT = "`hermes doctor --deep` checks all of it"
DONE_ON_OPEN = "nothing to do: the next command that opens it for writing does it, such as `hermes sessions optimize`"


class Watch:
    """The time limit of each check, and the progress report."""

    def __init__(self, report: Report | None = None, *, is_deep: bool = False, log: LogWatch | None = None) -> None:
        self.is_deep = is_deep
        self._log = log
        self._report = report
        self._now_at = ("", 0, 0)

    def begin(self, name: str, done: int, total: int) -> None:
        """Report which check is running."""
        self._now_at = (name, done, total)
        self._report_progress()

    @contextmanager
    def limit(self, view: View, budget_s: float) -> Iterator[None]:
        """Raise `OutOfTime` when a query takes too long; a deep check ends only before a log grows too large."""
        deadline = time.monotonic() + budget_s

        def is_over() -> bool:
            self._report_progress()
            if self._log is not None:
                self._log.check()
            return not self.is_deep and time.monotonic() > deadline

        view.connection.set_progress_handler(is_over, STEPS_OF_A_DEEP_LOOK if self.is_deep else STEPS_BETWEEN_LOOKS)
        try:
            yield
        except apsw.InterruptError:
            raise OutOfTime from None
        finally:
            view.connection.set_progress_handler(None)

    def _report_progress(self) -> None:
        if self._report is not None:
            self._report(*self._now_at)


@dataclass(frozen=True, slots=True)
class Subject:
    """A database file, which may not exist."""

    path: Path
    """The path as it was given."""
    file: Path
    """The real file, with every link resolved."""
    backups: Path
    now: float
    watch: Watch

    @property
    def rollback_command(self) -> str:
        """A command that makes SQLite roll back an unfinished write: a read by a user who may write."""
        return self._sql("SELECT count(*) FROM sqlite_schema")

    @property
    def recount_command(self) -> str:
        """A command that makes the next open count every session."""
        return (
            self._sql("INSERT OR IGNORE INTO stale_sessions SELECT id FROM sessions")
            + " && hermes sessions optimize --no-vacuum"
        )

    def _sql(self, sql: str) -> str:
        return shlex.join([sys.executable, "-m", "apsw", str(self.file), sql])
