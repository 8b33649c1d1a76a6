"""SQLite as an engine of the session store."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from hermes.errors import StoreClosed
from hermes.state import loop_guard
from hermes.state.engine import Capability, Guard, Index, Maintenance, Reading, Transaction
from hermes.state.messages.spool import Spool
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.store import shared

if TYPE_CHECKING:
    from hermes.state.owner import Asker
    from hermes.state.rows import Row

T = TypeVar("T")

WRITE_TIMEOUT_S = 30.0


class SqliteEngine:
    """One handle on a shared file, with its own time limit for writes."""

    name = "sqlite"
    capabilities = frozenset({Capability.FILE, Capability.PARTS})

    def __init__(self, path: Path, *, read_only: bool = False, write_timeout_s: float = WRITE_TIMEOUT_S) -> None:
        if loop_guard.is_on:
            loop_guard.refuse_on_loop("open")
        self.path = path
        self._write_timeout_s = write_timeout_s
        self._shared_file: shared.SharedFile | None = shared.acquire(path, read_only=read_only)
        # A handle that is dropped without `close` releases the file too.
        self._release = weakref.finalize(self, shared.release, self._shared_file)
        self._release.atexit = False
        self.read_only = self._shared_file.read_only

    @cached_property
    def spool(self) -> Spool:
        """The spool: messages that cannot be stored now."""
        return Spool(Path(f"{os.path.realpath(self.path)}.spool"))

    @cached_property
    def index(self) -> Index:
        """The search index."""
        # Most commands never search.
        from hermes.state.sqlite.search.index import SqliteIndex

        return SqliteIndex()

    @cached_property
    def maintenance(self) -> Maintenance:
        """Maintenance operations: merge the index, compact, erase."""
        # Imported late: hardly any command needs it.
        from hermes.state.sqlite.maintenance import SqliteMaintenance

        return SqliteMaintenance(self.path, self.read, self.write)

    def read(self, work: Callable[[Reading], T], /) -> T:
        """Run `work` on a consistent view. Readers never wait for writers."""
        if loop_guard.is_on:
            loop_guard.refuse_on_loop("read", work)
        return self._shared().read(cast("Callable[[View], T]", work))

    def write(self, work: Callable[[Transaction], T], /) -> T:
        """Run `work` in a transaction; its changes are durable when this returns."""
        if loop_guard.is_on:
            loop_guard.refuse_on_loop("write", work)
        return self._shared().write(cast("Callable[[View], T]", work), self._write_timeout_s)

    def append_alone(
        self, session_id: str, values: Row, preview: str | None, asker: Asker, /, guards: Sequence[Guard] = ()
    ) -> None:
        """Return None: inside of a process, several statements are not slower than one."""

    def heal_index(self, epoch: int, /) -> None:
        """Rebuild a damaged index in the background, unless the file is read-only."""
        self._shared().file().heal_index(epoch)

    def add_telegram_topics(self) -> None:
        """Create the tables of Telegram topics; a file without them stays as it is until then."""
        from hermes.state.sqlite.schema import telegram_topics  # late: few files need it

        if self.write(lambda tx: telegram_topics.add(cast("View", tx))):
            self.write(lambda tx: telegram_topics.note(cast("View", tx)))

    def listen_lanes(self, node: str, /) -> None:
        """No listener: a file cannot notify."""

    def catch_up(self) -> None:
        """Index all waiting messages."""
        self._shared().file().catch_up(self._write_timeout_s)

    def describe(self) -> dict[str, Any]:
        """The path of the file."""
        return {"path": str(self.path)}

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        self._shared_file = None
        self._release()

    def _shared(self) -> shared.SharedFile:
        shared_file = self._shared_file
        if shared_file is None:
            raise StoreClosed
        return shared_file
