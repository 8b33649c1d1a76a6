"""Fresh stores for each engine: an engine joins the contract tests with a line in `ENGINES`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from hermes.clock import Clock
from hermes.config import SessionDBConfig
from hermes.state.engine import Engine
from hermes.state.indexing.background_worker import BackgroundWorker
from hermes.state.messages.spool import Spool
from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB
from tests.support.mysql import in_database
from tests.support.servers import dsn_of

if TYPE_CHECKING:
    from psycopg_pool import ConnectionPool

    from hermes.state.mysql.engine import MySQLEngine
    from hermes.state.postgres.engine import PostgresEngine


_numbers = count()
"""Distinguishes two makers of stores in one process."""


class Opener(Protocol):
    """Opens a store; the same name within a test means the same database."""

    def __call__(self, name: str = "main", *, read_only: bool = False) -> SessionDBProvider: ...


class Stores(Protocol):
    """Makes stores of one engine, for a whole test run."""

    def open(self, directory: Path, name: str, clock: Clock, *, read_only: bool) -> SessionDBProvider:
        """Open a store in a test's directory: empty at first, the same one for the same name."""
        ...

    def discard(self, store: SessionDBProvider) -> None:
        """Close a store whose content is not needed any more."""
        ...

    def release(self, directory: Path) -> None:
        """Drop the stores of a test that is over."""
        ...

    def close(self) -> None:
        """Close what all tests share."""
        ...


class SqliteStores:
    """Stores in files. Each begins as a copy of one empty store, which takes a quarter of the time of creating one."""

    def __init__(self, directory: Path) -> None:
        self._empty = directory / "empty.db"
        SessionDB(self._empty).close()

    def open(self, directory: Path, name: str, clock: Clock, *, read_only: bool) -> SessionDBProvider:
        """Open a store in a file of the test's directory."""
        path = directory / f"{name}.db"
        if not read_only and not path.exists():
            shutil.copyfile(self._empty, path)
        return SessionDB(path, read_only=read_only, clock=clock)

    def discard(self, store: SessionDBProvider) -> None:
        """Close a store."""
        store.close()

    def release(self, directory: Path) -> None:
        """Do nothing: the files are removed with the directory."""

    def close(self) -> None:
        """Do nothing: tests share nothing."""


class PostgresStores:
    """Stores in schemas of one server, over one pool. A schema is emptied and reused: creating one takes longer."""

    def __init__(self, directory: Path) -> None:
        from psycopg_pool import ConnectionPool

        self._pool: ConnectionPool[Any] = ConnectionPool(
            dsn_of("postgresql"), kwargs={"autocommit": True}, min_size=1, max_size=24, open=True
        )
        self._names = (f"test_{os.getpid()}_{number}" for number in _numbers)
        self._free: list[str] = []
        self._used: dict[tuple[Path, str], str] = {}

    def open(self, directory: Path, name: str, clock: Clock, *, read_only: bool) -> SessionDBProvider:
        """Open a store in its own schema."""
        from hermes.state.postgres.provider import PostgreSQLSessionDBProvider

        schema = self._used.get((directory, name))
        if schema is None:
            is_there = self._free and not read_only
            schema = self._used[directory, name] = self._free.pop() if is_there else next(self._names)
        settings = SessionDBConfig(provider="postgresql", schema=schema)
        store = PostgreSQLSessionDBProvider(pool=self._pool, settings=settings, read_only=read_only, clock=clock)
        engine = _server_engine(store)
        engine._worker = _AtOnce(engine._index_waiting, "hermes-index")
        return store

    def discard(self, store: SessionDBProvider) -> None:
        """Close a store without updating its index."""
        _server_engine(store)._newest = 0
        store.close()

    def release(self, directory: Path) -> None:
        """Empty the schemas of a test."""
        for key in [key for key in self._used if key[0] == directory]:
            schema = self._used.pop(key)
            with self._pool.connection() as connection:
                if connection.execute("SELECT to_regclass(%s)", [f"{schema}.hermes_ledger"]).fetchone() != (None,):
                    connection.execute(_EMPTY.format(schema=schema).encode())
            self._free.append(schema)

    def close(self) -> None:
        """Drop every schema."""
        with self._pool.connection() as connection:
            for schema in (*self._free, *self._used.values()):
                connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())
        self._pool.close()


