"""The tables of a store on PostgreSQL: whose they are, and how they are made and brought to the present."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors as refusals
from psycopg import sql
from psycopg.rows import tuple_row

from hermes.errors import StoreUnavailable
from hermes.log import inform
from hermes.state.server.ledger import FORMAT, Ledger, SchemaState, SchemaStatus

Connection = psycopg.Connection[Any]

SCHEMA_VERSION = 11
ADDITIONS = {"0001_store": "schema.sql", "0002_owners": "0002_owners.sql"}
"""The files that make a store, in their order. A file that was ever part of a release is never changed again."""
LEDGER = {"0001_store": "52b9ab48", "0002_owners": "4fc4759b"}
"""The checksum of each addition."""

TRIGRAMS, STEMS = "idx_known_words_parts", "idx_known_words_stems"
LOCK_TIMEOUT_S = 120
_LOCK = 0x4845524D4553
"""One at a time makes tables in a database: two would run into each other even in different schemas."""
_UNAVAILABLE = (
    refusals.InsufficientPrivilege,
    refusals.FeatureNotSupported,
    refusals.UndefinedFile,
    refusals.InvalidSchemaName,
)
"""How a server says that it has no such extension, or that this user may not have it."""


@dataclass(frozen=True, slots=True)
class PostgresSchemaStatus(SchemaStatus):
    """What there is of a store on PostgreSQL."""

    has_trigrams: bool


@cache
def script(name: str) -> str:
    """The statements of an addition."""
    return Path(__file__).with_name(ADDITIONS[name]).read_text(encoding="utf-8")


def inspect(connection: Connection, schema: str | None) -> PostgresSchemaStatus:
    """Look at a store without changing anything."""
    within = "" if schema is None else f"{sql.Identifier(schema).as_string(connection)}."
    ((is_kept, has_trigrams),) = _rows(
        connection,
        "SELECT to_regclass(%s) IS NOT NULL, to_regclass(%s) IS NOT NULL",
        [f"{within}hermes_ledger", f"{within}{TRIGRAMS}"],
    )
    if not is_kept:
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
    """Make or complete the tables, unless they are as they should be or must not be touched."""
    status = inspect(connection, schema)
    status.ledger.require_usable(LEDGER, where, read_only=read_only)
    if read_only and status.state is SchemaState.FRESH:
        raise StoreUnavailable(f"there is no session store in {where} yet", hint="make it with: hermes sessiondb init")
    if read_only or status.state not in (SchemaState.FRESH, SchemaState.BEHIND):
        return status
    return apply_pending(connection, schema)


def apply_pending(connection: Connection, schema: str | None) -> PostgresSchemaStatus:
    """Make what is missing in one transaction, one process at a time; a crash in the middle changes nothing."""
    with connection.transaction():
        _lock(connection)
        if schema is not None:
            # To ask for a schema that is there would need the right to make one.
            if not _rows(connection, "SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema]):
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
            connection.execute(sql.SQL("SET LOCAL search_path TO {}").format(sql.Identifier(schema)))
        # Whoever had the lock before may have done it already.
        status = inspect(connection, schema)
        for name in status.pending if status.state is not SchemaState.NEWER else ():
            connection.execute(script(name).encode())
            _record(connection, name)
        _add_trigram_index(connection)
        return inspect(connection, schema)


def add_stem_index(connection: Connection, schema: str | None) -> None:
    """Index words by their English stems, one process at a time; who may not make an index looks at all words."""
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
        inform(__name__, "forms of words are looked for without an index, because it cannot be made: %s", exc)


def _lock(connection: Connection) -> None:
    connection.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_S}s'".encode())
    connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def _record(connection: Connection, name: str) -> None:
    """Note in the store what it has now."""
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
    """Index the parts of words, where the extension for that can be had."""
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
        inform(__name__, "parts of words are looked for without an index, because pg_trgm cannot be had: %s", exc)


def _rows(connection: Connection, query: str, values: Sequence[str] = ()) -> list[tuple[Any, ...]]:
    # A connection of somebody else's pool may make something else of a row.
    return connection.cursor(row_factory=tuple_row).execute(query.encode(), values or None).fetchall()
