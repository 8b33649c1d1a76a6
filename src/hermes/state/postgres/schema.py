"""The tables of a store on PostgreSQL: inspected, created and upgraded by migrations."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors as refusals
from psycopg import sql
from psycopg.rows import tuple_row

from hermes.errors import StoreUnavailable
from hermes.log import inform
from hermes.state.server.ledger import FORMAT, Ledger, SchemaState, SchemaStatus
from hermes.state.sql.migration_files import read_migrations

Connection = psycopg.Connection[Any]

SCHEMA_VERSION = 11
MIGRATIONS = read_migrations(Path(__file__).with_name("migrations"))
LEDGER = {each.name: each.checksum for each in MIGRATIONS.values()}
"""The checksum of each migration, in the order in which they are applied."""

TRIGRAMS, STEMS = "idx_known_words_parts", "idx_known_words_stems"
LOCK_TIMEOUT_S = 120
_LOCK = 0x4845524D4553
"""The advisory lock under which one process at a time creates tables: two in one database conflict in any schema."""
_UNAVAILABLE = (
    refusals.InsufficientPrivilege,
    refusals.FeatureNotSupported,
    refusals.UndefinedFile,
    refusals.InvalidSchemaName,
)
"""The errors of a server that lacks an extension, or does not allow this user to create it."""


@dataclass(frozen=True, slots=True)
class PostgresSchemaStatus(SchemaStatus):
    """The state of a store on PostgreSQL."""

    has_trigrams: bool


def inspect(connection: Connection, schema: str | None) -> PostgresSchemaStatus:
    """Inspect a store without changing anything."""
    within = "" if schema is None else f"{sql.Identifier(schema).as_string(connection)}."
    ((has_ledger, has_trigrams),) = _rows(
        connection,
        "SELECT to_regclass(%s) IS NOT NULL, to_regclass(%s) IS NOT NULL",
        [f"{within}hermes_ledger", f"{within}{TRIGRAMS}"],
    )
    if not has_ledger:
        return PostgresSchemaStatus(Ledger(None), LEDGER, has_trigrams=False)
    marks = _rows(
        connection,
        f"""SELECT 'ledger', name, checksum FROM {within}hermes_ledger
            UNION ALL SELECT 'note', key, value FROM {within}state_meta WHERE key IN ('min_reader', 'min_writer')
            UNION ALL SELECT 'note', 'version', CAST(MAX(version) AS text) FROM {within}schema_version
            UNION ALL SELECT 'note', 'born', CAST(MIN(applied_at) AS text) FROM {within}hermes_ledger""",
    )
    return PostgresSchemaStatus(Ledger.of(marks), LEDGER, has_trigrams=bool(has_trigrams))


def ensure(connection: Connection, schema: str | None, where: str, *, read_only: bool) -> PostgresSchemaStatus:
    """Create or upgrade the tables if necessary and allowed; raise if this code cannot use the store."""
    status = inspect(connection, schema)
    status.ledger.require_usable(LEDGER, where, read_only=read_only)
    if read_only and status.state is SchemaState.FRESH:
        raise StoreUnavailable(
            f"there is no session store in {where} yet", hint="create it with: hermes sessiondb init"
        )
    if read_only or status.state not in (SchemaState.FRESH, SchemaState.BEHIND):
        return status
    return apply_pending(connection, schema)


def apply_pending(connection: Connection, schema: str | None) -> PostgresSchemaStatus:
    """Apply the pending migrations in one transaction, one process at a time; a crash in the middle changes nothing."""
    with connection.transaction():
        _lock(connection)
        if schema is not None:
            # CREATE SCHEMA IF NOT EXISTS needs the right to create schemas even if the schema exists.
            if not _rows(connection, "SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema]):
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
            connection.execute(sql.SQL("SET LOCAL search_path TO {}").format(sql.Identifier(schema)))
        # The process that had the lock before may have done it already.
        status = inspect(connection, schema)
        for name in status.pending if status.state is not SchemaState.NEWER else ():
            connection.execute(MIGRATIONS[name].script.encode())
            _record(connection, name)
        _add_trigram_index(connection)
        return inspect(connection, schema)


def add_stem_index(connection: Connection, schema: str | None) -> None:
    """Index words by their English stems, one process at a time; without the right to, searches read all words."""
    within = sql.SQL("") if schema is None else sql.SQL("{}.").format(sql.Identifier(schema))
    named = sql.SQL("{}{}").format(within, sql.Identifier(STEMS)).as_string(connection)
    if _rows(connection, "SELECT 1 WHERE to_regclass(%s) IS NOT NULL", [named]):
        return
    try:
        with connection.transaction():
            _lock(connection)
            connection.execute(
                sql.SQL("CREATE INDEX IF NOT EXISTS {} ON {}known_words (({}))").format(
                    sql.Identifier(STEMS), within, sql.SQL("(ts_lexize('english_stem', word))[1]")
                )
            )
    except _UNAVAILABLE as exc:
        inform(__name__, "word forms are searched without an index, because it cannot be created: %s", exc)


def _lock(connection: Connection) -> None:
    connection.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_S}s'".encode())
    connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def _record(connection: Connection, name: str) -> None:
    """Record a migration in the ledger, with the schema version and the defaults of `state_meta`."""
    connection.execute(
        "INSERT INTO hermes_ledger (name, checksum, applied_at) VALUES (%s, %s, %s)", [name, LEDGER[name], time.time()]
    )
    connection.execute("DELETE FROM schema_version")
    connection.execute("INSERT INTO schema_version (version) VALUES (%s)", [SCHEMA_VERSION])
    for key, value in (("indexed_upto", 0), ("index_epoch", 0), ("min_reader", FORMAT), ("min_writer", FORMAT)):
        connection.execute(
            "INSERT INTO state_meta (key, value) VALUES (%s, %s) ON CONFLICT DO NOTHING", [key, str(value)]
        )


def _add_trigram_index(connection: Connection) -> None:
    """Index the parts of words, where the extension pg_trgm is available."""
    try:
        with connection.transaction():
            connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public")
            ((place,),) = _rows(
                connection,
                """SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                   WHERE e.extname = 'pg_trgm'""",
            )
            connection.execute(
                sql.SQL("CREATE INDEX IF NOT EXISTS {} ON known_words USING gin (word {}.gin_trgm_ops)").format(
                    sql.Identifier(TRIGRAMS), sql.Identifier(place)
                )
            )
    except _UNAVAILABLE as exc:
        inform(__name__, "parts of words are searched without an index, because pg_trgm is not available: %s", exc)


def _rows(connection: Connection, query: str, values: Sequence[str] = ()) -> list[tuple[Any, ...]]:
    # A connection from the caller's pool may have another row factory.
    return connection.cursor(row_factory=tuple_row).execute(query.encode(), values or None).fetchall()
