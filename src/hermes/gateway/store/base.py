"""What all operations of a session store share."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from hermes.clock import Clock, system_clock
from hermes.errors import HermesError
from hermes.gateway.config import GatewayConfig
from hermes.gateway.entry import SessionEntry
from hermes.gateway.keys import build_session_key, is_shared_multi_user_session, lane_owner, session_user
from hermes.gateway.source import SessionSource
from hermes.gateway.store.connection import Connection
from hermes.gateway.store.files.export import Exporter
from hermes.gateway.store.files.snapshot import Snapshot
from hermes.gateway.store.handed_out import HandedOut
from hermes.ids import new_session_id
from hermes.log import warn
from hermes.state.lanes.types import LaneRow, NewSession
from hermes.state.provider import SessionDBProvider


class StoreBase:
    """The connection, the export and the configuration of a session store."""

    def __init__(
        self,
        sessions_dir: Path,
        config: GatewayConfig,
        has_active_processes_fn: Callable[[str], bool] | None = None,
        *,
        opener: Callable[[], SessionDBProvider] | None = None,
        db: SessionDBProvider | None = None,
        clock: Clock = system_clock,
        uses_files: bool = True,
    ) -> None:
        self.sessions_dir = Path(sessions_dir)
        self.config = config
        self._has_active_processes_fn = has_active_processes_fn
        self._clock = clock
        self._connection = Connection(self.sessions_dir, config, clock, opener, db, uses_files=uses_files)
        self._handed_out = HandedOut(self._connection)
        self._exporter = Exporter(Snapshot(self._connection).write)
        self._finalizer = weakref.finalize(self, _close, self._exporter, self._connection)

    @property
    def degraded_reason(self) -> HermesError | None:
        """Why files are used instead of the database; None while the database is used."""
        self._connection.database()
        return self._connection.failure

    def flush(self) -> None:
        """Write `sessions.json` now, if a lane has changed."""
        self._exporter.flush()

    def close(self) -> None:
        """Write `sessions.json` and close the database; a second call does nothing."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _generate_session_key(self, source: SessionSource) -> str:
        """Return the key of the lane of a message, with the configured isolation."""
        return build_session_key(source, self.config.group_sessions_per_user, self.config.thread_sessions_per_user)

    def _new_session(self, source: SessionSource, key: str) -> NewSession:
        """Return a session for a lane, with its owner."""
        is_shared = is_shared_multi_user_session(
            source,
            group_sessions_per_user=self.config.group_sessions_per_user,
            thread_sessions_per_user=self.config.thread_sessions_per_user,
        )
        owner = lane_owner(source, key, is_shared=is_shared)
        session_id = new_session_id(self._clock())
        return NewSession(session_id, source.platform.value, session_user(source), owner.stored or key)

    def _zoned_now(self, now: float) -> datetime:
        """Return a time in the zone of the daily reset; without a zone, it is the machine's with its clock changes."""
        return datetime.fromtimestamp(now, self.config.zone)

    def _has_processes(self, key: str, *, on_error: bool) -> bool:
        if self._has_active_processes_fn is None:
            return False
        try:
            return bool(self._has_active_processes_fn(key))
        except Exception as error:  # noqa: BLE001  a plugin's function must not stop a chat
            warn(__name__, "the check for background processes of %s failed: %s", key, error)
            return on_error

    def _changed(self, row: LaneRow) -> SessionEntry:
        """Export a changed lane soon, and return its entry."""
        self._note(row)
        return self._handed_out.give(row)

    def _note(self, row: LaneRow | None) -> None:
        """Export a changed lane soon."""
        if row is not None:
            self._connection.unexported.add(row)
            self._exporter.mark()

    def _marked(self, is_changed: bool) -> bool:
        """Export soon if something changed."""
        if is_changed:
            self._exporter.mark()
        return is_changed


def _close(exporter: Exporter, connection: Connection) -> None:
    exporter.close()
    connection.close()
