"""The contract of a session store, and how the configured one is opened."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from hermes.clock import Clock, system_clock
from hermes.errors import ConfigError
from hermes.home import DB_FILENAME, get_hermes_home
from hermes.state.compression import CompressionLocks
from hermes.state.engine import Engine
from hermes.state.export import Export
from hermes.state.handoff import Handoffs
from hermes.state.imports import Import
from hermes.state.lineage import Lineage
from hermes.state.listing import Listing
from hermes.state.messages import Messages
from hermes.state.rewind import Rewinds
from hermes.state.search import Search
from hermes.state.sessions import Sessions
from hermes.state.titles import Titles
from hermes.state.upkeep import Upkeep
from hermes.state.usage import Usage
from hermes.state.windows import Windows

if TYPE_CHECKING:
    from hermes.config import Config


class SessionDBProvider(
    Sessions,
    Messages,
    Rewinds,
    Windows,
    Titles,
    Lineage,
    Listing,
    Search,
    Usage,
    Upkeep,
    Export,
    Import,
    CompressionLocks,
    Handoffs,
):
    """A session store: every operation, over whichever engine holds the rows."""

    def __init__(self, engine: Engine, clock: Clock = system_clock) -> None:
        self._engine = engine
        self._clock = clock
        if not engine.read_only and engine.spool.is_waiting:
            self._store_spooled()

    @property
    def read_only(self) -> bool:
        """Whether this store can only be read."""
        return self._engine.read_only

    def close(self) -> None:
        """Let go of the store. A second call does nothing; any other call raises `StoreClosed`."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def default_path() -> Path:
    """Where the store lies unless somebody says otherwise."""
    return get_hermes_home() / DB_FILENAME


def open_session_db(config: Config | None = None, *, read_only: bool = False) -> SessionDBProvider:
    """Open the store that the configuration names; every command of the product comes through here."""
    from hermes.config import load_config
    from hermes.state.sqlite.provider import SQLiteSessionDBProvider

    settings = (config or load_config()).sessiondb
    if settings.provider != "sqlite":
        raise ConfigError(
            f"sessiondb.provider {settings.provider!r} is not available in this version",
            hint="set sessiondb.provider to sqlite",
        )
    path = settings.sqlite_file(get_hermes_home())
    return SQLiteSessionDBProvider(path, read_only=read_only, write_timeout_s=settings.write_timeout_s)