class MySQLStores:
    """Stores in databases of one server. A database is emptied and reused: creating one takes longer."""

    def __init__(self, directory: Path) -> None:
        import pymysql  # type: ignore[import-untyped]
        from pymysql.constants import CLIENT  # type: ignore[import-untyped]

        from hermes.state.mysql.connection.address import Address

        self._dsn = dsn_of("mysql")
        address = Address.of(self._dsn)
        self._connection = pymysql.connect(
            host=address.host,
            port=address.port,
            unix_socket=address.unix_socket,
            user=address.user,
            password=address.password,
            autocommit=True,
            client_flag=CLIENT.MULTI_STATEMENTS,
        )
        self._names = (f"hermes_test_{os.getpid()}_{number}" for number in _numbers)
        self._free: list[str] = []
        self._used: dict[tuple[Path, str], str] = {}

    def open(self, directory: Path, name: str, clock: Clock, *, read_only: bool) -> SessionDBProvider:
        """Open a store in its own database."""
        from hermes.state.mysql.provider import MySQLSessionDBProvider

        database = self._used.get((directory, name))
        if database is None:
            if self._free and not read_only:
                database = self._free.pop()
            else:
                database = next(self._names)
                self._run(f"CREATE DATABASE {database}")
            self._used[directory, name] = database
        settings = SessionDBConfig(provider="mysql", pool_max_size=24)
        store = MySQLSessionDBProvider(
            in_database(self._dsn, database), settings=settings, read_only=read_only, clock=clock
        )
        engine = _server_engine(store)
        engine._worker = _AtOnce(engine._index_waiting, "hermes-index")
        return store

    def discard(self, store: SessionDBProvider) -> None:
        """Close a store without updating its index."""
        _server_engine(store)._newest = 0
        store.close()

    def release(self, directory: Path) -> None:
        """Empty the databases of a test."""
        for key in [key for key in self._used if key[0] == directory]:
            database = self._used.pop(key)
            self._run(f"USE {database}")
            if self._run("SHOW TABLES LIKE 'hermes_ledger'"):
                self._empty()
            self._free.append(database)

    def close(self) -> None:
        """Drop every database."""
        for database in (*self._free, *self._used.values()):
            self._run(f"DROP DATABASE IF EXISTS {database}")
        self._connection.close()

    def _empty(self) -> None:
        """Delete all rows; most tests use few tables."""
        with self._connection.cursor() as cursor:
            cursor.execute(" UNION ALL ".join(f"(SELECT '{table}' FROM {table} LIMIT 1)" for table in _MYSQL_TABLES))
            full = [table for (table,) in cursor.fetchall()]
            # Deletions are recorded in a table that is emptied last.
            full += ["deleted_messages"] if "messages" in full else []
            emptied = [f"DELETE FROM {table}" for table in full]
            again = ["ALTER TABLE messages AUTO_INCREMENT = 1"] if "messages" in full else []
            cursor.execute("; ".join(["SET foreign_key_checks = 0", "BEGIN", *emptied, _MYSQL_MARKS, "COMMIT", *again]))
            while cursor.nextset():
                pass

    def _run(self, sql: str) -> int:
        with self._connection.cursor() as cursor:
            return int(cursor.execute(sql))


def engine_of(store: SessionDBProvider) -> Engine:
    """The engine of a store, for tests of details that no operation shows."""
    return store._engine


def spool_of(store: SessionDBProvider) -> Spool:
    """The spool of a store."""
    spool = engine_of(store).spool
    assert spool is not None
    return spool


def _server_engine(store: SessionDBProvider) -> PostgresEngine | MySQLEngine:
    engine = engine_of(store)
    assert engine.name in ("postgresql", "mysql")
    return cast("PostgresEngine | MySQLEngine", engine)


class _AtOnce(BackgroundWorker):
    """Works when it is woken: the content of the index must not depend on the timing of a thread."""

    def wake(self) -> None:
        """Do the work now."""
        while self._work():
            pass


_LANES = ("lanes", "lane_queues", "inbox", "turns", "outbox", "connector_leases", "approvals", "usage_days")
_TOPICS = ("telegram_dm_topic_bindings", "telegram_dm_topic_mode")
_TABLES = (
    *(*_LANES, *_TOPICS),
    *("pending_links", "compression_locks", "rewinds", "session_tools", "usage_events"),
    *("message_words", "known_words", "forgotten_words", "stale_index", "message_times", "messages", "sessions"),
)
_EMPTY = f"""
    SET LOCAL session_replication_role TO replica;
    SET LOCAL search_path TO {{schema}};
    {"".join(f"DELETE FROM {table};" for table in _TABLES)}
    DELETE FROM state_meta WHERE key NOT IN ('min_reader', 'min_writer');
    SELECT setval('messages_id_seq', 1, false), setval('usage_events_id_seq', 1, false),
           setval('rewinds_id_seq', 1, false);"""
"""Takes a tenth of the time of TRUNCATE, as long as there is little to delete."""


_MYSQL_TABLES = (
    *(*_LANES, *_TOPICS),
    *("pending_links", "compression_locks", "rewinds", "session_tools", "usage_events", "messages", "sessions"),
    *("word_places", "message_words", "known_words", "message_times", "stale_index", "deleted_messages"),
)
_MYSQL_MARKS = """
    DELETE FROM state_meta WHERE `key` NOT IN ('min_reader', 'min_writer', 'index_epoch');
    UPDATE state_meta SET value = 0 WHERE `key` = 'index_epoch'"""


ENGINES: dict[str, Callable[[Path], Stores]] = {
    "sqlite": SqliteStores,
    "postgresql": PostgresStores,
    "mysql": MySQLStores,
}
