"""The printed SQL statements create a complete store."""

from __future__ import annotations

import pymysql  # type: ignore[import-untyped]

from hermes.cli.sessiondb.sql import schema_script
from hermes.config import SessionDBConfig
from hermes.state.mysql.provider import MySQLSessionDBProvider
from tests.mysql.conftest import rows_of

DELIMITER = "DELIMITER ;;"


def test_printed_statements_create_a_store(dsn: str, connection: pymysql.Connection, settings: SessionDBConfig) -> None:
    _, _, script = schema_script("mysql").partition(DELIMITER)
    for statement in filter(None, map(str.strip, script.split(";;"))):
        rows_of(connection, statement)
    ledger = "SELECT name, checksum, applied_at FROM hermes_ledger"
    before = rows_of(connection, ledger)
    with MySQLSessionDBProvider(dsn, settings=settings) as store:
        store.create_session("s ", "cli")
        store.append_message("s ", "user", "axolotl")
        assert [hit["session_id"] for hit in store.search_messages("axolotl")] == ["s "]
        assert store.get_session("s") is None
    assert rows_of(connection, ledger) == before
