"""The session store with all its operations, and how the configured one is opened."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar, cast

from hermes.clock import Clock, system_clock
from hermes.errors import ConfigError, HermesError, InvalidValue, StoreClosed
from hermes.home import DB_FILENAME, get_hermes_home
from hermes.state.engine import Capability, Engine
from hermes.state.import_export.export import Export
from hermes.state.import_export.import_ import Import
from hermes.state.maintenance.upkeep import Upkeep
from hermes.state.messages.appending import Messages
from hermes.state.messages.rewind import Rewinds
from hermes.state.messages.session_creation import SessionCreation
from hermes.state.messages.windows import Windows
from hermes.state.operations import Operations
from hermes.state.search.operation import Search
from hermes.state.sessions.compression_lock import CompressionLocks
from hermes.state.sessions.handoff import Handoffs
from hermes.state.sessions.lineage.links import Lineage
from hermes.state.sessions.lists.listing import Listing
from hermes.state.sessions.records import Sessions
from hermes.state.sessions.telegram_topics import TelegramTopics
from hermes.state.sessions.titles import Titles
from hermes.state.usage.counters import Usage

if TYPE_CHECKING:
    from hermes.config import Config, SessionDBConfig
    from hermes.state.lanes.approvals import Approvals
    from hermes.state.lanes.connectors import Connectors
    from hermes.state.lanes.delivery.outbox import Outbox
    from hermes.state.lanes.entries import Lanes
    from hermes.state.lanes.queue.inbox import Inbox
    from hermes.state.lanes.queue.turns import Turns
    from hermes.state.lanes.quotas import Quotas
    from hermes.state.owner import Asker
    from hermes.state.owner_view import OwnerView
    from hermes.state.row_types import Health

G = TypeVar("G", bound=Operations)

ENTRY_POINTS = "hermes.sessiondb_providers"
"""The entry points where other packages register providers: functions `(settings, read_only)` that return a store."""


class SessionDBProvider(
    Sessions,
    Messages,
    SessionCreation,
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
    TelegramTopics,
):
    """A session store: every operation, over any engine."""

    def __init__(self, engine: Engine | None = None, clock: Clock = system_clock) -> None:
        self._engine = cast(Engine, _Unopened()) if engine is None else engine
        self._clock = clock
        if engine is not None:
            self._store_spooled_if_any()

    def initialize(self, dsn: str | None = None, pool: object = None) -> None:
        """Open the store at a DSN or of a connection pool; close the one that was open before."""
        before, self._engine = self._engine, self._open(dsn, pool)
        if not isinstance(before, _Unopened):
            before.close()
        self._store_spooled_if_any()

    def _open(self, dsn: str | None, pool: Any) -> Engine:
        """Return the engine for the arguments of `initialize`."""
        raise InvalidValue(f"{type(self).__name__} is already open and cannot be opened again")

    def _store_spooled_if_any(self) -> None:
        if not self._engine.read_only:
            self._store_spooled()

    def for_owner(self, asker: Asker) -> OwnerView:
        """Return a view of one owner's sessions, or of all with `EVERYBODY` (the operator); chats and tools use it."""
        from hermes.state.owner_view import OwnerView

        return OwnerView(self, asker)

    @property
    def read_only(self) -> bool:
        """Whether this store is read-only."""
        return self._engine.read_only

    @property
    def lanes(self) -> Lanes:
        """Operations on lanes: which session a chat uses."""
        from hermes.state.lanes.entries import Lanes

        return _group(Lanes, self)

    @property
    def inbox(self) -> Inbox:
        """Operations on messages from platforms."""
        from hermes.state.lanes.queue.inbox import Inbox

        return _group(Inbox, self)

    @property
    def turns(self) -> Turns:
        """Operations on turns, and on the leases of lanes under which they run."""
        from hermes.state.lanes.queue.turns import Turns

        return _group(Turns, self)

    @property
    def outbox(self) -> Outbox:
        """Operations on messages to platforms."""
        from hermes.state.lanes.delivery.outbox import Outbox

        return _group(Outbox, self)

    @property
    def connectors(self) -> Connectors:
        """Operations on connector leases."""
        from hermes.state.lanes.connectors import Connectors

        return _group(Connectors, self)

    @property
    def approvals(self) -> Approvals:
        """Operations on requests to run a tool that wait for a person's decision."""
        from hermes.state.lanes.approvals import Approvals

        return _group(Approvals, self)

    @property
    def quotas(self) -> Quotas:
        """Operations on what users and chats may use on a day."""
        from hermes.state.lanes.quotas import Quotas

        return _group(Quotas, self)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The features of this store that not every store has."""
        return self._engine.capabilities

    def health(self) -> Health:
        """Return whether the store works, its latency and details about it; `error` says why it fails."""
        known: Health = {"provider": self._engine.name, "ok": True}
        started = time.perf_counter()
        try:
            version = self.schema_version()
            known["latency_ms"] = round((time.perf_counter() - started) * 1000, 3)
            known["schema_version"] = version
            known |= cast("Health", self._engine.describe())
        except StoreClosed:
            raise
        except HermesError as exc:
            known |= {"ok": False, "error": {"code": exc.code, "message": exc.message, "hint": exc.hint}}
        return known

    def close(self) -> None:
        """Close the store. A second call does nothing; any other call raises `StoreClosed`."""
        if not isinstance(self._engine, _Unopened):
            self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _group(kind: type[G], store: Operations) -> G:
    """Return a group of operations on the same engine as a store."""
    group = kind()
    group._engine, group._clock = store._engine, store._clock
    return group


class _Unopened:
    """The engine of a store that was created but not opened."""

    def __getattr__(self, name: str) -> NoReturn:
        raise StoreClosed("this store has not been opened", hint="call initialize() with a DSN or a pool")


def default_path() -> Path:
    """Return the path of the store in the Hermes home."""
    return get_hermes_home() / DB_FILENAME


def open_session_db(
    config: Config | None = None, *, read_only: bool = False, home: Path | None = None
) -> SessionDBProvider:
    """Open the configured store; every command of the product opens it here. `home` is another Hermes home."""
    from hermes.config import load_config

    settings = (config or load_config(home)).sessiondb
    if settings.provider == "sqlite":
        from hermes.state.sqlite.provider import SQLiteSessionDBProvider

        path = settings.sqlite_file(home or get_hermes_home())
        return SQLiteSessionDBProvider(path, read_only=read_only, write_timeout_s=settings.write_timeout_s)
    if settings.provider == "postgresql":
        from hermes.state.postgres.provider import PostgreSQLSessionDBProvider

        if settings.dsn is None:
            raise ConfigError(
                "sessiondb.provider is postgresql, but there is no sessiondb.dsn",
                hint="set it to an address such as postgresql://user:${DB_PASSWORD}@host/database",
            )
        return PostgreSQLSessionDBProvider(settings=settings, read_only=read_only)
    if settings.provider == "mysql":
        from hermes.state.mysql.provider import MySQLSessionDBProvider

        if settings.dsn is None:
            raise ConfigError(
                "sessiondb.provider is mysql, but there is no sessiondb.dsn",
                hint="set it to an address such as mysql://user:${DB_PASSWORD}@host/database",
            )
        return MySQLSessionDBProvider(settings=settings, read_only=read_only)
    return _open_registered(settings, read_only=read_only)


def _open_registered(settings: SessionDBConfig, *, read_only: bool) -> SessionDBProvider:
    """Open a store whose provider another package registers."""
    from importlib.metadata import entry_points

    registered = entry_points(group=ENTRY_POINTS)
    if settings.provider not in registered.names:
        known = ", ".join(["sqlite", "postgresql", "mysql", *sorted(registered.names)])
        # The user may have written a DSN there, with a password in it.
        named = f" {settings.provider}" if settings.provider.isidentifier() else ""
        raise ConfigError(f"sessiondb.provider names an unknown provider{named}", hint=f"set it to one of {known}")
    store = registered[settings.provider].load()(settings, read_only=read_only)
    if not isinstance(store, SessionDBProvider):
        raise ConfigError(f"the provider {settings.provider!r} returned {type(store).__name__}, which is not a store")
    return store
