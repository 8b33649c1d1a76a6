"""The store's way to its lanes: the database, or files while the database is unavailable."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from hermes.clock import Clock
from hermes.errors import (
    HermesError,
    NotADatabase,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreUnavailable,
)
from hermes.gateway.config import GatewayConfig
from hermes.gateway.store.backend import LaneBackend
from hermes.gateway.store.files.file_lanes import DatabaseIsBack, FileLanes
from hermes.gateway.store.files.importing import import_sessions_file
from hermes.gateway.store.files.journal import Journal
from hermes.gateway.store.files.replay import replay_journal
from hermes.gateway.store.unexported import Unexported
from hermes.home import get_hermes_home
from hermes.log import inform, warn
from hermes.state.fencing import fenced_lanes
from hermes.state.lanes.types import Lease
from hermes.state.provider import SessionDBProvider, open_session_db

T = TypeVar("T")

UNAVAILABLE = (StoreUnavailable, StoreCorrupt, StoreFull, NotADatabase)
"""The errors after which files take over. A busy database is only slow: its callers try again. A database that is only
readable, such as that of another program, needs the operator."""
RETRY_S = 5.0
SLOW_S = 0.5
"""After an attempt that took longer, the next ones run in the background."""


class Connection:
    """Opens the database at the first use, and again after a failure; in between, files are used."""

    def __init__(
        self,
        sessions_dir: Path,
        config: GatewayConfig,
        clock: Clock,
        opener: Callable[[], SessionDBProvider] | None,
        db: SessionDBProvider | None,
        *,
        uses_files: bool = True,
    ) -> None:
        self.sessions_dir = sessions_dir
        self._uses_files = uses_files
        self.clock = clock
        self._config = config
        self._opener = opener or open_session_db
        self._given = db
        self._journal = Journal(sessions_dir)
        self.unexported = Unexported()
        self.files = FileLanes(
            sessions_dir, config, self._journal, clock, self.unexported.rows, lambda: self._failure is not None
        )
        self.mutex = threading.RLock()
        self._db: SessionDBProvider | None = None
        self._failure: HermesError | None = None
        self._next_try = 0.0
        self._attempt_s = 0.0
        self._is_connecting = False
        self._is_closed = False
        self._is_forced = False

    @property
    def failure(self) -> HermesError | None:
        """Why the database is not used now; None while it is used."""
        return self._failure

    def database(self) -> SessionDBProvider | None:
        """Return the database, or None while it is unavailable."""
        if self._db is not None and self._failure is None:
            return self._db
        if self._is_closed:
            raise StoreClosed("this session store is closed")
        if self._failure is not None and (self._is_connecting or time.monotonic() < self._next_try):
            return None
        with self.mutex:
            if self._is_forced:
                return None
            if self._db is not None and self._failure is None:
                return self._db  # another thread has connected meanwhile
            if self._failure is not None and self._attempt_s > SLOW_S:
                self._connect_in_background()
                return None
            return self._connect()

    def use_files(self) -> None:
        """Use files from now on, as if there was no database."""
        with self.mutex:
            self._is_forced, self._failure = True, StoreUnavailable("the database is switched off")

    def use_database(self, db: SessionDBProvider) -> None:
        """Use an open database from now on."""
        with self.mutex:
            self._db, self._given, self._failure, self._is_forced = db, db, None, False

    def run(self, in_database: Callable[[SessionDBProvider], T], in_files: Callable[[FileLanes], T]) -> T:
        """Run an operation in the database; with files, if the database is or becomes unavailable."""
        while True:
            db = self.database()
            if db is not None:
                try:
                    return in_database(db)
                except UNAVAILABLE as error:
                    if not self._uses_files:
                        raise
                    self._lose(error)
            elif not self._uses_files:
                raise self._failure or StoreUnavailable("the database cannot be used")
            try:
                return in_files(self.files)
            except DatabaseIsBack:
                continue

    def run_lanes(self, operation: Callable[[LaneBackend], T], lease: Lease | None = None) -> T:
        """Run an operation on lanes, wherever they are now; in the database, a lease must still be held."""
        return self.run(lambda db: operation(db.lanes if lease is None else fenced_lanes(db, lease)), operation)

    def close(self) -> None:
        """Close the database."""
        with self.mutex:
            self._is_closed = True
            db, self._db = self._db, None
        if db is not None and db is not self._given:
            db.close()

    def _connect(self) -> SessionDBProvider | None:
        """Open the database, import or replay what files have, and return it; None if that fails."""
        db, is_lost, started = self._db or self._given, self._failure is not None, time.monotonic()

        def finish() -> None:
            self._db, self._failure = db, None

        try:
            if db is None:
                db = self._opener()
            import_sessions_file(db, self.sessions_dir, self._config, get_hermes_home())
            replay_journal(db, self._journal, finish, wait=is_lost)
        except (*UNAVAILABLE, StoreBusy) as error:
            if db is not None and db is not self._db and db is not self._given:
                db.close()
            if not is_lost and isinstance(error, StoreBusy):
                raise
            self._lose(error)
            return None
        finally:
            self._attempt_s = time.monotonic() - started
        if is_lost:
            inform(__name__, "the database works again")
        self.files.forget()
        return db

    def _connect_in_background(self) -> None:
        """Connect in a thread, because attempts take long: until one succeeds, files are used."""

        def connect() -> None:
            try:
                with self.mutex:
                    if not self._is_closed:
                        self._connect()
            finally:
                self._is_connecting = False

        self._is_connecting = True
        threading.Thread(target=connect, name="hermes-reconnect", daemon=True).start()

    def _lose(self, error: StoreError) -> None:
        with self.mutex:
            if self._failure is None:
                warn(__name__, "the database is unavailable, lanes and messages go to %s: %s", self.sessions_dir, error)
                self.files.forget()
            self._failure = error
            self._next_try = time.monotonic() + RETRY_S
