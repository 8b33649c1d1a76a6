"""The tables of a store on MySQL or MariaDB: inspected, created and upgraded by migrations.

These servers commit each change of a table separately. So every statement can be repeated, and the ledger records a
migration last: after a crash in the middle, the next start completes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes.errors import ConfigError, StoreBusy, StoreUnavailable
from hermes.state.mysql import errors
from hermes.state.mysql.connection.cluster_lock import cluster_lock
from hermes.state.mysql.connection.statements import DriverConnection, render
from hermes.state.server.faults import ServerError
from hermes.state.server.ledger import FORMAT, Ledger, SchemaState, SchemaStatus
from hermes.state.server.retries import Attempts
from hermes.state.sql.migration_files import read_migrations

SCHEMA_VERSION = 11
MIGRATIONS = read_migrations(Path(__file__).with_name("migrations"))
LEDGER = {each.name: each.checksum for each in MIGRATIONS.values()}
"""The checksum of each migration, in the order in which they are applied."""
LOCK_TIMEOUT_S = 120
SYSTEM = ("mysql", "sys", "information_schema", "performance_schema")
"""The databases of the server itself."""
COLLATION = "$collation"
"""The placeholder in the migrations for the server's name of the collation."""

_LOCK = "CONCAT('hermes ', SHA2(DATABASE(), 224))"
"""The lock under which one process at a time creates tables in a database; its name has at most 64 characters."""


def statements(name: str, collation: str) -> Iterator[str]:
    """The statements of a migration one by one; in the file a semicolon and an empty line end each of them."""
    for each in MIGRATIONS[name].script.replace(COLLATION, collation).split(";\n\n"):
        text = each.strip().removesuffix(";")
        if not all(line.startswith("--") for line in text.splitlines()):
            yield text


def inspect(connection: DriverConnection) -> SchemaStatus:
    """Inspect a store without changing anything."""
    there = connection.run(
        """SELECT table_name FROM information_schema.tables
           WHERE table_schema = DATABASE() AND table_name IN ('hermes_ledger', 'state_meta', 'schema_version')"""
    ).rows
    if not any(row[0] == "hermes_ledger" for row in there):
        return SchemaStatus(Ledger(None), LEDGER)
    if len(there) < 3:
        # Another process is creating it, or died while it did.
        return SchemaStatus(Ledger({}), LEDGER)
    marks = connection.run(
        """SELECT 'ledger', name, checksum FROM hermes_ledger
           UNION ALL SELECT 'note', "key", value FROM state_meta WHERE "key" IN ('min_reader', 'min_writer')
           UNION ALL SELECT 'note', 'version', CAST(MAX(version) AS CHAR) FROM schema_version
           UNION ALL SELECT 'note', 'born', CAST(MIN(applied_at) AS CHAR) FROM hermes_ledger"""
    ).rows
    return SchemaStatus(Ledger.of(marks), LEDGER)


def ensure(connection: DriverConnection, collation: str, where: str, *, read_only: bool) -> SchemaStatus:
    """Create or upgrade the tables if necessary and allowed; raise if this code cannot use the store."""
    status = inspect(connection)
    status.ledger.require_usable(LEDGER, where, read_only=read_only)
    if read_only and not status.ledger.applied:
        raise StoreUnavailable(
            f"there is no session store in {where} yet", hint="create it with: hermes sessiondb init"
        )
    if read_only or status.state not in (SchemaState.FRESH, SchemaState.BEHIND):
        return status
    if connection.run("SELECT DATABASE()").rows[0][0] in SYSTEM:
        raise ConfigError(f"{where} is the server's own database", hint="create one for Hermes: CREATE DATABASE hermes")
    return apply_pending(connection, collation, where)


def apply_pending(connection: DriverConnection, collation: str, where: str) -> SchemaStatus:
    """Apply the pending migrations; retry if another process is in the way."""
    attempts = Attempts(time.monotonic() + LOCK_TIMEOUT_S)
    while True:
        try:
            return _apply_pending_once(connection, collation, where)
        except ServerError as fault:
            pause = attempts.pause(errors.verdict(fault), time.monotonic())
            if pause is None:
                raise
            if connection.is_in_transaction:
                connection.run("ROLLBACK")
        time.sleep(pause)


def _apply_pending_once(connection: DriverConnection, collation: str, where: str) -> SchemaStatus:
    """Apply the pending migrations, one process at a time."""
    with (
        _alone_in_cluster(connection, collation, where)
        if connection.is_in_cluster
        else _alone(connection, where) as stay_alone
    ):
        # The process that had the lock before may have done it already.
        status = inspect(connection)
        for name in status.pending if status.state is not SchemaState.NEWER else ():
            for statement in statements(name, collation):
                connection.run(statement)
                stay_alone()
            _record(connection, name)
        return inspect(connection)


@contextmanager
def _alone_in_cluster(connection: DriverConnection, collation: str, where: str) -> Iterator[Callable[[], None]]:
    """Lock out the processes on all nodes that create tables; yield a function that renews the lock."""
    # The lock is a row of this table; creating it twice does no harm.
    connection.run(next(each for each in statements("0001_store", collation) if "EXISTS state_meta" in each))
    with cluster_lock(connection, where, LOCK_TIMEOUT_S) as lock:
        yield lock.renew


@contextmanager
def _alone(connection: DriverConnection, where: str) -> Iterator[Callable[[], None]]:
    """Lock out other processes that create tables."""
    if connection.run(f"SELECT GET_LOCK({_LOCK}, {LOCK_TIMEOUT_S})").rows[0][0] != 1:
        raise StoreBusy(f"another process has been creating the tables in {where} for {LOCK_TIMEOUT_S} s")
    try:
        yield lambda: None
    finally:
        if connection.is_sound:
            connection.run(f"SELECT RELEASE_LOCK({_LOCK})")


def notes() -> list[str]:
    """The statements that store the schema version and the defaults of `state_meta`."""
    keys = {"indexed_upto": 0, "index_epoch": 0, "words_epoch": 0, "min_reader": FORMAT, "min_writer": FORMAT}
    return [
        "DELETE FROM schema_version",
        f"INSERT INTO schema_version (version) VALUES ({SCHEMA_VERSION})",
        *(f"INSERT IGNORE INTO state_meta (`key`, value) VALUES ('{key}', '{value}')" for key, value in keys.items()),
    ]


def _record(connection: DriverConnection, name: str) -> None:
    """Record a migration in the ledger."""
    added = render(
        "INSERT INTO hermes_ledger (name, checksum, applied_at) VALUES (:name, :checksum, :at)",
        {"name": name, "checksum": LEDGER[name], "at": time.time()},
    )
    connection.execute_all(["START TRANSACTION", *notes(), added, "COMMIT"])
