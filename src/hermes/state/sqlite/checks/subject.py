"""What a checkup looks at, and for how long."""

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
"""How often SQLite looks at the clock: reading a page of an index takes such a step."""

REPAIR_HINT = "`hermes sessions repair --check` tells what can be saved, `hermes sessions repair` saves it"
DEEP_HINT = "`hermes doctor --deep` looks at all of it"
DONE_ON_OPEN = (
    "nothing to do by hand: the next program that opens it for writing does it, such as `hermes sessions optimize`"
)


class Watch:
    """The time that a look may take, and somebody who hears how it goes."""

    def __init__(self, report: Report | None = None, *, is_deep: bool = False, log: LogWatch | None = None) -> None:
        self.is_deep = is_deep
        self._log = log
        self._report = report
        self._now_at = ("", 0, 0)

    def begin(self, name: str, done: int, total: int) -> None:
        """Note which check is being made, of how many."""
        self._now_at = (name, done, total)
        self._report_progress()

    @contextmanager
    def limit(self, view: View, budget_s: float) -> Iterator[None]:
        """Raise `OutOfTime` when a query has taken too long; a deep look ends only before a log grows too large."""
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
    """A database file, there or not."""

    path: Path
    """As it is named."""
    file: Path
    """Itself, through whichever link it is named."""
    backups: Path
    now: float
    watch: Watch

    @property
    def rollback_command(self) -> str:
        """What has SQLite undo a write that was not finished: a look by somebody who may write."""
        return self._sql("SELECT count(*) FROM sqlite_schema")

    @property
    def recount_command(self) -> str:
        """What has every session counted at the next open."""
        return (
            self._sql("INSERT OR IGNORE INTO stale_sessions SELECT id FROM sessions")
            + " && hermes sessions optimize --no-vacuum"
        )

    def _sql(self, sql: str) -> str:
        return shlex.join([sys.executable, "-m", "apsw", str(self.file), sql])
